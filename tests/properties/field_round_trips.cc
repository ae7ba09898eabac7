// SPDX-License-Identifier: Apache-2.0
// Compares all fields of the HloModuleProto of a module before and after round trips, by the descriptors of the
// messages, so that no field can be forgotten:
//   proto      HLO -> HloModuleProto -> HLO
//   text       HLO -> text (the lossless form) -> HLO
//   json       HLO -> JSON -> HLO
//   stablehlo  HLO -> StableHLO -> HLO: instructions correspond by their place below the roots
//
//   field_round_trips TABLE [--docs=FILE] [--list] [--sample=N] [--minimum=N] [--maximum-other=N] [--all-rows]
//   FILE|DIR...
//
// TABLE has what is dropped on purpose: a row for each field of a round trip, `TRIP\tMESSAGE.FIELD\tOPCODES\tREASON`;
// the opcodes of the instructions that lose it are separated by commas, `-` if it is no question of them; with `+`
// before the message the field may be there afterwards where it was not. A field that is none ends the program, so does
// a row of a trip that is none. --docs is a page that has to have these rows. --sample takes every N-th file; --list
// names the modules. Exits with 1 if another field differs, if fewer than --minimum modules were compared after
// StableHLO, or if more than --maximum-other were not: those of another structure, those that are not exported. With
// --all-rows a row of the table that no module needs is an error too.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/message_differencer.h"
#include "ir/core/str_cat.h"
#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/mlir/printer.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/proto_file.h"
#include "parser/stablehlo/export/export.h"
#include "tests/properties/hlo_files.h"

namespace hlokit {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

constexpr std::string_view kAdded = "was added";
constexpr std::string_view kTrips[] = {"proto", "text", "json", "stablehlo"};

struct Dropped {
  std::string trip, field;
  std::string row;                // of a table in Markdown
  std::set<std::string> opcodes;  // empty: any
  bool added = false;             // it may be added, not lost
  const FieldDescriptor* descriptor;
  int64_t seen = 0;
};

// Returns true for instructions whose computations are regions in StableHLO; those of others are functions.
bool HasRegions(const xla::HloInstructionProto& instruction) {
  return instruction.opcode() != "call" && instruction.opcode() != "fusion" && instruction.opcode() != "custom-call";
}

// Names the fields that differ, and passes over those that are dropped.
class Reporter : public MessageDifferencer::Reporter {
 public:
  Reporter(std::string_view trip, const xla::HloModuleProto& before, std::vector<Dropped>* table)
      : trip_(trip), before_(before), table_(*table) {
    for (const xla::HloComputationProto& c : before.computations()) {
      for (const xla::HloInstructionProto& i : c.instructions()) {
        if (HasRegions(i)) regions_.insert(i.called_computation_ids().begin(), i.called_computation_ids().end());
      }
    }
  }

  void ReportAdded(const Message&, const Message&,
                   const std::vector<MessageDifferencer::SpecificField>& path) override {
    Add(path, kAdded);
  }
  void ReportDeleted(const Message&, const Message&,
                     const std::vector<MessageDifferencer::SpecificField>& path) override {
    Add(path, "is lost");
  }
  void ReportModified(const Message&, const Message&,
                      const std::vector<MessageDifferencer::SpecificField>& path) override {
    // Of a message its fields are reported.
    const FieldDescriptor* const field = path.back().field;
    if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;
    Add(path, "has another value");
  }
  const std::set<std::string>& found() const { return found_; }

 private:
  // The opcode of the instruction that a path leads to; "" for other paths. Parameters of reducers, loops and the like
  // are "region-parameter".
  std::string OpcodeAt(const std::vector<MessageDifferencer::SpecificField>& path) const {
    if (path.size() < 2 || path[0].field == nullptr || path[0].field->name() != "computations") return "";
    if (path[0].index < 0 || path[0].index >= before_.computations_size()) return "";
    const xla::HloComputationProto& computation = before_.computations(path[0].index);
    if (path[1].field == nullptr || path[1].field->name() != "instructions" || path[1].index < 0 ||
        path[1].index >= computation.instructions_size()) {
      return "";
    }
    const std::string& opcode = computation.instructions(path[1].index).opcode();
    return opcode == "parameter" && regions_.contains(computation.id()) ? "region-parameter" : opcode;
  }

