// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/metadata_text.h"
#include "ir/text/printer.h"
#include "parser/hlo/metadata_parser.h"
#include "parser/text/stack_frame_numbering.h"
#include "parser/text/text_cursor.h"

namespace hlokit {
namespace {

// A frame with the table's numbering.
struct TableFrame {
  std::string file, function;
  int64_t line = 0, end_line = 0, column = 0, end_column = 0;
  int64_t parent = 0;  // from 1; 0: none
};

// ---- writing ----

class Table {
 public:
  explicit Table(const Module& module) : module_(module) {}

  int64_t IndexOf(MetadataId origin) {
    const auto [at, inserted] = index_.try_emplace(origin.value, static_cast<int64_t>(index_.size()));
    if (inserted) {
      Metadata fields = module_.context().metadata[origin];
      fields.stack_frame_id = FrameNumber(fields.stack_frame_id);
      TextWriter out(&origins_);
      out << '{';
      PrintMetadataFields(out, module_.context(), fields);
      out << '}';
    }
    return at->second;
  }

  bool empty() const { return index_.empty(); }
  std::string Text() const {
    return StrCat("{sources={", origins_, "}", frames_.empty() ? "" : StrCat(" frames={", frames_, "}"), "}");
  }

 private:
  // Returns the table index of a frame of the module, its parents first.
  int64_t FrameNumber(int64_t id) {
    const StackFrames& s = module_.header().stack_frames;
    const int64_t count = static_cast<int64_t>(s.stack_frames.size());
    std::vector<int64_t> chain;
    for (; id >= 1 && id <= count && frame_.try_emplace(id, 0).second; id = ParentOf(id)) chain.push_back(id);
    int64_t number = id >= 1 && id <= count ? frame_[id] : 0;
    for (size_t i = chain.size(); i-- > 0;) {
      AppendFrame(s, chain[i], number);
      number = frame_[chain[i]] = ++frame_count_;
    }
    return number;
  }
  int64_t ParentOf(int64_t id) const {
    return int64_t{module_.header().stack_frames.stack_frames[static_cast<size_t>(id - 1)].parent_frame_id} - 1;
  }

  void AppendFrame(const StackFrames& s, int64_t id, int64_t parent) {
    TextWriter out(&frames_);
    const auto string = [&](const char* name, const std::vector<StringId>& table, int32_t at) {
      if (at < 1 || at > static_cast<int64_t>(table.size())) return;
      out << name;
      PrintQuoted(out, module_.context().str(table[static_cast<size_t>(at - 1)]));
    };
    out << '{';
    const int32_t location = s.stack_frames[static_cast<size_t>(id - 1)].file_location_id;
    if (location >= 1 && location <= static_cast<int64_t>(s.file_locations.size())) {
      const FileLocation& l = s.file_locations[static_cast<size_t>(location - 1)];
      string("file=", s.file_names, l.file_name_id);
      string(" function=", s.function_names, l.function_name_id);
      out << " line=" << l.line << " end_line=" << l.end_line << " column=" << l.column
          << " end_column=" << l.end_column;
    }
    if (parent != 0) out << " parent=" << parent;
    out << '}';
  }

