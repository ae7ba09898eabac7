// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_printer.h"

#include <bit>
#include <vector>

#include "ir/graph/metadata_fields.h"
#include "ir/json/json_text.h"
#include "ir/text/attribute_text.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/literal_text.h"
#include "ir/text/original_value.h"
#include "ir/text/printer.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/shape_text.h"
#include "ir/text/statistics_viz.h"

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
      : out_(out),
        module_(module),
        context_(module.context()),
        options_(TextOptions()),
        attrs_(text_, module, options_) {}

  void Print();

 private:
  // An object or array being printed: adds commas between its members or elements.
  class List {
   public:
    List(TextWriter& out, char open) : out_(out), close_(open == '{' ? '}' : ']') { out_ << open; }
    ~List() { out_ << close_; }
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    // Starts an element; `line` begins an indented line of its own.
    void Next(std::string_view line = "") {
      if (!first_) out_ << ',';
      first_ = false;
      out_ << line;
    }
    // Starts a member. Keys are words and need no escapes.
    TextWriter& Key(std::string_view key, std::string_view line = "") {
      Next(line);
      return out_ << '"' << key << "\":";
    }

   private:
    TextWriter& out_;
    char close_;
    bool first_ = true;
  };

  void String(std::string_view s) { PrintJsonString(out_, s); }
  void String(StringId id) { PrintJsonString(out_, context_.str(id)); }
  // Prints a string of the output of `print` to text_.
  template <typename Print>
  void Text(Print print) {
    buffer_.clear();
    print();
    text_.Flush();
    String(buffer_);
  }
  // Prints texts of shapes, literals and names, which need no escapes.
  void PlainString(std::string_view s) { out_ << '"' << s << '"'; }
  void ShapeText(ShapeId id) { PlainString(shapes_.Get(context_.shape(id), /*with_layout=*/true)); }
  void InstructionName(InstructionId id) { String(module_.record(id).name); }
  void ComputationName(ComputationId id) { String(module_.record(id).name); }
  template <typename Element>
  void Elements(absl::Span<const int64_t> list, Element element) {
    List elements(out_, '[');
    for (int64_t v : list) {
      elements.Next();
      element(v);
    }
  }
  void Integers(absl::Span<const int64_t> list) {
    Elements(list, [this](int64_t v) { out_ << v; });
  }
  void Bools(absl::Span<const int64_t> list) {
    Elements(list, [this](int64_t v) { out_ << (v != 0 ? "true" : "false"); });
  }
  void Names(absl::Span<const StringId> names, std::string_view line) {
    List elements(out_, '[');
    for (StringId name : names) {
      elements.Next(line);
      String(name);
    }
  }
  template <typename Entries>
  void UnknownAttributes(const Entries& entries);
  void OriginalArrayMembers(List& object, ListId array);

  void Header();
  void AliasMembers(List& header);
  void OriginMembers(List& header);
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

  TextWriter& out_;
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
  List list(out_, '[');
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    list.Next();
    List pair(out_, '[');
    for (size_t k = i; k < i + 2; ++k) {
      pair.Next();
      String(StringId(static_cast<uint32_t>(entries[k])));
    }
  }
}

void JsonPrinter::OriginalArrayMembers(List& object, ListId id) {
  const OriginalArray array = DecodeOriginalArray(context_, id);
  object.Key("instruction");
  String(array.instruction);
  if (array.index.empty()) return;
  object.Key("index");
  Integers(array.index);
}

// ---- header ----

void JsonPrinter::AliasMembers(List& header) {
  const ModuleHeader& h = module_.header();
  if (!h.input_output_alias.empty()) {
    header.Key("input_output_alias");
    List aliases(out_, '[');
    for (const InputOutputAlias& alias : h.input_output_alias) {
      aliases.Next();
      List object(out_, '{');
      object.Key("output_index");
      Integers(context_.list(alias.output_index));
      object.Key("parameter") << alias.parameter;
      object.Key("parameter_index");
      Integers(context_.list(alias.parameter_index));
      object.Key("must_alias") << (alias.must_alias ? "true" : "false");
    }
  }
  if (!h.buffer_donor.empty()) {
    header.Key("buffer_donor");
    List donors(out_, '[');
    for (const BufferDonor& donor : h.buffer_donor) {
      donors.Next();
      List object(out_, '{');
      object.Key("parameter") << donor.parameter;
      object.Key("parameter_index");
      Integers(context_.list(donor.parameter_index));
    }
  }
}