  void Add(const std::vector<MessageDifferencer::SpecificField>& path, std::string_view what) {
    const std::string opcode = OpcodeAt(path);
    // A field within one that is dropped is dropped too.
    for (const MessageDifferencer::SpecificField& part : path) {
      for (Dropped& row : table_) {
        if (part.field != row.descriptor || row.trip != trip_) continue;
        if (!row.opcodes.empty() && !row.opcodes.contains(opcode)) continue;
        if (row.added && what != kAdded) continue;
        ++row.seen;
        return;
      }
    }
    std::string text;
    for (const MessageDifferencer::SpecificField& part : path) {
      StrAppend(&text, text.empty() ? "" : ".", part.field == nullptr ? "?" : std::string(part.field->name()));
    }
    found_.insert(StrCat(text, " ", what, opcode.empty() ? "" : " of ", opcode));
  }

  const std::string trip_;
  const xla::HloModuleProto& before_;
  std::vector<Dropped>& table_;
  std::set<int64_t> regions_;  // computations that are regions in StableHLO
  std::set<std::string> found_;
};

// Gives instructions and computations numbers and an order that follow from the roots: callees before callers, operands
// before users; with `rename` also names. The schedule has the order of the instructions. Returns false for a module
// with references to none.
bool Canonicalize(bool rename, xla::HloModuleProto* module) {
  std::map<int64_t, xla::HloComputationProto*> computations;
  for (xla::HloComputationProto& c : *module->mutable_computations()) computations[c.id()] = &c;
  std::map<int64_t, int64_t> numbers, computation_numbers;
  std::vector<xla::HloComputationProto> ordered;
  // Computations in post-order of the calls from the entry, then from those that nothing calls by their names.
  std::vector<int64_t> roots = {module->entry_computation_id()};
  std::map<std::string, int64_t> by_name;
  std::set<int64_t> called;
  for (const xla::HloComputationProto& c : module->computations()) {
    for (const xla::HloInstructionProto& i : c.instructions()) {
      called.insert(i.called_computation_ids().begin(), i.called_computation_ids().end());
    }
  }
  for (const xla::HloComputationProto& c : module->computations()) {
    if (!called.contains(c.id())) by_name[c.name()] = c.id();
  }
  for (const auto& [name, id] : by_name) roots.push_back(id);
  std::set<int64_t> open, done;
  const auto instruction_order = [rename](const xla::HloComputationProto& c) {
    std::map<int64_t, const xla::HloInstructionProto*> by_id;
    for (const xla::HloInstructionProto& i : c.instructions()) by_id[i.id()] = &i;
    std::vector<const xla::HloInstructionProto*> order, parameters;
    for (const xla::HloInstructionProto& i : c.instructions()) {
      if (i.opcode() == "parameter") parameters.push_back(&i);
    }
    std::sort(parameters.begin(), parameters.end(),
              [](const auto* a, const auto* b) { return a->parameter_number() < b->parameter_number(); });
    std::set<int64_t> seen;
    const auto visit = [&](int64_t root) {
      std::vector<std::pair<int64_t, bool>> stack = {{root, false}};
      while (!stack.empty()) {
        const auto [id, leaving] = stack.back();
        stack.pop_back();
        const auto found = by_id.find(id);
        if (found == by_id.end()) continue;
        if (leaving) {
          order.push_back(found->second);
          continue;
        }
        if (!seen.insert(id).second) continue;
        stack.push_back({id, true});
        for (int k = found->second->operand_ids_size(); k-- > 0;)
          stack.push_back({found->second->operand_ids(k), false});
      }
    };
    for (const auto* parameter : parameters) visit(parameter->id());
    visit(c.root_id());
    // What the root does not need, from what nothing uses: text has that in an order of its own.
    std::set<int64_t> used;
    for (const xla::HloInstructionProto& i : c.instructions())
      used.insert(i.operand_ids().begin(), i.operand_ids().end());
    std::vector<const xla::HloInstructionProto*> unused;
    for (const xla::HloInstructionProto& i : c.instructions()) {
      if (!used.contains(i.id())) unused.push_back(&i);
    }
    if (!rename) {
      std::sort(unused.begin(), unused.end(), [](const auto* a, const auto* b) { return a->name() < b->name(); });
    }
    for (const auto* i : unused) visit(i->id());
    return order;
  };
  for (int64_t root : roots) {
    std::vector<std::pair<int64_t, bool>> stack = {{root, false}};
    while (!stack.empty()) {
      const auto [id, leaving] = stack.back();
      stack.pop_back();
      const auto found = computations.find(id);
      if (found == computations.end()) return false;
      if (leaving) {
        computation_numbers[id] = static_cast<int64_t>(ordered.size()) + 1;
        xla::HloComputationProto made = *found->second;
        made.clear_instructions();
        for (const xla::HloInstructionProto* i : instruction_order(*found->second)) {
          numbers.emplace(i->id(), static_cast<int64_t>(numbers.size()) + 1);
          *made.add_instructions() = *i;
        }
        ordered.push_back(std::move(made));
        continue;
      }
      if (!open.insert(id).second) continue;
      stack.push_back({id, true});
      const auto order = instruction_order(*found->second);
      for (auto i = order.rbegin(); i != order.rend(); ++i) {
        for (int k = (*i)->called_computation_ids_size(); k-- > 0;) {
          stack.push_back({(*i)->called_computation_ids(k), false});
        }
      }
    }
  }
  module->clear_computations();
  for (xla::HloComputationProto& c : ordered) {
    c.set_id(computation_numbers[c.id()]);
    c.set_root_id(numbers[c.root_id()]);
    if (rename) c.set_name(StrCat("c", c.id()));
    for (xla::HloInstructionProto& i : *c.mutable_instructions()) {
      i.set_id(numbers[i.id()]);
      if (rename) i.set_name(StrCat("i", i.id()));
      for (int k = 0; k < i.operand_ids_size(); ++k) i.set_operand_ids(k, numbers[i.operand_ids(k)]);
      for (int k = 0; k < i.control_predecessor_ids_size(); ++k) {
        i.set_control_predecessor_ids(k, numbers[i.control_predecessor_ids(k)]);
      }
      std::sort(i.mutable_control_predecessor_ids()->begin(), i.mutable_control_predecessor_ids()->end());
      for (int k = 0; k < i.called_computation_ids_size(); ++k) {
        i.set_called_computation_ids(k, computation_numbers[i.called_computation_ids(k)]);
      }
    }
    *module->add_computations() = std::move(c);
  }
  module->set_entry_computation_id(computation_numbers[module->entry_computation_id()]);
  if (!module->has_schedule()) return true;
  xla::HloScheduleProto schedule;
  for (const auto& [id, sequence] : module->schedule().sequences()) {
    auto& made = (*schedule.mutable_sequences())[computation_numbers[id]];
    for (int64_t instruction : sequence.instruction_ids()) made.add_instruction_ids(numbers[instruction]);
  }
  *module->mutable_schedule() = std::move(schedule);
  return true;
}

// Gives a copy of a computation and its instructions ids from `next` on.
void Renumber(int64_t* next, xla::HloComputationProto* computation) {
  std::map<int64_t, int64_t> ids;
  computation->set_id((*next)++);
  for (xla::HloInstructionProto& i : *computation->mutable_instructions()) {
    ids[i.id()] = *next;
    i.set_id((*next)++);
  }
  for (xla::HloInstructionProto& i : *computation->mutable_instructions()) {
    for (int64_t& id : *i.mutable_operand_ids()) id = ids[id];
    for (int64_t& id : *i.mutable_control_predecessor_ids()) id = ids[id];
  }
  computation->set_root_id(ids[computation->root_id()]);
}

// Copies regions that several instructions have, as StableHLO does. Returns false for a module with too many.
bool CopySharedRegions(xla::HloModuleProto* module) {
  constexpr int kMaxComputations = 100000;
  std::map<int64_t, int> places;
  int64_t next = 0;
  for (int i = 0; i < module->computations_size(); ++i) {
    places[module->computations(i).id()] = i;
    next = std::max(next, module->computations(i).id() + 1);
    for (const xla::HloInstructionProto& k : module->computations(i).instructions()) next = std::max(next, k.id() + 1);
  }
  std::set<int64_t> used;
  // Copies come at the end, and their own regions are copied when it is their turn.
  for (int i = 0; i < module->computations_size(); ++i) {
    for (int k = 0; k < module->computations(i).instructions_size(); ++k) {
      xla::HloInstructionProto& instruction = *module->mutable_computations(i)->mutable_instructions(k);
      if (!HasRegions(instruction)) continue;
      for (int c = 0; c < instruction.called_computation_ids_size(); ++c) {
        const auto place = places.find(instruction.called_computation_ids(c));
        if (place == places.end() || used.insert(place->first).second) continue;
        if (module->computations_size() > kMaxComputations) return false;
        xla::HloComputationProto copy = module->computations(place->second);
        Renumber(&next, &copy);
        copy.set_name(StrCat(copy.name(), ".copy", copy.id()));
        instruction.set_called_computation_ids(c, copy.id());
        used.insert(copy.id());
        places[copy.id()] = module->computations_size();
        // `instruction` stays where it is: elements of the list are allocated one by one.
        *module->add_computations() = std::move(copy);
      }
    }
  }
  return true;
}

// Numbers the stack frames by their first use, from the outermost frame on. Frames that no instruction has go, and a
// line without a file, which is no place.
void CanonicalizeStackFrames(xla::HloModuleProto* module) {
  const xla::StackFrameIndexProto before = module->stack_frame_index();
  xla::StackFrameIndexProto after;
  std::map<std::string, int32_t> files, functions, locations, frames;
  const auto string_at = [](const auto& strings, int32_t id) {
    return id >= 1 && id <= strings.size() ? strings[id - 1] : std::string();
  };
  const auto intern = [](std::map<std::string, int32_t>* known, const std::string& key, const auto& add) {
    const auto [at, made] = known->emplace(key, static_cast<int32_t>(known->size()) + 1);
    if (made) add();
    return at->second;
  };
  const auto add_frame = [&](int32_t id, int32_t parent) {
    xla::StackFrameIndexProto::FileLocation location;
    const int32_t place = before.stack_frames(id - 1).file_location_id();
    if (place >= 1 && place <= before.file_locations_size()) location = before.file_locations(place - 1);
    const std::string file = string_at(before.file_names(), location.file_name_id());
    const std::string function = string_at(before.function_names(), location.function_name_id());
    location.set_file_name_id(intern(&files, file, [&] { after.add_file_names(file); }));
    location.set_function_name_id(intern(&functions, function, [&] { after.add_function_names(function); }));
    const std::string key = location.SerializeAsString();
    const int32_t made = intern(&locations, key, [&] { *after.add_file_locations() = location; });
    return intern(&frames, StrCat(made, " in ", parent), [&] {
      xla::StackFrameIndexProto::StackFrame& frame = *after.add_stack_frames();
      frame.set_file_location_id(made);
      frame.set_parent_frame_id(parent);
    });
  };
  for (xla::HloComputationProto& c : *module->mutable_computations()) {
    for (xla::HloInstructionProto& i : *c.mutable_instructions()) {
      xla::OpMetadata& metadata = *i.mutable_metadata();
      if (metadata.source_file().empty()) {
        metadata.clear_source_line();
        metadata.clear_source_column();
      }
      std::vector<int32_t> chain;  // innermost first
      int32_t id = metadata.stack_frame_id();
      while (id >= 1 && id <= before.stack_frames_size() &&
             chain.size() <= static_cast<size_t>(before.stack_frames_size())) {
        chain.push_back(id);
        id = before.stack_frames(id - 1).parent_frame_id();
      }
      int32_t parent = 0;
      for (auto at = chain.rbegin(); at != chain.rend(); ++at) parent = add_frame(*at, parent);
      metadata.set_stack_frame_id(parent);
    }
  }
  *module->mutable_stack_frame_index() = after;
}

// Instructions of equal opcodes at equal places.
bool SameStructure(const xla::HloModuleProto& a, const xla::HloModuleProto& b) {
  if (a.computations_size() != b.computations_size()) return false;
  for (int c = 0; c < a.computations_size(); ++c) {
    const auto& x = a.computations(c).instructions();
    const auto& y = b.computations(c).instructions();
    if (x.size() != y.size()) return false;
    for (int i = 0; i < x.size(); ++i) {
      if (x[i].opcode() != y[i].opcode()) return false;
      if (!std::equal(x[i].operand_ids().begin(), x[i].operand_ids().end(), y[i].operand_ids().begin(),
                      y[i].operand_ids().end())) {
        return false;
      }
    }
  }
  return true;
}

struct Counts {
  int64_t equal = 0, differ = 0, other_structure = 0, not_written = 0;
};

class Checker {
 public:
  Checker(std::vector<Dropped> table, bool list) : table_(std::move(table)), list_(list) {}