  const Module& module_;
  std::map<uint32_t, int64_t> index_;
  std::map<int64_t, int64_t> frame_;
  int64_t frame_count_ = 0;
  std::string origins_, frames_;
};

// Formats numbers as "0-3,7": ascending and distinct.
std::string Ranges(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    StrAppend(&text, i == 0 ? "" : ",", numbers[i]);
    if (end - i > 1) StrAppend(&text, "-", numbers[end - 1]);
    i = end;
  }
  return text;
}

// Calls f on all instructions in print order.
template <typename F>
void InPrintedOrder(const Module& module, F f) {
  const ComputationRoles roles = RolesOf(module);
  for (ComputationId c : ComputationPostOrder(module)) {
    if (module.header().is_scheduled && !roles.fusion[c.value]) {
      for (Instruction i : module.computation(c).instructions()) f(i.id());
    } else {
      for (InstructionId i : PostOrder(module.computation(c))) f(i);
    }
  }
}

// Puts instructions and computations in print order, so that parsing the text restores the module as it is: printing
// depends on the order in memory.
void PutInPrintedOrder(Module& module) {
  const ComputationRoles roles = RolesOf(module);
  for (Computation c : module.computations()) {
    if (module.header().is_scheduled && !roles.fusion[c.id().value]) continue;
    for (InstructionId id : PostOrder(c)) module.MoveBefore(id, InstructionId());
  }
  std::vector<ComputationId> order = ComputationPostOrder(module);
  if (order.size() == module.computation_count()) module.SetComputationOrder(std::move(order));
}

// Propagates original values from tuple operands to get-tuple-elements, as readers do and as XLA does.
void GiveElementsTheirOrigin(Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kGetTupleElement || i.has(Attr::kOrigin)) continue;
      const Instruction tuple = i.operand(0);
      if (tuple.opcode() != Opcode::kTuple) continue;
      const auto origin = tuple.operand(i.int_attr(Attr::kIndex)).payload(Attr::kOrigin);
      if (origin) module.SetAttr(i.id(), Attr::kOrigin, *origin);
    }
  }
}

void SetFrontendAttribute(Module& module, InstructionId id, ListId list) {
  if (module.context().list(list).empty()) {
    module.RemoveAttr(id, Attr::kFrontendAttributes);
  } else {
    module.SetAttr(id, Attr::kFrontendAttributes, list.value);
  }
}

ListId FrontendAttributesOf(const Module& module, InstructionId id) {
  const std::optional<uint32_t> payload = module.instruction(id).payload(Attr::kFrontendAttributes);
  return payload ? ListId(*payload) : ListId();
}

bool AnyShardingMetadata(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!i.has(Attr::kSharding)) continue;
      std::string text;
      {
        TextWriter out(&text);
        PrintAttrValue(out, module, {Attr::kSharding, *i.payload(Attr::kSharding)});
      }
      if (text.find("stack_frame_id") != std::string::npos) return true;
    }
  }
  return false;
}

void RenumberFrames(Module& module) {
  if (module.header().stack_frames.empty() || AnyShardingMetadata(module)) return;
  MetadataPool& pool = module.context().metadata;
  StackFrameNumbering numbering(std::move(module.header().stack_frames));
  InPrintedOrder(module, [&](InstructionId id) {
    Metadata fields = module.instruction(id).metadata();
    const int64_t number = numbering.Number(fields.stack_frame_id);
    if (number == fields.stack_frame_id) return;
    fields.stack_frame_id = number;
    module.SetMetadata(id, pool.Intern(fields));
  });
  module.header().stack_frames = numbering.Take();
}

// ---- reading ----

class TableReader {
 public:
  TableReader(Module* module, std::shared_ptr<const SourceBuffer> text) : module_(*module), in_(text->text(), &sink_) {
    module_.context().Keep(std::move(text));  // metadata will reference it
  }

  // Returns the sources, with their frames added to the module; nullopt if malformed.
  std::optional<std::vector<MetadataId>> Read() {
    std::vector<MetadataId> origins;
    if (!in_.TryConsume('{') || !(in_.TryConsumeWord("sources") || in_.TryConsumeWord("origins")) ||
        !in_.TryConsume('=') || !in_.TryConsume('{'))
      return std::nullopt;
    while (!in_.TryConsume('}')) {
      MetadataId origin;
      if (in_.AtEnd() || !ParseMetadata(in_, &module_.context(), &origin)) return std::nullopt;
      origins.push_back(origin);
    }
    std::vector<TableFrame> frames;
    if (in_.TryConsumeWord("frames")) {
      if (!in_.TryConsume('=') || !in_.TryConsume('{')) return std::nullopt;
      while (!in_.TryConsume('}')) {
        if (in_.AtEnd() || !ReadFrame(&frames.emplace_back())) return std::nullopt;
        if (frames.back().parent < 0 || frames.back().parent >= static_cast<int64_t>(frames.size()))
          return std::nullopt;
      }
    }
    if (!in_.TryConsume('}') || !in_.AtEnd()) return std::nullopt;
    const std::vector<int32_t> numbers = AddFrames(frames);
    for (MetadataId& origin : origins) {
      Metadata fields = module_.context().metadata[origin];
      const int64_t frame = fields.stack_frame_id;
      if (frame == 0) continue;
      if (frame < 0 || frame > static_cast<int64_t>(numbers.size())) return std::nullopt;
      fields.stack_frame_id = numbers[static_cast<size_t>(frame - 1)];
      origin = module_.context().metadata.Intern(fields);
    }
    return origins;
  }

