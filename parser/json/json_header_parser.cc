// SPDX-License-Identifier: Apache-2.0
// The header of a module and the stack-frame tables in JSON.
#include <algorithm>

#include "ir/text/frontend_attributes.h"
#include "ir/text/printer.h"
#include "parser/hlo/quoted_module.h"
#include "parser/json/json_module_parser.h"

namespace hlokit {
namespace {

constexpr std::string_view kHeaderKeys[] = {"is_scheduled",
                                            "input_output_alias",
                                            "buffer_donor",
                                            "alias_passthrough_params",
                                            "entry_computation_layout",
                                            "allow_spmd_sharding_propagation_to_parameters",
                                            "allow_spmd_sharding_propagation_to_output",
                                            "replica_count",
                                            "num_partitions",
                                            "frontend_attributes",
                                            "origin_recovery_table",
                                            "debug_attributes",
                                            "unknown_attributes"};

}  // namespace

bool JsonModuleParser::ReadHeader() {
  bool broken = false;
  JsonObject object(in_, "an object: the header of the module");
  JsonString key;
  while (object.Next(&key)) {
    if (!Member(&broken, [&] { return ReadHeaderMember(key); })) return false;
  }
  return object.ok() && !broken;
}

bool JsonModuleParser::ReadHeaderMember(const JsonString& key) {
  ModuleHeader& h = module().header();
  const auto bools = [this](ListId* id) {
    std::vector<int64_t> list;
    if (!ReadBools(&list)) return false;
    *id = context().lists.Intern(list);
    return true;
  };
  std::vector<int64_t> unknown;
  const auto keep_unknown = [&] {
    for (size_t i = 0; i < unknown.size(); ++i) {
      const StringId id(static_cast<uint32_t>(unknown[i]));
      const std::string_view name = context().str(id);
      if (i % 2 == 0 && std::find(std::begin(kHeaderKeys), std::end(kHeaderKeys), name) != std::end(kHeaderKeys)) {
        return Error(DiagnosticKind::kBadHeader, key.range,
                     StrCat("`", name, "` is a known module attribute; expected an unknown one"));
      }
      h.unknown_attributes.push_back(id);
    }
    return true;
  };
  if (std::find(std::begin(kHeaderKeys), std::end(kHeaderKeys), key.value) == std::end(kHeaderKeys)) {
    return ReadUnknownMember(key, "a module", kHeaderKeys, &unknown) && keep_unknown();
  }
  bool ok;
  switch (FindKey(key, "the header", kHeaderKeys, &header_seen_, &ok)) {
    case 0:
      return in_.Bool(&h.is_scheduled, "true or false");
    case 1:
      return ReadInputOutputAlias();
    case 2:
      return ReadBufferDonor();
    case 3:
      return in_.Bool(&h.alias_passthrough_params, "true or false");
    case 4:
      return ReadEntryLayout();
    case 5:
      return bools(&h.allow_spmd_sharding_propagation_to_parameters);
    case 6:
      return bools(&h.allow_spmd_sharding_propagation_to_output);
    case 7:
      return ReadCount(&h.replica_count, "the number of replicas");
    case 8:
      return ReadCount(&h.num_partitions, "the number of partitions");
    case 9:
      return ReadFrontendAttributes(&h.frontend_attributes);
    case 10:
      return ReadOriginRecoveryTable();
    case 11:
      return ReadDebugAttributes();
    case 12:
      return ReadUnknownPairs("a module", &unknown) && keep_unknown();
  }
  return ok;
}

bool JsonModuleParser::ReadCount(int64_t* value, std::string_view what) {
  const SourceRange range = in_.Next();
  if (!in_.Int(value, what)) return false;
  return *value >= 1 || Error(DiagnosticKind::kBadHeader, range, StrCat(what, " must be at least 1"));
}

// ---- aliasing ----

bool JsonModuleParser::ReadInputOutputAlias() {
  static constexpr std::string_view kKeys[] = {"output_index", "parameter", "parameter_index", "must_alias"};
  std::vector<InputOutputAlias>& aliases = module().header().input_output_alias;
  JsonArray array(in_, "a list of aliases");
  while (array.Next()) {
    InputOutputAlias alias;
    alias.output_index = alias.parameter_index = context().lists.Intern({});
    const SourceRange place = in_.Next();
    uint32_t seen = 0;
    JsonObject object(in_, "an alias: an object");
    JsonString key;
    while (object.Next(&key)) {
      bool ok;
      switch (FindKey(key, "an alias", kKeys, &seen, &ok)) {
        case 0:
          ok = ReadIndex(&alias.output_index);
          break;
        case 1:
          ok = in_.Int(&alias.parameter, "the number of a parameter");
          break;
        case 2:
          ok = ReadIndex(&alias.parameter_index);
          break;
        case 3:
          ok = in_.Bool(&alias.must_alias, "true or false");
          break;
      }
      if (!ok) return false;
    }
    if (!object.ok()) return false;
    if ((seen & 2) == 0) return Error(DiagnosticKind::kMissingAttribute, place, "missing key `parameter` in an alias");
    aliases.push_back(alias);
  }
  const auto before = [this](const InputOutputAlias& a, const InputOutputAlias& b) {
    const auto x = context().list(a.output_index), y = context().list(b.output_index);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  };
  std::stable_sort(aliases.begin(), aliases.end(), before);
  const auto same = [](const InputOutputAlias& a, const InputOutputAlias& b) {
    return a.output_index == b.output_index;
  };
  if (const auto at = std::adjacent_find(aliases.begin(), aliases.end(), same); at != aliases.end()) {
    std::string index;
    for (int64_t i : context().list(at->output_index)) StrAppend(&index, index.empty() ? "" : ",", i);
    return Error(DiagnosticKind::kBadHeader, in_.Next(), StrCat("duplicate alias of the output {", index, "}"));
  }
  return array.ok();
}

bool JsonModuleParser::ReadBufferDonor() {
  static constexpr std::string_view kKeys[] = {"parameter", "parameter_index"};
  std::vector<BufferDonor>& donors = module().header().buffer_donor;
  JsonArray array(in_, "a list of buffer donors");
  while (array.Next()) {
    BufferDonor donor;
    donor.parameter_index = context().lists.Intern({});
    const SourceRange place = in_.Next();
    uint32_t seen = 0;
    JsonObject object(in_, "a buffer donor: an object");
    JsonString key;
    while (object.Next(&key)) {
      bool ok;
      switch (FindKey(key, "a buffer donor", kKeys, &seen, &ok)) {
        case 0:
          ok = in_.Int(&donor.parameter, "the number of a parameter");
          break;
        case 1:
          ok = ReadIndex(&donor.parameter_index);
          break;
      }
      if (!ok) return false;
    }
    if (!object.ok()) return false;
    if ((seen & 1) == 0)
      return Error(DiagnosticKind::kMissingAttribute, place, "missing key `parameter` in a buffer donor");
    donors.push_back(donor);
  }
  std::stable_sort(donors.begin(), donors.end(), [this](const BufferDonor& a, const BufferDonor& b) {
    if (a.parameter != b.parameter) return a.parameter < b.parameter;
    const auto x = context().list(a.parameter_index), y = context().list(b.parameter_index);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  return array.ok();
}

bool JsonModuleParser::ReadEntryLayout() {
  static constexpr std::string_view kKeys[] = {"parameters", "result"};
  const SourceRange place = in_.Next();
  EntryLayout layout;
  const auto parameters = [&] {
    JsonArray array(in_, "a list of shapes");
    while (array.Next()) {
      if (!ReadShape(&layout.parameters.emplace_back())) return false;
    }
    return array.ok();
  };
  uint32_t seen = 0;
  JsonObject object(in_, "an object: the entry layout");
  JsonString key;
  while (object.Next(&key)) {
    bool ok;
    switch (FindKey(key, "the entry layout", kKeys, &seen, &ok)) {
      case 0:
        ok = parameters();
        break;
      case 1:
        ok = ReadShape(&layout.result);
        break;
    }
    if (!ok) return false;
  }
  if (!object.ok()) return false;
  if ((seen & 3) != 3) {
    return Error(DiagnosticKind::kMissingAttribute, place, "missing key `parameters` or `result` in the entry layout");
  }
  module().header().entry_layout = std::move(layout);
  return true;
}

// ---- original values ----

// Reads a member of an array's original value. `key` may belong to other objects: sets *known if it is a member of the
// array.
bool JsonModuleParser::ReadOriginalArrayMember(const JsonString& key, OriginalArray* array, bool* known) {
  *known = true;
  if (key.value == "index") {
    array->index.clear();
    return ReadInts(&array->index);
  }
  *known = key.value == "instruction";
  JsonString s;
  if (!*known || !in_.String(&s, "the name of an instruction")) return false;
  array->instruction = InternString(s);
  return !s.value.empty() || Error(DiagnosticKind::kBadHeader, s.range, "missing name of an original array");
}

bool JsonModuleParser::ReadOriginalArray(ListId* id) {
  static constexpr std::string_view kKeys[] = {"instruction", "index"};
  const SourceRange place = in_.Next();
  OriginalArray array;
  JsonObject object(in_, "an object: an original array");
  JsonString key;
  while (object.Next(&key)) {
    bool known;
    if (!ReadOriginalArrayMember(key, &array, &known) && (known || !UnknownKey(key, "an original array", kKeys))) {
      return false;
    }
  }
  if (!object.ok()) return false;
  if (!array.instruction.valid()) return Error(DiagnosticKind::kBadHeader, place, "missing name of an original array");
  *id = EncodeOriginalArray(&context(), array);
  return true;
}

// Reads a quoted module. As in HLO text, it must be valid, and its printed form is stored.
bool JsonModuleParser::ReadQuotedModule(StringId* text) {
  JsonString s;
  if (!in_.String(&s, "the text of a module in a string")) return false;
  *text = InternString(s);
  if (options_.quoted_module) return true;
  const absl::StatusOr<std::unique_ptr<Module>> quoted = ParseQuotedModule(s.value, options_);
  if (!quoted.ok()) {
    return Error(DiagnosticKind::kBadHeader, s.range,
                 StrCat("invalid nested module: ", std::string(quoted.status().message())));
  }
  *text = context().strings.Intern(ToString(**quoted));
  return true;
}

bool JsonModuleParser::ReadOriginRecoveryTable() {
  static constexpr std::string_view kKeys[] = {"removed", "replacement", "module"};
  std::vector<OriginRecoveryEntry>& table = module().header().origin_recovery_table;
  JsonArray array(in_, "a list: the recovery table");
  while (array.Next()) {
    const SourceRange place = in_.Next();
    OriginRecoveryEntry entry;
    uint32_t seen = 0;
    JsonObject object(in_, "an object: an entry of the recovery table");
    JsonString key;
    while (object.Next(&key)) {
      bool ok;
      switch (FindKey(key, "an entry of the recovery table", kKeys, &seen, &ok)) {
        case 0:
          ok = ReadOriginalArray(&entry.removed);
          break;
        case 1:
          ok = ReadOriginalArray(&entry.replacement);
          break;
        case 2:
          ok = ReadQuotedModule(&entry.module_text);
          break;
      }
      if (!ok) return false;
    }
    if (!object.ok()) return false;
    if ((seen & 3) != 3) {
      return Error(DiagnosticKind::kMissingAttribute, place,
                   "missing key `removed` or `replacement` in an entry of the recovery table");
    }
    table.push_back(entry);
  }
  SortOriginRecoveryTable(context(), &table);
  return array.ok();
}

bool JsonModuleParser::ReadDebugRecord(std::vector<int64_t>* records) {
  static constexpr std::string_view kKeys[] = {"log_mode", "callback_id", "partitioned", "op_id"};
  DebugLogMode mode = DebugLogMode::kUnset;
  int64_t callback_id = 0, op_id = 0;
  bool partitioned = false;
  const auto read_mode = [&] {
    JsonString s;
    if (!in_.String(&s, "a log mode")) return false;
    if (s.value == "default") mode = DebugLogMode::kDefault;
    if (s.value == "fusion_debugger") mode = DebugLogMode::kFusionDebugger;
    return mode != DebugLogMode::kUnset ||
           Error(DiagnosticKind::kBadHeader, s.range, "expected log mode default or fusion_debugger");
  };
  uint32_t seen = 0;
  JsonObject object(in_, "an object: debug attributes");
  JsonString key;
  while (object.Next(&key)) {
    bool ok;
    switch (FindKey(key, "debug attributes", kKeys, &seen, &ok)) {
      case 0:
        ok = read_mode();
        break;
      case 1:
        ok = in_.Int(&callback_id, "an integer");
        break;
      case 2:
        ok = in_.Bool(&partitioned, "true or false");
        break;
      case 3:
        ok = in_.Int(&op_id, "an integer");
        break;
    }
    if (!ok) return false;
  }
  records->insert(records->end(), {static_cast<int64_t>(mode), callback_id, partitioned ? 1 : 0, op_id});
  return object.ok();
}

bool JsonModuleParser::ReadDebugAttributes() {
  static constexpr std::string_view kKeys[] = {"instruction", "index", "records"};
  std::vector<DebugAttribute>& attributes = module().header().debug_attributes;
  JsonArray list(in_, "a list of debug attributes");
  while (list.Next()) {
    const SourceRange place = in_.Next();
    OriginalArray array;
    std::vector<int64_t> records;
    const auto read_records = [&] {
      JsonArray elements(in_, "a list of debug attributes");
      while (elements.Next()) {
        if (!ReadDebugRecord(&records)) return false;
      }
      return elements.ok();
    };
    JsonObject object(in_, "an object: debug attributes of an array");
    JsonString key;
    while (object.Next(&key)) {
      bool known = true;
      bool ok = key.value == "records" ? read_records() : ReadOriginalArrayMember(key, &array, &known);
      if (!known) ok = UnknownKey(key, "debug attributes of an array", kKeys);
      if (!ok) return false;
    }
    if (!object.ok()) return false;
    if (!array.instruction.valid())
      return Error(DiagnosticKind::kBadHeader, place, "missing name of an original array");
    attributes.push_back({EncodeOriginalArray(&context(), array), context().lists.Intern(records)});
  }
  SortDebugAttributes(&context(), &attributes);
  return list.ok();
}

// ---- stack frames ----

bool JsonModuleParser::ReadStrings(std::vector<StringId>* out) {
  JsonArray array(in_, "a list of strings");
  while (array.Next()) {
    JsonString s;
    if (!in_.String(&s, "a string")) return false;
    out->push_back(InternString(s));
  }
  return array.ok();
}

bool JsonModuleParser::ReadTable(absl::Span<const std::string_view> fields, std::vector<int64_t>* rows) {
  JsonArray array(in_, "a list of rows");
  while (array.Next()) {
    const SourceRange place = in_.Next();
    const size_t row = rows->size();
    rows->resize(row + fields.size());
    uint32_t seen = 0;
    JsonObject object(in_, "a row: an object");
    JsonString key;
    while (object.Next(&key)) {
      bool ok;
      const size_t i = FindKey(key, "the row", fields, &seen, &ok);
      if (i < fields.size()) ok = ReadInt32(&(*rows)[row + i], "an integer");
      if (!ok) return false;
    }
    if (!object.ok()) return false;
    for (size_t i = 0; i < fields.size(); ++i) {
      if ((seen >> i & 1) != 0) continue;
      return Error(DiagnosticKind::kMissingAttribute, place, StrCat("missing key `", fields[i], "` in a table row"));
    }
  }
  return array.ok();
}

bool JsonModuleParser::ReadStackFrames() {
  static constexpr std::string_view kKeys[] = {"file_names", "function_names", "file_locations", "stack_frames"};
  static constexpr std::string_view kLocation[] = {"file_name_id", "function_name_id", "line",
                                                   "end_line",     "column",           "end_column"};
  static constexpr std::string_view kFrame[] = {"file_location_id", "parent_frame_id"};
  StackFrames& s = module().header().stack_frames;
  std::vector<int64_t> locations, frames;
  uint32_t seen = 0;
  JsonObject object(in_, "an object: the tables of stack frames");
  JsonString key;
  while (object.Next(&key)) {
    bool ok;
    switch (FindKey(key, "the tables of stack frames", kKeys, &seen, &ok)) {
      case 0:
        ok = ReadStrings(&s.file_names);
        break;
      case 1:
        ok = ReadStrings(&s.function_names);
        break;
      case 2:
        ok = ReadTable(kLocation, &locations);
        break;
      case 3:
        ok = ReadTable(kFrame, &frames);
        break;
    }
    if (!ok) return false;
  }
  const auto at = [](const std::vector<int64_t>& list, size_t i) { return static_cast<int32_t>(list[i]); };
  for (size_t i = 0; i + 6 <= locations.size(); i += 6) {
    s.file_locations.push_back({at(locations, i), at(locations, i + 1), at(locations, i + 2), at(locations, i + 3),
                                at(locations, i + 4), at(locations, i + 5)});
  }
  for (size_t i = 0; i + 2 <= frames.size(); i += 2) s.stack_frames.push_back({at(frames, i), at(frames, i + 1)});
  return object.ok();
}

}  // namespace hlokit