  void Check(const std::string& path) {
    path_ = path;
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    DiagnosticSink invalid;
    if (module.ok()) VerifyModule(**module, {}, &invalid);
    if (!module.ok() || invalid.has_errors()) return;
    xla::HloModuleProto before;
    if (!WriteModuleProto(**module, {}, &before).ok()) return;
    for (std::string_view trip : kTrips) {
      std::string written;
      const std::unique_ptr<Module> again = Reread(**module, before, trip, &written);
      if (again == nullptr) continue;
      xla::HloModuleProto after;
      if (!WriteModuleProto(*again, {}, &after).ok()) {
        NotReadAgain(trip, "it has no message");
        continue;
      }
      Compare(before, after, trip);
    }
  }

  struct Limits {
    int64_t minimum = 1, maximum_other = 0;
    bool all_rows = false;
  };

  // Returns true if no field was lost and the limits hold.
  bool Report(const Limits& limits) const {
    const auto stablehlo = counts_.find("stablehlo");
    bool good = stablehlo != counts_.end() && stablehlo->second.equal >= limits.minimum;
    if (good && stablehlo->second.other_structure + stablehlo->second.not_written > limits.maximum_other) {
      std::printf("more than %lld modules were not compared\n", static_cast<long long>(limits.maximum_other));
      good = false;
    }
    for (const auto& [trip, counts] : counts_) {
      std::printf("%s: %lld with all fields, %lld without, %lld of another structure, %lld not written\n", trip.c_str(),
                  static_cast<long long>(counts.equal), static_cast<long long>(counts.differ),
                  static_cast<long long>(counts.other_structure), static_cast<long long>(counts.not_written));
      good = good && counts.differ == 0 && (trip == "stablehlo" || counts.other_structure == 0);
    }
    for (const auto& [what, modules] : fields_)
      std::printf("%6lld  %s\n", static_cast<long long>(modules), what.c_str());
    for (const Dropped& row : table_) {
      std::printf("dropped %lld times: %s %s\n", static_cast<long long>(row.seen), row.trip.c_str(), row.field.c_str());
      good = good && (row.seen > 0 || !limits.all_rows);
    }
    return good;
  }