 private:
  bool ReadFrame(TableFrame* frame) {
    if (!in_.TryConsume('{')) return false;
    while (!in_.TryConsume('}')) {
      std::string_view name, value;
      if (!in_.ExpectName(&name, "a field") || !in_.TryConsume('=')) return false;
      if (name == "file" || name == "function") {
        std::string scratch;
        bool stable;
        if (!in_.String(&value, &scratch, &stable)) return false;
        (name == "file" ? frame->file : frame->function) = value;
        continue;
      }
      int64_t* field = name == "line"         ? &frame->line
                       : name == "end_line"   ? &frame->end_line
                       : name == "column"     ? &frame->column
                       : name == "end_column" ? &frame->end_column
                       : name == "parent"     ? &frame->parent
                                              : nullptr;
      if (field == nullptr || !in_.Int(field) || *field != static_cast<int32_t>(*field)) return false;
    }
    return true;
  }

  // Returns the indices of the frames in the module's tables, after adding the missing ones.
  std::vector<int32_t> AddFrames(const std::vector<TableFrame>& frames) {
    StackFrames& s = module_.header().stack_frames;
    std::map<std::string_view, int32_t> files, functions;
    using Location = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int32_t>;
    std::map<Location, int32_t> locations;
    std::map<std::pair<int32_t, int32_t>, int32_t> known;
    const auto key = [](const FileLocation& l) {
      return Location{l.file_name_id, l.function_name_id, l.line, l.end_line, l.column, l.end_column};
    };
    const auto fill = [&](const std::vector<StringId>& table, std::map<std::string_view, int32_t>* map) {
      for (size_t i = 0; i < table.size(); ++i)
        map->emplace(module_.context().str(table[i]), static_cast<int32_t>(i + 1));
    };
    fill(s.file_names, &files);
    fill(s.function_names, &functions);
    for (size_t i = 0; i < s.file_locations.size(); ++i) {
      locations.emplace(key(s.file_locations[i]), static_cast<int32_t>(i + 1));
    }
    for (size_t i = 0; i < s.stack_frames.size(); ++i) {
      const StackFrame& f = s.stack_frames[i];
      known.emplace(std::pair(f.file_location_id, f.parent_frame_id), static_cast<int32_t>(i + 1));
    }
    const auto string = [&](const std::string& text, std::vector<StringId>* table,
                            std::map<std::string_view, int32_t>* map) {
      const auto found = map->find(text);
      if (found != map->end()) return found->second;
      table->push_back(module_.context().strings.Intern(text));
      return map->emplace(module_.context().str(table->back()), static_cast<int32_t>(table->size())).first->second;
    };
    std::vector<int32_t> numbers;
    for (const TableFrame& f : frames) {
      FileLocation l;
      l.file_name_id = string(f.file, &s.file_names, &files);
      l.function_name_id = string(f.function, &s.function_names, &functions);
      l.line = static_cast<int32_t>(f.line);
      l.end_line = static_cast<int32_t>(f.end_line);
      l.column = static_cast<int32_t>(f.column);
      l.end_column = static_cast<int32_t>(f.end_column);
      const auto [location, new_location] =
          locations.emplace(key(l), static_cast<int32_t>(s.file_locations.size() + 1));
      if (new_location) s.file_locations.push_back(l);
      const int32_t parent = f.parent == 0 ? 1 : numbers[static_cast<size_t>(f.parent - 1)] + 1;
      const auto [frame, new_frame] =
          known.emplace(std::pair(location->second, parent), static_cast<int32_t>(s.stack_frames.size() + 1));
      if (new_frame) s.stack_frames.push_back({location->second, parent});
      numbers.push_back(frame->second);
    }
    return numbers;
  }

