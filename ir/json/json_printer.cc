// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_printer.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/graph/metadata_fields.h"
#include "ir/text/attribute_text.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/literal_text.h"
#include "ir/text/original_value.h"
#include "ir/text/printer.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/shape_text.h"
#include "ir/text/statistics_viz.h"
#include "ir/types/element_type.h"

namespace hlokit {
namespace {

// HLO text within the JSON, without the redundant `%`.
PrintOptions TextOptions() {
  PrintOptions options;
  options.print_percent = false;
  options.print_large_constants = true;
  return options;
}

class JsonPrinter {
 public:
  JsonPrinter(TextWriter& out, const Module& module)
      : json_(&out, JsonLayout::kCompact, JsonInvalidUtf8::kEscape),
        module_(module),
        context_(module.context()),
        options_(TextOptions()),
        attrs_(text_, module, options_) {}

  void Print();

 private:
  void String(std::string_view s) { json_.Value(s); }
  void String(StringId id) { json_.Value(context_.str(id)); }
  // Prints the shortest digits that parse to the same value of the type. Non-finite values are strings as in literals:
  // "inf", "-inf", "nan", "nan(0x1)".
  template <typename T>
  void Number(T value, ElementType type) {
    if (std::isfinite(value)) {
      char digits[32];
      json_.Raw() << std::string_view(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
      return;
    }
    TextWriter& out = json_.Raw();
    out << '"';
    AppendScalar(out, type, reinterpret_cast<const std::byte*>(&value));
    out << '"';
  }
  // Prints a string of the output of `print` to text_.
  template <typename Print>
  void Text(Print print) {
    buffer_.clear();
    print();
    text_.Flush();
    String(buffer_);
  }
  // Prints texts of shapes, literals and names, which need no escapes.
  void PlainString(std::string_view s) { json_.Raw() << '"' << s << '"'; }
  void ShapeText(ShapeId id) { PlainString(shapes_.Get(context_.shape(id), /*with_layout=*/true)); }
  void InstructionName(InstructionId id) { String(module_.record(id).name); }
  void ComputationName(ComputationId id) { String(module_.record(id).name); }
  template <typename Element>
  void Elements(absl::Span<const int64_t> list, Element element) {
    json_.BeginArray();
    for (int64_t v : list) element(v);
    json_.EndArray();
  }
  void Integers(absl::Span<const int64_t> list) {
    Elements(list, [this](int64_t v) { json_.Value(v); });
  }
  void Bools(absl::Span<const int64_t> list) {
    Elements(list, [this](int64_t v) { json_.Value(v != 0); });
  }
  void Names(absl::Span<const StringId> names, std::string_view line) {
    json_.BeginArray();
    for (StringId name : names) {
      json_.Line(line);
      String(name);
    }
    json_.EndArray();
  }
  template <typename Entries>
  void UnknownAttributes(const Entries& entries);
  void OriginalArrayMembers(ListId array);

  void Header();
  void AliasMembers();
  void OriginMembers();
  void StackFramesObject();
  void ComputationObject(Computation c);
  void InstructionObject(Instruction i);
  void Attributes(Instruction i);
  void Value(AttrValue value);
  // JsonForm::kValue, and its lists.
  void PlainValue(AttrType type, uint32_t payload);
  void ListValue(ElementKind kind, absl::Span<const int64_t> list);
  void MetadataObject(const Metadata& m);
  void FrontendAttributesObject(ListId id);
  void ResultAccuracyObject(ListId id);
  void StatisticsObject(ListId id);

  JsonWriter json_;
  const Module& module_;
  const Context& context_;
  const PrintOptions options_;
  std::string buffer_;
  TextWriter text_{&buffer_};
  AttributePrinter attrs_;
  ShapeTextCache shapes_;
};

// Prints pairs rather than members, since a name may come twice.
template <typename Entries>
void JsonPrinter::UnknownAttributes(const Entries& entries) {
  json_.BeginArray();
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    json_.BeginArray();
    for (size_t k = i; k < i + 2; ++k) {
      String(StringId(static_cast<uint32_t>(entries[k])));
    }
    json_.EndArray();
  }
  json_.EndArray();
}

void JsonPrinter::OriginalArrayMembers(ListId id) {
  const OriginalArray array = DecodeOriginalArray(context_, id);
  json_.Key("instruction");
  String(array.instruction);
  if (array.index.empty()) return;
  json_.Key("index");
  Integers(array.index);
}

// ---- header ----

void JsonPrinter::AliasMembers() {
  const ModuleHeader& h = module_.header();
  if (!h.input_output_alias.empty()) {
    json_.Key("input_output_alias").BeginArray();
    for (const InputOutputAlias& alias : h.input_output_alias) {
      json_.BeginObject();
      json_.Key("output_index");
      Integers(context_.list(alias.output_index));
      json_.Member("parameter", alias.parameter);
      json_.Key("parameter_index");
      Integers(context_.list(alias.parameter_index));
      json_.Member("must_alias", alias.must_alias);
      json_.EndObject();
    }
    json_.EndArray();
  }
  if (!h.buffer_donor.empty()) {
    json_.Key("buffer_donor").BeginArray();
    for (const BufferDonor& donor : h.buffer_donor) {
      json_.BeginObject();
      json_.Member("parameter", donor.parameter);
      json_.Key("parameter_index");
      Integers(context_.list(donor.parameter_index));
      json_.EndObject();
    }
    json_.EndArray();
  }
}

void JsonPrinter::OriginMembers() {
  const ModuleHeader& h = module_.header();
  if (!h.origin_recovery_table.empty()) {
    json_.Key("origin_recovery_table").BeginArray();
    for (const OriginRecoveryEntry& entry : h.origin_recovery_table) {
      json_.Line("\n      ").BeginObject();
      for (const auto& [key, array] :
           {std::pair{"removed", entry.removed}, std::pair{"replacement", entry.replacement}}) {
        json_.Key(key).BeginObject();
        OriginalArrayMembers(array);
        json_.EndObject();
      }
      if (entry.module_text.valid()) {
        json_.Key("module");
        String(entry.module_text);
      }
      json_.EndObject();
    }
    json_.EndArray();
  }
  if (!h.debug_attributes.empty()) {
    constexpr size_t kRecordSize = 4;
    json_.Key("debug_attributes").BeginArray();
    for (const DebugAttribute& attribute : h.debug_attributes) {
      json_.Line("\n      ").BeginObject();
      OriginalArrayMembers(attribute.array);
      json_.Key("records").BeginArray();
      const absl::Span<const int64_t> records = context_.list(attribute.records);
      for (size_t at = 0; at + kRecordSize <= records.size(); at += kRecordSize) {
        json_.BeginObject();
        switch (static_cast<DebugLogMode>(records[at])) {
          case DebugLogMode::kUnset:
            break;
          case DebugLogMode::kDefault:
            json_.Member("log_mode", "default");
            break;
          case DebugLogMode::kFusionDebugger:
            json_.Member("log_mode", "fusion_debugger");
            break;
        }
        if (records[at + 1] != 0) json_.Member("callback_id", records[at + 1]);
        if (records[at + 2] != 0) json_.Member("partitioned", true);
        if (records[at + 3] != 0) json_.Member("op_id", records[at + 3]);
        json_.EndObject();
      }
      json_.EndArray();
      json_.EndObject();
    }
    json_.EndArray();
  }
}

void JsonPrinter::Header() {
  const ModuleHeader& h = module_.header();
  json_.BeginObject();
  if (h.is_scheduled) json_.Member("is_scheduled", true);
  AliasMembers();
  if (h.alias_passthrough_params) json_.Member("alias_passthrough_params", true);
  if (h.entry_layout) {
    json_.Key("entry_computation_layout").BeginObject();
    json_.Key("parameters").BeginArray();
    for (Shape shape : h.entry_layout->parameters) ShapeText(shape.id());
    json_.EndArray();
    json_.Key("result");
    ShapeText(h.entry_layout->result.id());
    json_.EndObject();
  }
  const auto bools = [&](std::string_view key, ListId id) {
    if (!id.valid()) return;
    json_.Key(key);
    Bools(context_.list(id));
  };
  bools("allow_spmd_sharding_propagation_to_parameters", h.allow_spmd_sharding_propagation_to_parameters);
  bools("allow_spmd_sharding_propagation_to_output", h.allow_spmd_sharding_propagation_to_output);
  if (h.replica_count != 1) json_.Member("replica_count", h.replica_count);
  if (h.num_partitions != 1) json_.Member("num_partitions", h.num_partitions);
  if (h.frontend_attributes.valid()) {
    json_.Key("frontend_attributes");
    FrontendAttributesObject(h.frontend_attributes);
  }
  OriginMembers();
  if (!h.unknown_attributes.empty()) {
    json_.Key("unknown_attributes");
    std::vector<int64_t> ids;
    for (StringId id : h.unknown_attributes) ids.push_back(id.value);
    UnknownAttributes(ids);
  }
  json_.EndObject();
}

void JsonPrinter::StackFramesObject() {
  constexpr std::string_view kLine = "\n      ";
  const StackFrames& s = module_.header().stack_frames;
  json_.BeginObject();
  json_.Line("\n    ").Key("file_names");
  Names(s.file_names, kLine);
  json_.Line("\n    ").Key("function_names");
  Names(s.function_names, kLine);
  json_.Line("\n    ").Key("file_locations").BeginArray();
  for (const FileLocation& l : s.file_locations) {
    json_.Line(kLine).BeginObject();
    json_.Member("file_name_id", l.file_name_id);
    json_.Member("function_name_id", l.function_name_id);
    json_.Member("line", l.line);
    json_.Member("end_line", l.end_line);
    json_.Member("column", l.column);
    json_.Member("end_column", l.end_column);
    json_.EndObject();
  }
  json_.EndArray();
  json_.Line("\n    ").Key("stack_frames").BeginArray();
  for (const StackFrame& f : s.stack_frames) {
    json_.Line(kLine).BeginObject();
    json_.Member("file_location_id", f.file_location_id);
    json_.Member("parent_frame_id", f.parent_frame_id);
    json_.EndObject();
  }
  json_.EndArray();
  json_.EndObject();
}

void JsonPrinter::Print() {
  constexpr std::string_view kLine = "\n  ";
  json_.BeginObject();
  json_.Line(kLine).Member("format", kJsonFormat);
  json_.Line(kLine).Member("version", kJsonVersion);
  json_.Line(kLine).Key("name");
  String(module_.name());
  json_.Line(kLine).Key("header");
  Header();
  if (!module_.header().stack_frames.empty()) {
    json_.Line(kLine).Key("stack_frames");
    StackFramesObject();
  }
  if (module_.entry().valid()) {
    json_.Line(kLine).Key("entry");
    ComputationName(module_.entry().id());
  }
  json_.Line(kLine).Key("computations").BeginArray();
  for (Computation c : module_.computations()) {
    json_.Line("\n    ");
    ComputationObject(c);
  }
  json_.EndArray();
  json_.EndObject("\n");
}

// ---- computations and instructions ----

void JsonPrinter::ComputationObject(Computation c) {
  json_.BeginObject();
  json_.Key("name");
  ComputationName(c.id());
  if (c.record().execution_thread.valid()) {
    json_.Key("execution_thread");
    String(c.record().execution_thread);
  }
  json_.Key("root");
  InstructionName(c.record().root);
  json_.Key("instructions").BeginArray();
  for (Instruction i : c.instructions()) {
    json_.Line("\n      ");
    InstructionObject(i);
  }
  json_.EndArray();
  json_.EndObject();
}

void JsonPrinter::InstructionObject(Instruction i) {
  const InstructionRecord& r = i.record();
  json_.BeginObject();
  json_.Key("name");
  String(r.name);
  json_.Key("opcode");
  String(i.opcode_text());
  json_.Key("shape");
  ShapeText(r.shape);
  if (r.operand_count != 0) {
    json_.Key("operands").BeginArray();
    for (Instruction operand : i.operands()) {
      String(operand.record().name);
    }
    json_.EndArray();
  }
  if (r.opcode == Opcode::kParameter) {
    json_.Member("parameter", i.parameter_number());
  } else if (r.opcode == Opcode::kConstant) {
    if (i.literal().elided) {
      json_.Member("elided", true);
    } else {
      TextWriter& out = json_.Key("literal").Raw();
      out << '"';
      PrintLiteral(out, context_, i.literal_id());
      out << '"';
    }
  }
  bool any = false;
  absl::Span<const int64_t> unknown;
  for (const AttrValue& value : i.attrs()) {
    if (value.attr == Attr::kUnknownAttributes) {
      unknown = context_.list(ListId(value.payload));
    } else if (value.attr != Attr::kUnknownOpcode) {
      any = true;
    }
  }
  if (any) {
    json_.Key("attributes");
    Attributes(i);
  }
  if (!unknown.empty()) {
    json_.Key("unknown_attributes");
    UnknownAttributes(unknown);
  }
  if (r.metadata.valid()) {
    json_.Key("metadata");
    MetadataObject(i.metadata());
  }
  json_.EndObject();
}

void JsonPrinter::Attributes(Instruction i) {
  json_.BeginObject();
  for (const AttrValue& value : i.attrs()) {
    if (value.attr == Attr::kUnknownAttributes || value.attr == Attr::kUnknownOpcode) continue;
    json_.Key(ToString(value.attr));
    Value(value);
  }
  json_.EndObject();
}

void JsonPrinter::MetadataObject(const Metadata& m) {
  json_.BeginObject();
  for (const MetadataField& field : kMetadataFields) {
    if (field.string != nullptr && (m.*field.string).valid()) {
      json_.Key(field.name);
      String(m.*field.string);
    } else if (field.number != nullptr && m.*field.number != 0) {
      json_.Member(field.name, m.*field.number);
    } else if (field.list != nullptr && (m.*field.list).valid()) {
      json_.Key(field.name);
      Integers(context_.list(m.*field.list));
    } else if (field.flag != nullptr && m.*field.flag) {
      json_.Member(field.name, true);
    }
  }
  json_.EndObject();
}

void JsonPrinter::FrontendAttributesObject(ListId id) {
  json_.BeginObject();
  for (const auto& [key, value] : DecodeFrontendAttributes(context_, id)) {
    json_.Key(context_.str(key));
    String(value);
  }
  json_.EndObject();
}

// Returns true if the types with JsonForm::kObject are those that Value and the JSON parser know.
constexpr bool KnowsObjects() {
  for (size_t i = 0; i < kAttrTypeCount; ++i) {
    const auto type = static_cast<AttrType>(i);
    const bool known =
        type == AttrType::kFrontendAttributes || type == AttrType::kResultAccuracy || type == AttrType::kStatistics;
    if ((kAttrTypeInfo[i].json == JsonForm::kObject) != known) return false;
  }
  return true;
}
static_assert(KnowsObjects(), "a type written as an object needs functions here and in parser/json");

void JsonPrinter::Value(AttrValue value) {
  const AttrType type = InfoOf(value.attr).type;
  switch (InfoOf(type).json) {
    case JsonForm::kValue:
      PlainValue(type, value.payload);
      return;
    case JsonForm::kObject:
      if (type == AttrType::kFrontendAttributes) FrontendAttributesObject(ListId(value.payload));
      if (type == AttrType::kResultAccuracy) ResultAccuracyObject(ListId(value.payload));
      if (type == AttrType::kStatistics) StatisticsObject(ListId(value.payload));
      return;
    case JsonForm::kText:
      Text([&] { attrs_.PrintValue(value); });
      return;
    case JsonForm::kSeparately:
      return;
  }
}

void JsonPrinter::PlainValue(AttrType type, uint32_t payload) {
  switch (InfoOf(type).payload) {
    case PayloadKind::kBool:
      json_.Value(payload != 0);
      return;
    case PayloadKind::kInt64:
      json_.Value(module_.DecodeInt64(payload));
      return;
    case PayloadKind::kFloat:
      Number(std::bit_cast<float>(payload), ElementType::kF32);
      return;
    case PayloadKind::kString:
      String(StringId(payload));
      return;
    case PayloadKind::kComputation:
      ComputationName(ComputationId(payload));
      return;
    case PayloadKind::kShape:
      ShapeText(ShapeId(payload));
      return;
    case PayloadKind::kList:
      ListValue(InfoOf(type).elements, context_.list(ListId(payload)));
      return;
    case PayloadKind::kEnum:
    case PayloadKind::kLiteral:
    case PayloadKind::kMetadata:
      return;  // no type of these has JsonForm::kValue
  }
}

void JsonPrinter::ListValue(ElementKind kind, absl::Span<const int64_t> list) {
  const auto id = [](int64_t v) { return static_cast<uint32_t>(v); };
  switch (kind) {
    case ElementKind::kInteger:
      Integers(list);
      return;
    case ElementKind::kIntegerList: {
      json_.BeginArray();
      for (size_t i = 0; i < list.size(); i += 1 + static_cast<size_t>(list[i])) {
        Integers(list.subspan(i + 1, static_cast<size_t>(list[i])));
      }
      json_.EndArray();
      return;
    }
    case ElementKind::kBool:
      Bools(list);
      return;
    case ElementKind::kPrecision:
      Elements(list, [this](int64_t v) { PlainString(EnumTexts(EnumType::kPrecision)[static_cast<size_t>(v)]); });
      return;
    case ElementKind::kComputation:
      Elements(list, [&](int64_t v) { ComputationName(ComputationId(id(v))); });
      return;
    case ElementKind::kInstruction:
      Elements(list, [&](int64_t v) { InstructionName(InstructionId(id(v))); });
      return;
    case ElementKind::kShape:
      Elements(list, [&](int64_t v) { ShapeText(ShapeId(id(v))); });
      return;
    case ElementKind::kString:
      Elements(list, [&](int64_t v) { String(StringId(id(v))); });
      return;
    case ElementKind::kMixed:
    case ElementKind::kNone:
      return;  // no type of these has JsonForm::kValue
  }
}

void JsonPrinter::ResultAccuracyObject(ListId id) {
  // HLO text has six digits of the tolerances; JSON has them exactly.
  const ResultAccuracy accuracy = DecodeResultAccuracy(context_, id);
  json_.BeginObject();
  json_.Key("mode");
  PlainString(EnumTexts(EnumType::kResultAccuracyMode)[static_cast<size_t>(accuracy.mode)]);
  if (accuracy.mode == ResultAccuracyMode::kTolerance) {
    json_.Key("atol");
    Number(accuracy.atol, ElementType::kF64);
    json_.Key("rtol");
    Number(accuracy.rtol, ElementType::kF64);
    json_.Member("ulps", accuracy.ulps);
  }
  json_.EndObject();
}

void JsonPrinter::StatisticsObject(ListId id) {
  const StatisticsViz statistics = DecodeStatisticsViz(context_, id);
  json_.BeginObject();
  json_.Member("visualizing_index", statistics.visualizing_index);
  json_.Key("values").BeginArray();
  for (const auto& [name, number] : statistics.values) {
    json_.BeginArray();
    String(name);
    Number(number, ElementType::kF64);
    json_.EndArray();
  }
  json_.EndArray();
  json_.EndObject();
}

}  // namespace

void PrintJson(TextWriter& out, const Module& module) {
  JsonPrinter(out, module).Print();
  out << '\n';
}

std::string ToJson(const Module& module) {
  std::string text;
  {
    TextWriter out(&text);
    PrintJson(out, module);
  }
  return text;
}

}  // namespace hlokit