 private:
  std::unique_ptr<Module> Reread(const Module& module, const xla::HloModuleProto& proto, std::string_view trip,
                                 std::string* written) {
    if (trip == "text") {
      *written = ToString(module, PrintOptions::Lossless());
    } else if (trip == "json") {
      *written = ToJson(module);
    } else if (trip == "proto") {
      *written = proto.SerializeAsString();
    } else {
      DiagnosticSink sink;
      const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(module, &sink);
      if (program == nullptr) {
        ++counts_[std::string(trip)].not_written;
        return nullptr;
      }
      *written = mlir::PrintMlir(*program, {false, true});
    }
    auto source = std::make_shared<const SourceBuffer>("written", *written);
    DiagnosticSink sink;
    std::unique_ptr<Module> again = ParseModule(source, {}, &sink);
    if (again == nullptr) {
      NotReadAgain(trip, sink.diagnostics().empty() ? "" : sink.diagnostics()[0].message);
    }
    return again;
  }

  void NotReadAgain(std::string_view trip, std::string_view why) {
    ++counts_[std::string(trip)].differ;
    if (list_) std::printf("%s: %s: is not read again\n", path_.c_str(), std::string(trip).c_str());
    ++fields_[StrCat(trip, ": is not read again: ", why)];
  }

  void Compare(xla::HloModuleProto before, xla::HloModuleProto after, std::string_view trip) {
    Counts& counts = counts_[std::string(trip)];
    const bool rename = trip == "stablehlo";
    if ((rename && (!CopySharedRegions(&before) || !CopySharedRegions(&after))) || !Canonicalize(rename, &before) ||
        !Canonicalize(rename, &after) || !SameStructure(before, after)) {
      ++counts.other_structure;
      if (list_) std::printf("%s: %s: another structure\n", path_.c_str(), std::string(trip).c_str());
      return;
    }
    if (rename || trip == "text") {
      CanonicalizeStackFrames(&before);
      CanonicalizeStackFrames(&after);
    }
    google::protobuf::util::DefaultFieldComparator comparator;
    comparator.set_treat_nan_as_equal(true);
    MessageDifferencer differencer;
    differencer.set_field_comparator(&comparator);
    Reporter reporter(trip, before, &table_);
    differencer.ReportDifferencesTo(&reporter);
    differencer.Compare(before, after);
    ++(reporter.found().empty() ? counts.equal : counts.differ);
    for (const std::string& field : reporter.found()) {
      ++fields_[StrCat(trip, ": ", field)];
      if (list_) std::printf("%s: %s: %s\n", path_.c_str(), std::string(trip).c_str(), field.c_str());
    }
  }

