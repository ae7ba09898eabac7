// SPDX-License-Identifier: Apache-2.0
#include "ir/text/original_value.h"

#include <algorithm>
#include <string_view>

#include "ir/sharding/tile_assignment.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

constexpr int64_t kSyntheticCall = -1;
constexpr size_t kRecordSize = 4;  // of a debug attribute

// Prints `{"while" {1,0}}`.
void PrintArray(TextWriter& out, const Context& context, StringId instruction, absl::Span<const int64_t> index) {
  out << '{';
  PrintQuoted(out, context.str(instruction));
  if (!index.empty()) {
    out << " {";
    PrintInts(out, index);
    out << '}';
  }
  out << '}';
}

void PrintArray(TextWriter& out, const Context& context, ListId array) {
  const absl::Span<const int64_t> list = context.list(array);
  PrintArray(out, context, StringId(static_cast<uint32_t>(list[0])), list.subspan(1));
}

bool ArrayBefore(const Context& context, ListId a, ListId b) {
  const absl::Span<const int64_t> x = context.list(a), y = context.list(b);
  if (x[0] != y[0]) {
    return context.str(StringId(static_cast<uint32_t>(x[0]))) < context.str(StringId(static_cast<uint32_t>(y[0])));
  }
  return std::lexicographical_compare(x.begin() + 1, x.end(), y.begin() + 1, y.end());
}

// Prints a quoted module with indented lines. For readability only characters that could end the quotes are escaped.
void PrintModuleText(TextWriter& out, std::string_view text) {
  out << "  \"\n";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end != 0) out << "    ";
    for (char c : text.substr(0, end)) {
      if (c == '"' || c == '\\') out << '\\';
      out << c;
    }
    out << '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out << "\n  \"";
}

}  // namespace

ListId EncodeOriginalArray(Context* context, const OriginalArray& array) {
  std::vector<int64_t> list = {array.instruction.value};
  list.insert(list.end(), array.index.begin(), array.index.end());
  return context->lists.Intern(list);
}

OriginalArray DecodeOriginalArray(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  return {StringId(static_cast<uint32_t>(list[0])), {list.begin() + 1, list.end()}};
}

ListId EncodeOriginalValue(Context* context, const OriginalValue& value) {
  if (value.synthetic_call) return context->lists.Intern({kSyntheticCall});
  std::vector<int64_t> list;
  for (const OriginalValue::Node& node : value.nodes) {
    list.push_back(static_cast<int64_t>(node.kind));
    if (node.kind != OriginalValue::Kind::kArray) continue;
    list.push_back(static_cast<int64_t>(node.array.index.size()));
    list.push_back(node.array.instruction.value);
    list.insert(list.end(), node.array.index.begin(), node.array.index.end());
  }
  return context->lists.Intern(list);
}

OriginalValue DecodeOriginalValue(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  OriginalValue value;
  value.synthetic_call = !list.empty() && list[0] == kSyntheticCall;
  if (value.synthetic_call) return value;
  for (size_t at = 0; at < list.size();) {
    OriginalValue::Node& node = value.nodes.emplace_back();
    node.kind = static_cast<OriginalValue::Kind>(list[at++]);
    if (node.kind != OriginalValue::Kind::kArray) continue;
    const auto n = static_cast<size_t>(list[at]);
    node.array.instruction = StringId(static_cast<uint32_t>(list[at + 1]));
    const absl::Span<const int64_t> index = list.subspan(at + 2, n);
    node.array.index.assign(index.begin(), index.end());
    at += 2 + n;
  }
  return value;
}

void PrintOriginalValue(TextWriter& out, const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  out << '{';
  if (!list.empty() && list[0] == kSyntheticCall) {
    out << "[synthetic_call]}";
    return;
  }
  bool first = true;  // of its tuple
  for (size_t at = 0; at < list.size();) {
    const auto kind = static_cast<OriginalValue::Kind>(list[at++]);
    if (kind != OriginalValue::Kind::kClose && !first) out << ", ";
    first = kind == OriginalValue::Kind::kOpen;
    switch (kind) {
      case OriginalValue::Kind::kOpen:
        out << '(';
        break;
      case OriginalValue::Kind::kClose:
        out << ')';
        break;
      case OriginalValue::Kind::kUnknown:
        out << "{}";
        break;
      case OriginalValue::Kind::kArray: {
        const auto n = static_cast<size_t>(list[at]);
        PrintArray(out, context, StringId(static_cast<uint32_t>(list[at + 1])), list.subspan(at + 2, n));
        at += 2 + n;
        break;
      }
    }
  }
  out << '}';
}

void SortOriginRecoveryTable(const Context& context, std::vector<OriginRecoveryEntry>* table) {
  std::stable_sort(table->begin(), table->end(),
                   [&context](const auto& a, const auto& b) { return ArrayBefore(context, a.removed, b.removed); });
  const auto same = [](const auto& a, const auto& b) { return a.removed == b.removed; };
  table->erase(std::unique(table->begin(), table->end(), same), table->end());
}

void SortDebugAttributes(Context* context, std::vector<DebugAttribute>* attributes) {
  std::stable_sort(attributes->begin(), attributes->end(),
                   [context](const auto& a, const auto& b) { return ArrayBefore(*context, a.array, b.array); });
  std::vector<DebugAttribute> merged;
  std::vector<int64_t> records;
  for (size_t i = 0; i < attributes->size();) {
    const ListId array = (*attributes)[i].array;
    records.clear();
    for (; i < attributes->size() && (*attributes)[i].array == array; ++i) {
      const absl::Span<const int64_t> more = context->list((*attributes)[i].records);
      records.insert(records.end(), more.begin(), more.end());
    }
    if (!records.empty()) merged.push_back({array, context->lists.Intern(records)});
  }
  *attributes = std::move(merged);
}

void PrintOriginRecoveryTable(TextWriter& out, const Context& context, absl::Span<const OriginRecoveryEntry> table) {
  out << "{\n";
  for (const OriginRecoveryEntry& entry : table) {
    out << "  ";
    PrintArray(out, context, entry.removed);
    out << " : ";
    PrintArray(out, context, entry.replacement);
    if (entry.module_text.valid()) {
      out << ",\n";
      PrintModuleText(out, context.str(entry.module_text));
    }
    out << '\n';
  }
  out << "}\n";
}

void PrintDebugAttributes(TextWriter& out, const Context& context, absl::Span<const DebugAttribute> attributes) {
  out << "{\n";
  for (size_t i = 0; i < attributes.size(); ++i) {
    out << "  ";
    PrintArray(out, context, attributes[i].array);
    out << ":(";
    const absl::Span<const int64_t> records = context.list(attributes[i].records);
    for (size_t at = 0; at + kRecordSize <= records.size(); at += kRecordSize) {
      out << (at == 0 ? "{" : ",{");
      std::string_view comma = "";
      const auto field = [&](std::string_view text) -> TextWriter& {
        out << comma << text;
        comma = ",";
        return out;
      };
      switch (static_cast<DebugLogMode>(records[at])) {
        case DebugLogMode::kUnset:
          break;
        case DebugLogMode::kDefault:
          field("log_mode=default");
          break;
        case DebugLogMode::kFusionDebugger:
          field("log_mode=fusion_debugger");
          break;
      }
      if (records[at + 1] != 0) field("callback_id=") << records[at + 1];
      if (records[at + 2] != 0) field("partitioned=true");
      if (records[at + 3] != 0) field("op_id=") << records[at + 3];
      out << '}';
    }
    out << (i + 1 == attributes.size() ? ")\n" : "),\n");
  }
  out << '}';
}

}  // namespace hlokit
