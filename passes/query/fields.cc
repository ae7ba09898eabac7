// SPDX-License-Identifier: Apache-2.0
#include "passes/query/fields.h"

#include <algorithm>
#include <charconv>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "passes/analysis/cost_key.h"
#include "passes/rewrite/splat.h"

namespace hlokit::query {
namespace {

FieldValue Number(int64_t value) { return static_cast<double>(value); }
FieldValue Text(std::string_view text) {
  if (text.empty()) return Absent();
  return std::string(text);
}
FieldValue TextOf(Instruction i, StringId id) { return Text(i.module().context().str(id)); }

std::string LayoutText(Shape shape) {
  const std::string with = ToString(shape), without = ToString(shape, /*with_layout=*/false);
  return shape.IsArray() && with.size() > without.size() ? with.substr(without.size()) : "";
}

struct Row {
  std::string_view name;
  FieldType type;
  std::string_view meaning;
  FieldValue (*read)(Instruction i, FieldContext* context);
};

constexpr Row kRows[] = {
    {"name", FieldType::kText, "the name of the instruction",
     [](Instruction i, FieldContext*) { return Text(i.name()); }},
    {"opcode", FieldType::kText, "the opcode", [](Instruction i, FieldContext*) { return Text(i.opcode_text()); }},
    {"computation", FieldType::kText, "the name of the computation",
     [](Instruction i, FieldContext*) { return Text(i.parent().name()); }},
    {"entry", FieldType::kBool, "in the entry computation",
     [](Instruction i, FieldContext*) -> FieldValue { return i.parent().is_entry(); }},
    {"root", FieldType::kBool, "the root of its computation",
     [](Instruction i, FieldContext*) -> FieldValue { return i.is_root(); }},
    {"scope", FieldType::kText, "op_name of the metadata",
     [](Instruction i, FieldContext*) { return TextOf(i, i.metadata().op_name); }},
    {"op_type", FieldType::kText, "op_type of the metadata",
     [](Instruction i, FieldContext*) { return TextOf(i, i.metadata().op_type); }},
    {"line", FieldType::kText, "FILE:LINE of the source program",
     [](Instruction i, FieldContext*) -> FieldValue {
       std::string line = KeyOf(i, CostKey::kSourceLine);
       if (line == "(none)") return Absent();
       return line;
     }},
    {"shape", FieldType::kText, "the shape without layout: f32[2,3]",
     [](Instruction i, FieldContext*) { return Text(ToString(i.shape(), /*with_layout=*/false)); }},
    {"layout", FieldType::kText, "the layout of an array: {1,0:T(8,128)}",
     [](Instruction i, FieldContext*) { return Text(LayoutText(i.shape())); }},
    {"type", FieldType::kText, "the element type of an array",
     [](Instruction i, FieldContext*) -> FieldValue {
       if (!i.shape().IsArray()) return Absent();
       return std::string(ToString(i.shape().element_type()));
     }},
    {"rank", FieldType::kNumber, "the number of dimensions of an array; dim0, dim1, ... are their sizes",
     [](Instruction i, FieldContext*) -> FieldValue {
       if (!i.shape().IsArray()) return Absent();
       return Number(i.shape().rank());
     }},
    {"elements", FieldType::kNumber, "the number of elements of an array",
     [](Instruction i, FieldContext*) -> FieldValue {
       if (!i.shape().IsArray() || i.shape().element_count() < 0) return Absent();
       return Number(i.shape().element_count());
     }},
    {"result_bytes", FieldType::kNumber, "the bytes of the result, of a tuple those of all elements",
     [](Instruction i, FieldContext*) { return Number(ByteSize(i.shape())); }},
    {"bytes", FieldType::kNumber, "the same as result_bytes",
     [](Instruction i, FieldContext*) { return Number(ByteSize(i.shape())); }},
    {"memory_space", FieldType::kNumber, "S(N) of the layout",
     [](Instruction i, FieldContext*) -> FieldValue {
       const LayoutRecord* const layout = i.shape().IsArray() ? i.shape().layout() : nullptr;
       return Number(layout == nullptr ? 0 : layout->memory_space());
     }},
    {"operands", FieldType::kNumber, "the number of operands",
     [](Instruction i, FieldContext*) { return Number(i.operand_count()); }},
    {"users", FieldType::kNumber, "the number of instructions that read it",
     [](Instruction i, FieldContext*) { return Number(static_cast<int64_t>(i.users().size())); }},
    {"flops", FieldType::kNumber, "its operations, with those of the computations that it calls",
     [](Instruction i, FieldContext* c) { return Number(c->costs().Of(i).flops); }},
    {"transcendentals", FieldType::kNumber, "its transcendental functions, as flops",
     [](Instruction i, FieldContext* c) { return Number(c->costs().Of(i).transcendentals); }},
    {"bytes_accessed", FieldType::kNumber, "the bytes that it reads and writes, as flops",
     [](Instruction i, FieldContext* c) { return Number(c->costs().Of(i).bytes()); }},
    {"parameter", FieldType::kNumber, "the number of a parameter",
     [](Instruction i, FieldContext*) -> FieldValue {
       if (i.opcode() != Opcode::kParameter) return Absent();
       return Number(i.parameter_number());
     }},
    {"value", FieldType::kNumber, "the value of a constant, or a broadcast of one, whose elements are equal",
     [](Instruction i, FieldContext*) -> FieldValue {
       const std::optional<Splat> splat = SplatOf(i);
       const std::optional<double> value = splat ? splat->AsDouble() : std::nullopt;
       if (!value) return Absent();
       return *value;
     }},
};

std::string_view TypeName(FieldType type) {
  return type == FieldType::kNumber ? "number" : type == FieldType::kBool ? "bool" : "text";
}

}  // namespace

const CostAnalysis& FieldContext::costs() {
  if (costs_ == nullptr) costs_ = std::make_unique<CostAnalysis>(*module_);
  return *costs_;
}

std::optional<Field> Field::Find(std::string_view name) {
  Field field;
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    field.type_ = row.type;
    field.read_ = row.read;
    return field;
  }
  if (name.size() > 3 && name.size() < 6 && name.starts_with("dim")) {
    const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), field.dimension_);
    if (error == std::errc() && end == name.data() + name.size() && field.dimension_ >= 0) return field;
    field.dimension_ = -1;
  }
  for (size_t k = 0; k < kAttrCount; ++k) {
    const auto attr = static_cast<Attr>(k);
    if (ToString(attr) != name) continue;
    field.attr_ = attr;
    const PayloadKind payload = InfoOf(InfoOf(attr).type).payload;
    if (payload == PayloadKind::kBool) {
      field.type_ = FieldType::kBool;
    } else if (payload == PayloadKind::kInt64 || payload == PayloadKind::kFloat) {
      field.type_ = FieldType::kNumber;
    } else {
      field.type_ = FieldType::kText;
    }
    field.read_ = nullptr;
    return field;
  }
  return std::nullopt;
}