  std::vector<Dropped> table_;
  const bool list_;
  std::string path_;
  std::map<std::string, Counts> counts_;
  std::map<std::string, int64_t> fields_;
};

std::vector<Dropped> ReadTable(const std::string& path) {
  std::vector<Dropped> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream row(line);
    Dropped dropped{};
    std::string opcodes, reason;
    std::getline(row, dropped.trip, '\t');
    std::getline(row, dropped.field, '\t');
    std::getline(row, opcodes, '\t');
    std::getline(row, reason);
    std::string shown = opcodes == "-" ? "" : opcodes;
    for (size_t at = shown.find(','); at != std::string::npos; at = shown.find(',', at + 2)) shown.insert(at + 1, " ");
    dropped.row = StrCat("| `", dropped.field, "` | ", shown, shown.empty() ? "" : " ", "| ", reason, " |");
    std::istringstream list(opcodes == "-" ? "" : opcodes);
    for (std::string opcode; std::getline(list, opcode, ',');) dropped.opcodes.insert(opcode);
    dropped.added = dropped.field.starts_with('+');
    const std::string name = "xla." + dropped.field.substr(dropped.added ? 1 : 0);
    dropped.descriptor = xla::HloModuleProto::descriptor()->file()->pool()->FindFieldByName(name);
    const bool known = std::find(std::begin(kTrips), std::end(kTrips), dropped.trip) != std::end(kTrips);
    if (dropped.descriptor == nullptr || !known || reason.empty()) {
      std::fprintf(stderr, "%s: no field of a round trip with a reason: %s\n", path.c_str(), line.c_str());
      std::exit(2);
    }
    table.push_back(std::move(dropped));
  }
  return table;
}