  Module& module_;
  DiagnosticSink sink_;
  TextCursor in_;
};

// Parses the numbers of "0-3,7", all below `bound`; nullopt if malformed.
std::optional<std::vector<size_t>> ReadRanges(std::string_view text, size_t bound) {
  std::vector<size_t> numbers;
  const char* p = text.data();
  const char* const end = p + text.size();
  while (true) {
    size_t first = 0;
    std::from_chars_result read = std::from_chars(p, end, first);
    if (read.ec != std::errc()) return std::nullopt;
    size_t last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || last >= bound || last < first) return std::nullopt;
    for (size_t i = first; i <= last; ++i) numbers.push_back(i);
    if (read.ptr == end) return numbers.size() <= bound ? std::optional(numbers) : std::nullopt;
    if (*read.ptr != ',') return std::nullopt;
    p = read.ptr + 1;
  }
}

}  // namespace

void ReadMetadataSources(Module& module) {
  Context& context = module.context();
  std::string_view key = kMetadataSourcesKey;
  StringId table = FindFrontendAttribute(context, module.header().frontend_attributes, key);
  if (!table.valid()) {
    key = kOldOriginsKey;
    table = FindFrontendAttribute(context, module.header().frontend_attributes, key);
  }
  if (!table.valid()) return;
  auto text = std::make_shared<SourceBuffer>("origins", std::string(context.str(table)));
  const std::optional<std::vector<MetadataId>> origins = TableReader(&module, text).Read();
  if (!origins) return;
  ListId rest = WithoutFrontendAttribute(&context, module.header().frontend_attributes, key);
  module.header().frontend_attributes = context.list(rest).empty() ? ListId() : rest;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const ListId list = FrontendAttributesOf(module, i.id());
      const StringId ranges = FindFrontendAttribute(context, list, key);
      if (!ranges.valid()) continue;
      const auto numbers = ReadRanges(context.str(ranges), origins->size());
      if (!numbers) continue;
      MetadataId merged = i.metadata_id();
      for (size_t n : *numbers) merged = context.metadata.Merge(merged, (*origins)[n]);
      module.SetMetadata(i.id(), merged);
      SetFrontendAttribute(module, i.id(), WithoutFrontendAttribute(&context, list, key));
    }
  }
}

void WriteMetadataSources(Module& module) {
  Context& context = module.context();
  PutInPrintedOrder(module);
  GiveElementsTheirOrigin(module);
  Table table(module);
  InPrintedOrder(module, [&](InstructionId id) {
    const MetadataId merged = module.record(id).metadata;
    if (!context.metadata.IsMerged(merged)) return;
    const MetadataId main = context.metadata.Intern(context.metadata[merged]);
    std::vector<int64_t> numbers;
    for (MetadataId origin : context.metadata.Sources(merged)) {
      if (origin != main) numbers.push_back(table.IndexOf(origin));
    }
    module.SetMetadata(id, main);
    if (numbers.empty()) return;
    SetFrontendAttribute(module, id,
                         WithFrontendAttribute(&context, FrontendAttributesOf(module, id), kMetadataSourcesKey,
                                               Ranges(std::move(numbers))));
  });
  if (!table.empty()) {
    module.header().frontend_attributes =
        WithFrontendAttribute(&context, module.header().frontend_attributes, kMetadataSourcesKey, table.Text());
  }
  RenumberFrames(module);
}

}  // namespace hlokit