std::vector<std::string_view> Field::Names() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  for (size_t k = 0; k < kAttrCount; ++k) names.push_back(ToString(static_cast<Attr>(k)));
  return names;
}

FieldValue Field::Of(Instruction i, FieldContext* context) const {
  if (read_ != nullptr) return read_(i, context);
  if (dimension_ >= 0) {
    if (dimension_ >= i.shape().rank() || i.shape().is_unbounded(dimension_)) return Absent();
    return Number(i.shape().dim(dimension_));
  }
  const std::optional<uint32_t> payload = i.payload(attr_);
  if (!payload) return Absent();
  switch (type_) {
    case FieldType::kBool:
      return *payload != 0;
    case FieldType::kNumber:
      return InfoOf(InfoOf(attr_).type).payload == PayloadKind::kFloat ? static_cast<double>(i.float_attr(attr_))
                                                                       : static_cast<double>(i.int_attr(attr_));
    case FieldType::kText:
      break;
  }
  if (InfoOf(InfoOf(attr_).type).payload == PayloadKind::kString) return std::string(i.string_attr(attr_));
  std::string text;
  {
    TextWriter out(&text);
    PrintAttrValue(out, i.module(), {attr_, *payload});
  }
  return text;
}

std::string DescribeFields() {
  std::string out;
  for (const Row& row : kRows) {
    StrAppend(&out, row.name, std::string(17 - row.name.size(), ' '), TypeName(row.type),
              std::string(8 - TypeName(row.type).size(), ' '), row.meaning, "\n");
  }
  return out;
}

}  // namespace hlokit::query