// Returns false, and prints the rows, if the page lacks some.
bool HasRows(const std::string& page, const std::vector<Dropped>& table) {
  std::ifstream file(page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  bool all = true;
  for (const Dropped& dropped : table) {
    if (text.find(StrCat("\n", dropped.row, "\n")) != std::string::npos) continue;
    std::printf("%s lacks this row:\n%s\n", page.c_str(), dropped.row.c_str());
    all = false;
  }
  return all;
}

int Main(int argc, char** argv) {
  bool list = false;
  Checker::Limits limits;
  size_t sample = 1;
  std::string table, docs;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--list") {
      list = true;
    } else if (argument.starts_with("--docs=")) {
      docs = argument.substr(7);
    } else if (argument.starts_with("--minimum=")) {
      limits.minimum = std::atoll(argv[i] + 10);
    } else if (argument.starts_with("--maximum-other=")) {
      limits.maximum_other = std::atoll(argv[i] + 16);
    } else if (argument == "--all-rows") {
      limits.all_rows = true;
    } else if (argument.starts_with("--sample=")) {
      sample = std::max<size_t>(1, std::strtoull(argv[i] + 9, nullptr, 10));
    } else if (table.empty()) {
      table = argument;
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr,
                 "usage: %s TABLE [--docs=FILE] [--list] [--sample=N] [--minimum=N] [--maximum-other=N] [--all-rows] "
                 "FILE|FOLDER...\n",
                 argv[0]);
    return 2;
  }
  const std::vector<Dropped> rows = ReadTable(table);
  if (!docs.empty() && !HasRows(docs, rows)) return 1;
  Checker checker(rows, list);
  const std::vector<std::string> files = HloFiles(paths);
  for (size_t i = 0; i < files.size(); i += sample) checker.Check(files[i]);
  return checker.Report(limits) ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