void JsonPrinter::OriginMembers(List& header) {
  const ModuleHeader& h = module_.header();
  if (!h.origin_recovery_table.empty()) {
    header.Key("origin_recovery_table");
    List entries(out_, '[');
    for (const OriginRecoveryEntry& entry : h.origin_recovery_table) {
      entries.Next("\n      ");
      List object(out_, '{');
      for (const auto& [key, array] :
           {std::pair{"removed", entry.removed}, std::pair{"replacement", entry.replacement}}) {
        object.Key(key);
        List members(out_, '{');
        OriginalArrayMembers(members, array);
      }
      if (entry.module_text.valid()) {
        object.Key("module");
        String(entry.module_text);
      }
    }
  }
  if (!h.debug_attributes.empty()) {
    constexpr size_t kRecordSize = 4;
    header.Key("debug_attributes");
    List entries(out_, '[');
    for (const DebugAttribute& attribute : h.debug_attributes) {
      entries.Next("\n      ");
      List object(out_, '{');
      OriginalArrayMembers(object, attribute.array);
      object.Key("records");
      List list(out_, '[');
      const absl::Span<const int64_t> records = context_.list(attribute.records);
      for (size_t at = 0; at + kRecordSize <= records.size(); at += kRecordSize) {
        list.Next();
        List record(out_, '{');
        switch (static_cast<DebugLogMode>(records[at])) {
          case DebugLogMode::kUnset:
            break;
          case DebugLogMode::kDefault:
            record.Key("log_mode") << "\"default\"";
            break;
          case DebugLogMode::kFusionDebugger:
            record.Key("log_mode") << "\"fusion_debugger\"";
            break;
        }
        if (records[at + 1] != 0) record.Key("callback_id") << records[at + 1];
        if (records[at + 2] != 0) record.Key("partitioned") << "true";
        if (records[at + 3] != 0) record.Key("op_id") << records[at + 3];
      }
    }
  }
}

void JsonPrinter::Header() {
  const ModuleHeader& h = module_.header();
  List header(out_, '{');
  if (h.is_scheduled) header.Key("is_scheduled") << "true";
  AliasMembers(header);
  if (h.alias_passthrough_params) header.Key("alias_passthrough_params") << "true";
  if (h.entry_layout) {
    header.Key("entry_computation_layout");
    List layout(out_, '{');
    layout.Key("parameters");
    {
      List parameters(out_, '[');
      for (Shape shape : h.entry_layout->parameters) {
        parameters.Next();
        ShapeText(shape.id());
      }
    }
    layout.Key("result");
    ShapeText(h.entry_layout->result.id());
  }
  const auto bools = [&](std::string_view key, ListId id) {
    if (!id.valid()) return;
    header.Key(key);
    Bools(context_.list(id));
  };
  bools("allow_spmd_sharding_propagation_to_parameters", h.allow_spmd_sharding_propagation_to_parameters);
  bools("allow_spmd_sharding_propagation_to_output", h.allow_spmd_sharding_propagation_to_output);
  if (h.replica_count != 1) header.Key("replica_count") << h.replica_count;
  if (h.num_partitions != 1) header.Key("num_partitions") << h.num_partitions;
  if (h.frontend_attributes.valid()) {
    header.Key("frontend_attributes");
    FrontendAttributesObject(h.frontend_attributes);
  }
  OriginMembers(header);
  if (!h.unknown_attributes.empty()) {
    header.Key("unknown_attributes");
    std::vector<int64_t> ids;
    for (StringId id : h.unknown_attributes) ids.push_back(id.value);
    UnknownAttributes(ids);
  }
}

void JsonPrinter::StackFramesObject() {
  constexpr std::string_view kLine = "\n      ";
  const StackFrames& s = module_.header().stack_frames;
  List tables(out_, '{');
  tables.Key("file_names", "\n    ");
  Names(s.file_names, kLine);
  tables.Key("function_names", "\n    ");
  Names(s.function_names, kLine);
  tables.Key("file_locations", "\n    ");
  {
    List locations(out_, '[');
    for (const FileLocation& l : s.file_locations) {
      locations.Next(kLine);
      List object(out_, '{');
      object.Key("file_name_id") << l.file_name_id;
      object.Key("function_name_id") << l.function_name_id;
      object.Key("line") << l.line;
      object.Key("end_line") << l.end_line;
      object.Key("column") << l.column;
      object.Key("end_column") << l.end_column;
    }
  }
  tables.Key("stack_frames", "\n    ");
  List frames(out_, '[');
  for (const StackFrame& f : s.stack_frames) {
    frames.Next(kLine);
    List object(out_, '{');
    object.Key("file_location_id") << f.file_location_id;
    object.Key("parent_frame_id") << f.parent_frame_id;
  }
}

void JsonPrinter::Print() {
  {
    constexpr std::string_view kLine = "\n  ";
    List module(out_, '{');
    module.Key("format", kLine) << '"' << kJsonFormat << '"';
    module.Key("version", kLine) << kJsonVersion;
    module.Key("name", kLine);
    String(module_.name());
    module.Key("header", kLine);
    Header();
    if (!module_.header().stack_frames.empty()) {
      module.Key("stack_frames", kLine);
      StackFramesObject();
    }
    if (module_.entry().valid()) {
      module.Key("entry", kLine);
      ComputationName(module_.entry().id());
    }
    module.Key("computations", kLine);
    {
      List computations(out_, '[');
      for (Computation c : module_.computations()) {
        computations.Next("\n    ");
        ComputationObject(c);
      }
    }
    out_ << '\n';
  }
  out_ << '\n';
}

