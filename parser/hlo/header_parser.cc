// SPDX-License-Identifier: Apache-2.0
// The header line of a module, and the stack-frame tables after it.
#include <algorithm>
#include <cstring>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/text/printer.h"
#include "parser/hlo/frontend_attributes_parser.h"
#include "parser/hlo/list_parser.h"
#include "parser/hlo/module_parser.h"
#include "parser/hlo/original_value_parser.h"
#include "parser/hlo/quoted_module.h"

namespace hlokit {
namespace {

constexpr std::string_view kHeaderAttributes[] = {"is_scheduled",
                                                  "replica_count",
                                                  "num_partitions",
                                                  "input_output_alias",
                                                  "buffer_donor",
                                                  "alias_passthrough_params",
                                                  "entry_computation_layout",
                                                  "frontend_attributes",
                                                  "allow_spmd_sharding_propagation_to_parameters",
                                                  "allow_spmd_sharding_propagation_to_output",
                                                  "origin_recovery_table",
                                                  "debug_attributes"};

}  // namespace

bool ModuleParser::ParseHeader() {
  std::string_view name;
  if (!in_.ExpectName(&name, "the name of the module")) return false;
  module_->header().name = InternView(name);
  in_.TryConsume(':');  // XLA parses a colon after a name as part of it
  while (in_.TryConsume(',')) {
    const SourceRange range = in_.Next();
    std::string_view attribute;
    if (!in_.ExpectName(&attribute, "a module attribute") || !in_.Expect('=', "after the name of an attribute")) {
      return false;
    }
    if (!ParseHeaderAttribute(attribute, range)) return false;
  }
  return true;
}

bool ModuleParser::ParseHeaderAttribute(std::string_view name, SourceRange range) {
  ModuleHeader& h = module_->header();
  const auto bool_list = [this](ListId* id) {
    list_.clear();
    if (!ParseBools(in_, &list_, /*allow_single=*/true)) return false;
    *id = context_->lists.Intern(list_);
    return true;
  };
  const auto count = [&](int64_t* value) {
    if (!in_.Int(value)) return false;
    return *value >= 1 || Error(DiagnosticKind::kBadHeader, range, StrCat("`", name, "` must be at least 1"));
  };
  if (name == "is_scheduled") return in_.Bool(&h.is_scheduled);
  if (name == "replica_count") return count(&h.replica_count);
  if (name == "num_partitions") return count(&h.num_partitions);
  if (name == "alias_passthrough_params") return in_.Bool(&h.alias_passthrough_params);
  if (name == "input_output_alias") return ParseInputOutputAlias();
  if (name == "buffer_donor") return ParseBufferDonor();
  if (name == "entry_computation_layout") return ParseEntryLayout();
  if (name == "frontend_attributes") return ParseFrontendAttributes(in_, context_.get(), &h.frontend_attributes);
  if (name == "allow_spmd_sharding_propagation_to_parameters") {
    return bool_list(&h.allow_spmd_sharding_propagation_to_parameters);
  }
  if (name == "allow_spmd_sharding_propagation_to_output") {
    return bool_list(&h.allow_spmd_sharding_propagation_to_output);
  }
  if (name == "origin_recovery_table") {
    // The table quotes modules; XLA parses them and keeps what it prints of them. Nested quotes are unchanged.
    const auto keep = [this](std::string* text, SourceRange range) {
      if (options_.quoted_module) return true;
      const absl::StatusOr<std::unique_ptr<Module>> quoted = ParseQuotedModule(*text, options_);
      if (!quoted.ok()) {
        return Error(DiagnosticKind::kBadHeader, range,
                     StrCat("invalid nested module: ", std::string(quoted.status().message())));
      }
      *text = ToString(**quoted);
      return true;
    };
    return ParseOriginRecoveryTable(in_, context_.get(), keep, &h.origin_recovery_table);
  }
  if (name == "debug_attributes") return ParseDebugAttributes(in_, context_.get(), &h.debug_attributes);
  std::string hint = DidYouMean(name, {std::begin(kHeaderAttributes), std::end(kHeaderAttributes)});
  if (!options_.allow_unknown) {
    return Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown module attribute `", name, "`"), hint);
  }
  sink_->Warning(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown module attribute `", name, "`; preserved"),
                 hint);
  h.unknown_attributes.push_back(InternView(name));
  h.unknown_attributes.push_back(InternView(in_.RawValue()));
  return true;
}

bool ModuleParser::ParseShapeIndex(ListId* index) {
  list_.clear();
  if (!ParseIntegers(in_, '{', '}', &list_)) return false;
  *index = context_->lists.Intern(list_);
  return true;
}

bool ModuleParser::ParseInputOutputAlias() {
  std::vector<InputOutputAlias>& aliases = module_->header().input_output_alias;
  if (!in_.Expect('{', "before aliasing")) return false;
  while (in_.Peek() != '}') {
    const SourceRange range = in_.Next();
    InputOutputAlias alias;
    if (!ParseShapeIndex(&alias.output_index) || !in_.Expect(':', "after an output index") ||
        !in_.Expect('(', "before a parameter number") || !in_.Int(&alias.parameter) ||
        !in_.Expect(',', "after a parameter number") || !ParseShapeIndex(&alias.parameter_index)) {
      return false;
    }
    if (in_.TryConsume(',')) {
      if (in_.TryConsumeWord("must-alias")) {
        alias.must_alias = true;
      } else if (!in_.TryConsumeWord("may-alias")) {
        return in_.ErrorHere(DiagnosticKind::kBadHeader,
                             StrCat("expected may-alias or must-alias, found ", in_.DescribeNext()));
      }
    }
    if (!in_.Expect(')', "at the end of an alias")) return false;
    for (const InputOutputAlias& other : aliases) {
      if (aliases.size() > 4096) break;  // the verifier checks all
      if (other.output_index == alias.output_index) {
        return Error(DiagnosticKind::kBadHeader, range, "duplicate alias of an output");
      }
    }
    aliases.push_back(alias);
    if (!in_.TryConsume(',')) break;
  }
  std::stable_sort(aliases.begin(), aliases.end(), [this](const InputOutputAlias& a, const InputOutputAlias& b) {
    const auto x = context_->list(a.output_index), y = context_->list(b.output_index);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  return in_.Expect('}', "after aliasing");
}

bool ModuleParser::ParseBufferDonor() {
  std::vector<BufferDonor>& donors = module_->header().buffer_donor;
  if (!in_.Expect('{', "before buffer donors")) return false;
  while (in_.Peek() != '}') {
    BufferDonor donor;
    if (!in_.Expect('(', "before a parameter number") || !in_.Int(&donor.parameter) ||
        !in_.Expect(',', "after a parameter number") || !ParseShapeIndex(&donor.parameter_index) ||
        !in_.Expect(')', "at the end of a buffer donor")) {
      return false;
    }
    donors.push_back(donor);
    if (!in_.TryConsume(',')) break;
  }
  std::stable_sort(donors.begin(), donors.end(), [this](const BufferDonor& a, const BufferDonor& b) {
    if (a.parameter != b.parameter) return a.parameter < b.parameter;
    const auto x = context_->list(a.parameter_index), y = context_->list(b.parameter_index);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  return in_.Expect('}', "after buffer donors");
}

bool ModuleParser::ParseEntryLayout() {
  EntryLayout layout;
  if (!in_.Expect('{', "before the entry layout") || !in_.Expect('(', "before the parameter shapes")) return false;
  if (!in_.TryConsume(')')) {
    do {
      if (!shapes_.Parse(&layout.parameters.emplace_back())) return false;
    } while (in_.TryConsume(','));
    if (!in_.Expect(')', "after the parameter shapes")) return false;
  }
  if (!in_.TryConsume("->")) {
    return in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                         StrCat("expected `->` before the result shape, found ", in_.DescribeNext()));
  }
  if (!shapes_.Parse(&layout.result)) return false;
  module_->header().entry_layout = std::move(layout);
  return in_.Expect('}', "after the entry layout");
}

// Parses `{name=int name=int ...}` as XLA prints it: each field once, in order, separated by a space. Returns false,
// with nothing consumed, for anything else.
bool ModuleParser::TakeFieldsInOrder(absl::Span<const std::string_view> fields, absl::Span<int64_t> values) {
  if (in_.Peek() != '{') return false;
  const char* p = in_.cursor();
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string_view name = fields[i];
    // After the brace or space: the name, `=`, and the text after the number.
    if (static_cast<size_t>(in_.end() - p) < name.size() + 3) return false;
    if (*p != (i == 0 ? '{' : ' ') || std::memcmp(p + 1, name.data(), name.size()) != 0) return false;
    p += name.size() + 1;
    if (*p++ != '=') return false;
    const char* const digits = p;
    int64_t number = 0;
    for (; char_class::IsDigit(*p) && p - digits < 9; ++p) number = number * 10 + (*p - '0');
    if (p == digits) return false;
    values[i] = number;
  }
  if (*p != '}') return false;
  in_.set_cursor(p + 1);
  return true;
}

bool ModuleParser::ParseIndexedFields(absl::Span<const std::string_view> fields, absl::Span<int64_t> values) {
  if (TakeFieldsInOrder(fields, values)) return true;
  if (!in_.Expect('{', "before the fields of a table entry")) return false;
  uint64_t seen = 0;
  while (!in_.TryConsume('}')) {
    const SourceRange range = in_.Next();
    std::string_view name;
    if (!in_.ExpectName(&name, "a field") || !in_.Expect('=', "after the name of a field")) return false;
    size_t i = 0;
    while (i < fields.size() && fields[i] != name) ++i;
    if (i == fields.size()) {
      return Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown field `", name, "` in a table entry"));
    }
    if (!in_.Int(&values[i])) return false;
    if (values[i] < INT32_MIN || values[i] > INT32_MAX) {
      return Error(DiagnosticKind::kNumberOutOfRange, range, StrCat("`", name, "` does not fit in 32 bits"));
    }
    seen |= uint64_t{1} << i;
    in_.TryConsume(',');
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if ((seen >> i & 1) == 0) {
      return in_.ErrorHere(DiagnosticKind::kMissingAttribute,
                           StrCat("missing field `", fields[i], "` in a table entry"));
    }
  }
  return true;
}

bool ModuleParser::ParseStackFrames() {
  if (!in_.TryConsumeWord("FileNames")) return true;
  StackFrames& frames = module_->header().stack_frames;
  const auto names = [this](std::vector<StringId>* out) {
    while (in_.AtInt()) {
      int64_t number;
      if (!in_.Int(&number) || !attribute_parser_.ParseString(&out->emplace_back())) return false;
    }
    return true;
  };
  const auto section = [this](std::string_view word) {
    if (in_.TryConsumeWord(word)) return true;
    return in_.ErrorHere(DiagnosticKind::kBadHeader,
                         StrCat("expected the table ", word, ", found ", in_.DescribeNext()));
  };
  if (!names(&frames.file_names) || !section("FunctionNames") || !names(&frames.function_names) ||
      !section("FileLocations")) {
    return false;
  }
  static constexpr std::string_view kLocation[] = {"file_name_id", "function_name_id", "line",
                                                   "end_line",     "column",           "end_column"};
  static constexpr std::string_view kFrame[] = {"file_location_id", "parent_frame_id"};
  int64_t number;
  while (in_.AtInt()) {
    int64_t v[6] = {};
    if (!in_.Int(&number) || !ParseIndexedFields(kLocation, absl::MakeSpan(v))) return false;
    frames.file_locations.push_back({static_cast<int32_t>(v[0]), static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2]),
                                     static_cast<int32_t>(v[3]), static_cast<int32_t>(v[4]),
                                     static_cast<int32_t>(v[5])});
  }
  if (!section("StackFrames")) return false;
  while (in_.AtInt()) {
    int64_t v[2] = {};
    if (!in_.Int(&number) || !ParseIndexedFields(kFrame, absl::MakeSpan(v))) return false;
    frames.stack_frames.push_back({static_cast<int32_t>(v[0]), static_cast<int32_t>(v[1])});
  }
  return true;
}

}  // namespace hlokit
