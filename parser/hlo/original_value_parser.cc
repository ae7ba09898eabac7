// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/original_value_parser.h"

#include <utility>

#include "ir/core/str_cat.h"
#include "ir/text/original_value.h"

namespace hlokit {
namespace {

// Parses `{"while" {1,0}}`, or `{}` for an array without a name.
bool ParseArray(TextCursor& in, Context* context, std::string* scratch, OriginalArray* array) {
  if (!in.Expect('{', "before an original array")) return false;
  if (in.TryConsume('}')) return true;
  std::string_view name;
  bool stable;
  if (!in.String(&name, scratch, &stable)) return false;
  if (!name.empty()) array->instruction = context->strings.Intern(name);
  if (in.TryConsume('{') && !in.TryConsume('}')) {
    do {
      if (!in.Int(&array->index.emplace_back())) return false;
    } while (in.TryConsume(','));
    if (!in.Expect('}', "after the index of an original array")) return false;
  }
  return in.Expect('}', "after an original array");
}

bool ParseNamedArray(TextCursor& in, Context* context, std::string* scratch, ListId* id) {
  const SourceRange range = in.Next();
  OriginalArray array;
  if (!ParseArray(in, context, scratch, &array)) return false;
  if (!array.instruction.valid())
    return in.Error(DiagnosticKind::kBadHeader, range, "missing name of an original array");
  *id = EncodeOriginalArray(context, array);
  return true;
}

// Parses `{log_mode=default,callback_id=1}`.
bool ParseDebugRecord(TextCursor& in, std::vector<int64_t>* records) {
  DebugLogMode mode = DebugLogMode::kUnset;
  int64_t callback_id = 0, op_id = 0;
  bool partitioned = false;
  if (!in.Expect('{', "before debug attributes")) return false;
  while (!in.TryConsume('}')) {
    const SourceRange range = in.Next();
    std::string_view name;
    if (!in.ExpectName(&name, "a debug attribute") || !in.Expect('=', "after a debug attribute")) return false;
    if (name == "log_mode") {
      const SourceRange value = in.Next();
      const std::string_view text = in.BareName();
      if (text == "default") {
        mode = DebugLogMode::kDefault;
      } else if (text == "fusion_debugger") {
        mode = DebugLogMode::kFusionDebugger;
      } else {
        return in.Error(DiagnosticKind::kBadHeader, value, "expected log mode default or fusion_debugger");
      }
    } else if (name == "callback_id") {
      if (!in.Int(&callback_id)) return false;
    } else if (name == "op_id") {
      if (!in.Int(&op_id)) return false;
    } else if (name == "partitioned") {
      if (!in.Bool(&partitioned)) return false;
    } else {
      return in.Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown debug attribute `", name, "`"),
                      "expected log_mode, callback_id, partitioned or op_id");
    }
    if (!in.TryConsume(',')) {
      if (!in.Expect('}', "after debug attributes")) return false;
      break;
    }
  }
  records->insert(records->end(), {static_cast<int64_t>(mode), callback_id, partitioned ? 1 : 0, op_id});
  return true;
}

}  // namespace

bool ParseOriginalValue(TextCursor& in, Context* context, ListId* id) {
  OriginalValue value;
  if (!in.Expect('{', "before an original value")) return false;
  if (in.TryConsume('[')) {
    if (!in.TryConsumeWord("synthetic_call")) {
      return in.ErrorHere(DiagnosticKind::kBadAttribute, StrCat("expected synthetic_call, found ", in.DescribeNext()));
    }
    value.synthetic_call = true;
    *id = EncodeOriginalValue(context, value);
    return in.Expect(']', "after synthetic_call") && in.Expect('}', "after an original value");
  }
  // Nesting is unbounded, so count open tuples instead of recursing.
  using Kind = OriginalValue::Kind;
  std::string scratch;
  int64_t depth = 0;
  do {
    // A value is next, or the end of an empty tuple.
    if (in.TryConsume('(')) {
      value.nodes.push_back({Kind::kOpen, {}});
      ++depth;
      if (!in.TryConsume(')')) continue;
      value.nodes.push_back({Kind::kClose, {}});
      --depth;
    } else {
      OriginalValue::Node& node = value.nodes.emplace_back();
      if (!ParseArray(in, context, &scratch, &node.array)) return false;
      if (node.array.instruction.valid()) {
        node.kind = Kind::kArray;
      } else {
        node.array.index.clear();  // empty array
      }
    }
    while (depth > 0 && !in.TryConsume(',')) {
      if (!in.Expect(')', "or `,` after an element of an original value")) return false;
      value.nodes.push_back({Kind::kClose, {}});
      --depth;
    }
  } while (depth > 0);
  *id = EncodeOriginalValue(context, value);
  return in.Expect('}', "after an original value");
}

bool ParseOriginRecoveryTable(TextCursor& in, Context* context, const KeepModuleText& keep,
                              std::vector<OriginRecoveryEntry>* table) {
  std::string scratch;
  if (!in.Expect('{', "before origin_recovery_table")) return false;
  while (!in.TryConsume('}')) {
    OriginRecoveryEntry entry;
    if (!ParseNamedArray(in, context, &scratch, &entry.removed) || !in.Expect(':', "after an original array") ||
        !ParseNamedArray(in, context, &scratch, &entry.replacement)) {
      return false;
    }
    if (in.TryConsume(',')) {
      const uint32_t start = in.Offset();
      std::string_view text;
      bool stable;
      if (!in.String(&text, &scratch, &stable)) return false;
      std::string kept(text);
      if (keep != nullptr && !keep(&kept, {start, in.Here() - start})) return false;
      entry.module_text = context->strings.Intern(kept);
    }
    table->push_back(entry);
  }
  SortOriginRecoveryTable(*context, table);
  return true;
}

bool ParseDebugAttributes(TextCursor& in, Context* context, std::vector<DebugAttribute>* attributes) {
  std::string scratch;
  std::vector<int64_t> records;
  if (!in.Expect('{', "before debug_attributes")) return false;
  if (in.TryConsume('}')) return true;
  do {
    DebugAttribute attribute;
    records.clear();
    if (!ParseNamedArray(in, context, &scratch, &attribute.array) || !in.Expect(':', "after an original array") ||
        !in.Expect('(', "before debug attributes")) {
      return false;
    }
    if (!in.TryConsume(')')) {
      do {
        if (!ParseDebugRecord(in, &records)) return false;
      } while (in.TryConsume(','));
      if (!in.Expect(')', "after debug attributes")) return false;
    }
    attribute.records = context->lists.Intern(records);
    attributes->push_back(attribute);
  } while (in.TryConsume(','));
  SortDebugAttributes(context, attributes);
  return in.Expect('}', "after debug_attributes");
}

}  // namespace hlokit