// ---- computations and instructions ----

void JsonPrinter::ComputationObject(Computation c) {
  List object(out_, '{');
  object.Key("name");
  ComputationName(c.id());
  if (c.record().execution_thread.valid()) {
    object.Key("execution_thread");
    String(c.record().execution_thread);
  }
  object.Key("root");
  InstructionName(c.record().root);
  object.Key("instructions");
  List instructions(out_, '[');
  for (Instruction i : c.instructions()) {
    instructions.Next("\n      ");
    InstructionObject(i);
  }
}

void JsonPrinter::InstructionObject(Instruction i) {
  const InstructionRecord& r = i.record();
  List object(out_, '{');
  object.Key("name");
  String(r.name);
  object.Key("opcode");
  String(i.opcode_text());
  object.Key("shape");
  ShapeText(r.shape);
  if (r.operand_count != 0) {
    object.Key("operands");
    List operands(out_, '[');
    for (Instruction operand : i.operands()) {
      operands.Next();
      String(operand.record().name);
    }
  }
  if (r.opcode == Opcode::kParameter) {
    object.Key("parameter") << i.parameter_number();
  } else if (r.opcode == Opcode::kConstant) {
    if (i.literal().elided) {
      object.Key("elided") << "true";
    } else {
      object.Key("literal") << '"';
      PrintLiteral(out_, context_, i.literal_id());
      out_ << '"';
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
    object.Key("attributes");
    Attributes(i);
  }
  if (!unknown.empty()) {
    object.Key("unknown_attributes");
    UnknownAttributes(unknown);
  }
  if (r.metadata.valid()) {
    object.Key("metadata");
    MetadataObject(i.metadata());
  }
}

void JsonPrinter::Attributes(Instruction i) {
  List object(out_, '{');
  for (const AttrValue& value : i.attrs()) {
    if (value.attr == Attr::kUnknownAttributes || value.attr == Attr::kUnknownOpcode) continue;
    object.Key(ToString(value.attr));
    Value(value);
  }
}

void JsonPrinter::MetadataObject(const Metadata& m) {
  List object(out_, '{');
  for (const MetadataField& field : kMetadataFields) {
    if (field.string != nullptr && (m.*field.string).valid()) {
      object.Key(field.name);
      String(m.*field.string);
    } else if (field.number != nullptr && m.*field.number != 0) {
      object.Key(field.name) << m.*field.number;
    } else if (field.list != nullptr && (m.*field.list).valid()) {
      object.Key(field.name);
      Integers(context_.list(m.*field.list));
    } else if (field.flag != nullptr && m.*field.flag) {
      object.Key(field.name) << "true";
    }
  }
}

void JsonPrinter::FrontendAttributesObject(ListId id) {
  List object(out_, '{');
  for (const auto& [key, value] : DecodeFrontendAttributes(context_, id)) {
    object.Next();
    String(key);
    out_ << ':';
    String(value);
  }
}

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
      out_ << (payload != 0 ? "true" : "false");
      return;
    case PayloadKind::kInt64:
      out_ << module_.DecodeInt64(payload);
      return;
    case PayloadKind::kFloat:
      PrintJsonNumber(out_, std::bit_cast<float>(payload));
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
      List lists(out_, '[');
      for (size_t i = 0; i < list.size(); i += 1 + static_cast<size_t>(list[i])) {
        lists.Next();
        Integers(list.subspan(i + 1, static_cast<size_t>(list[i])));
      }
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
  List object(out_, '{');
  object.Key("mode");
  PlainString(EnumTexts(EnumType::kResultAccuracyMode)[static_cast<size_t>(accuracy.mode)]);
  if (accuracy.mode != ResultAccuracyMode::kTolerance) return;
  object.Key("atol");
  PrintJsonNumber(out_, accuracy.atol);
  object.Key("rtol");
  PrintJsonNumber(out_, accuracy.rtol);
  object.Key("ulps") << accuracy.ulps;
}

void JsonPrinter::StatisticsObject(ListId id) {
  const StatisticsViz statistics = DecodeStatisticsViz(context_, id);
  List object(out_, '{');
  object.Key("visualizing_index") << statistics.visualizing_index;
  object.Key("values");
  List values(out_, '[');
  for (const auto& [name, number] : statistics.values) {
    values.Next();
    List pair(out_, '[');
    pair.Next();
    String(name);
    pair.Next();
    PrintJsonNumber(out_, number);
  }
}

}  // namespace

void PrintJson(TextWriter& out, const Module& module) { JsonPrinter(out, module).Print(); }

std::string ToJson(const Module& module) {
  std::string text;
  {
    TextWriter out(&text);
    PrintJson(out, module);
  }
  return text;
}

}  // namespace hlokit
