// SPDX-License-Identifier: Apache-2.0
// The operations of one computation, by opcode (exports.def).
#include <algorithm>
#include <bit>
#include <functional>

#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "parser/stablehlo/export/exporter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

namespace {

std::string EnumName(std::string_view text, std::string_view prefix) {
  std::string name(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

}  // namespace

NodeId Exporter::IntegerArray(absl::Span<const int64_t> values) {
  std::vector<NodeId> numbers;
  for (int64_t value : values) numbers.push_back(I64(value));
  return n().Make(NodeKind::kArray, "", {}, numbers);
}

NodeId Exporter::Elements64(absl::Span<const int64_t> values, absl::Span<const int64_t> sizes) {
  const NodeId type = n().Tensor(sizes, n().IntegerType(64));
  const auto* data = reinterpret_cast<const std::byte*>(n().arena().CopyArray(values.data(), values.size()));
  return n().MakeBlob(type, data, values.size() * sizeof(int64_t),
                      std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end());
}

NodeId Exporter::Fields(std::string_view name, const std::vector<std::pair<std::string_view, Ints>>& lists,
                        const std::vector<std::pair<std::string_view, int64_t>>& numbers) {
  Ints names;
  std::vector<NodeId> values;
  for (const auto& [field, list] : lists) {
    if (list.empty()) continue;
    names.push_back(n().strings().Intern(field).value);
    values.push_back(IntegerArray(list));
  }
  for (const auto& [field, number] : numbers) {
    if (number == 0) continue;
    names.push_back(n().strings().Intern(field).value);
    values.push_back(I64(number));
  }
  return n().Make(NodeKind::kFields, name, names, values);
}

void Exporter::AddPrecision(Instruction instruction, Attributes* attributes, std::string_view dialect) {
  const absl::Span<const int64_t> precision = instruction.list_attr(Attr::kOperandPrecision);
  if (precision.empty() && !options_.as_xla) return;
  std::vector<NodeId> values;
  const int64_t defaults[] = {0, 0};
  for (int64_t p : precision.empty() ? absl::Span<const int64_t>(defaults) : precision) {
    values.push_back(
        n().Enum(StrCat(dialect, ".precision"), EnumName(EnumTexts(EnumType::kPrecision)[static_cast<size_t>(p)], "")));
  }
  attributes->push_back({"precision_config", n().Make(NodeKind::kArray, "", {}, values)});
}

// ---- by opcode ----

// Returns true for an elementwise operation of mixed precision, which HLO has, and StableHLO has not.
static bool MixesFloats(Instruction instruction) {
  const Opcode opcode = instruction.opcode();
  if (!HasTrait(opcode, kElementwise) || OpcodeSet{Opcode::kConvert, Opcode::kStochasticConvert}.Contains(opcode)) {
    return false;
  }
  std::optional<ElementType> type;
  const auto differs = [&](Shape shape) {
    if (!shape.IsArray() || !IsFloat(shape.element_type())) return false;
    if (!type) type = shape.element_type();
    return *type != shape.element_type();
  };
  for (Instruction operand : instruction.operands()) {
    if (differs(operand.shape())) return true;
  }
  return differs(instruction.shape());
}

absl::Status Exporter::Convert(Instruction instruction) {
  using Export = absl::Status (Exporter::*)(Instruction);
  static constexpr OpcodeRow<Export> kRows[] = {
#define EXPORT(opcode, function) {Opcode::k##opcode, &Exporter::Export##function},
#include "parser/stablehlo/export/exports.def"
  };
  static constexpr auto kExports = MakeOpcodeTable<Export>(
      kRows,
      {.elementwise = &Exporter::ExportSimple, .other = &Exporter::ExportNothing, .unknown = &Exporter::ExportNothing});
  if (instruction.has(Attr::kSparsityConfig)) return Unsupported(instruction, ToString(Attr::kSparsityConfig));
  for (int64_t precision : instruction.list_attr(Attr::kOperandPrecision)) {
    // Default, high and highest.
    if (precision > 2) return Unsupported(instruction, ToString(Attr::kOperandPrecision));
  }
  if (MixesFloats(instruction)) return Unsupported(instruction, "floating-point types that differ");
  return (this->*kExports[static_cast<size_t>(instruction.opcode())])(instruction);
}

absl::Status Exporter::ExportNothing(Instruction instruction) { return Unsupported(instruction); }

// The operation of an opcode that is elementwise, whose operands say all, or of batch normalization: the first row of
// operations.def with it.
OpKind Exporter::SimpleKind(Opcode opcode) {
  struct Row {
    OpKind kind;
    std::string_view name, converter;
    Opcode opcode;
  };
  static constexpr Row kRows[] = {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) \
  {OpKind::kind, name, #converter, Opcode::k##opcode},
#include "parser/mlir/operations.def"
  };
  for (const Row& row : kRows) {
    if (row.opcode != opcode || row.name.starts_with("arith.")) continue;
    if (row.converter == "Elementwise" || row.converter == "Explicit" || row.converter == "MinMax" ||
        row.converter == "Clamp" || row.converter == "Select" || row.converter == "Convert" ||
        row.converter == "BatchNorm") {
      return row.kind;
    }
  }
  return OpKind::kUnregistered;
}

absl::Status Exporter::ExportSimple(Instruction instruction) {
  const OpKind kind = SimpleKind(instruction.opcode());
  if (kind == OpKind::kUnregistered) return Unsupported(instruction);
  Attributes attributes;
  if (const NodeId accuracy = AccuracyOf(instruction); accuracy.valid()) {
    attributes.push_back({"result_accuracy", accuracy});
  }
  // One value, also if it is a tuple.
  return DefineAs(instruction, kind, OperandsOf(instruction), attributes, {TypeOf(instruction.shape())});
}

NodeId Exporter::AccuracyOf(Instruction instruction) {
  const Ints list = IntsOf(instruction, Attr::kResultAccuracy);
  const OpKind kind = SimpleKind(instruction.opcode());
  if (list.size() != 4 || kind == OpKind::kUnregistered) return {};
  if (mlir::DefinitionOf(kind).FindAttribute("result_accuracy") == nullptr) return {};
  const auto mode = static_cast<ResultAccuracyMode>(list[0]);
  if (mode != ResultAccuracyMode::kTolerance && mode != ResultAccuracyMode::kHighest) return {};
  const NodeId f64 = n().Make(NodeKind::kFloatType, "f64", {}, {});
  std::vector<NodeId> values;
  Ints names;
  const auto add = [&](std::string_view name, NodeId value) {
    names.push_back(n().strings().Intern(name).value);
    values.push_back(value);
  };
  if (list[1] != 0) add("atol", n().Make(NodeKind::kFloat, "", {&list[1], 1}, {&f64, 1}));
  if (list[2] != 0) add("rtol", n().Make(NodeKind::kFloat, "", {&list[2], 1}, {&f64, 1}));
  if (list[3] != 0) add("ulps", I64(list[3]));
  const std::string_view text = mode == ResultAccuracyMode::kHighest ? "HIGHEST" : "TOLERANCE";
  add("mode", n().Enum("stablehlo.result_accuracy_mode", text));
  return n().Make(NodeKind::kFields, "stablehlo.result_accuracy", names, values);
}

absl::Status Exporter::ExportDomain(Instruction instruction) {
  const Ints domain = IntsOf(instruction, Attr::kDomain);
  if (domain.size() != 3 || !instruction.shape().IsArray()) return ExportForwarded(instruction);
  const auto kind = StringId(static_cast<uint32_t>(domain[0]));
  if (module_.context().str(kind) != "sharding") return ExportForwarded(instruction);
  const auto text = [&](int64_t id) { return n().String(ShardingText(ListId(static_cast<uint32_t>(id)))); };
  return Define(instruction, OpKind::kMhloDomain, OperandsOf(instruction),
                {{"entry_metadata", text(domain[1])},
                 {"exit_metadata", text(domain[2])},
                 {"kind", n().Enum("mhlo.kind", "sharding")}});
}

Exporter::Ints Exporter::IntsOf(Instruction instruction, Attr attr) {
  const absl::Span<const int64_t> list = instruction.list_attr(attr);
  return {list.begin(), list.end()};
}

NodeId Exporter::DimensionOf(Instruction instruction) {
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  return I64(dimensions.empty() ? 0 : dimensions[0]);
}

absl::Status Exporter::ExportConstant(Instruction instruction) {
  const LiteralRecord& literal = instruction.literal();
  if (!literal.shape.IsArray()) return Unsupported(instruction, "a tuple");
  const NodeId type = TypeOf(instruction.shape());
  if (!type.valid()) return Unsupported(instruction, "its type");
  NodeId value;
  if (literal.elided) {
    value = n().Make(NodeKind::kDenseResource, "__elided__", {}, {&type, 1});
  } else {
    const auto* data = n().arena().CopyArray(literal.data, literal.size_bytes);
    value = n().MakeBlob(type, data, literal.size_bytes, literal.shape.element_count() == 1);
  }
  return Define(instruction, OpKind::kStablehloConstant, {}, {{"value", value}});
}

absl::Status Exporter::ExportWindowed(Instruction instruction) {
  const WindowView window = WindowView::Of(instruction);
  Ints sizes, strides, padding, base, dilation, reversal;
  for (int64_t i = 0; i < window.rank(); ++i) {
    const WindowDim d = window[i];
    sizes.push_back(d.size);
    strides.push_back(d.stride);
    padding.insert(padding.end(), {d.padding_low, d.padding_high});
    base.push_back(d.base_dilation);
    dilation.push_back(d.window_dilation);
    reversal.push_back(d.reversal);
  }
  const int64_t padding_sizes[] = {window.rank(), 2};
  Attributes attributes;
  if (window.rank() != 0) attributes.push_back({"padding", Elements64(padding, padding_sizes)});
  const auto values = OperandsOf(instruction);
  if (instruction.opcode() == Opcode::kConvolution) {
    const ConvolutionDims d = ConvolutionDims::Of(instruction);
    const auto part = [&](int64_t first, char a, int64_t second, char b, absl::Span<const int64_t> spatial) {
      std::vector<std::string> places(spatial.size() + 2);
      places[static_cast<size_t>(first)] = a;
      places[static_cast<size_t>(second)] = b;
      for (size_t i = 0; i < spatial.size(); ++i) places[static_cast<size_t>(spatial[i])] = StrCat(i);
      std::string text = "[";
      for (size_t i = 0; i < places.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", places[i]);
      return text + "]";
    };
    const std::string text =
        StrCat("#stablehlo.conv<", part(d.input_batch, 'b', d.input_feature, 'f', d.input_spatial), "x",
               part(d.kernel_input_feature, 'i', d.kernel_output_feature, 'o', d.kernel_spatial), "->",
               part(d.output_batch, 'b', d.output_feature, 'f', d.output_spatial), ">");
    attributes.push_back({"dimension_numbers", n().Make(NodeKind::kVerbatim, text, {}, {})});
    attributes.push_back({"feature_group_count", I64(instruction.int_attr(Attr::kFeatureGroupCount, 1))});
    attributes.push_back({"batch_group_count", I64(instruction.int_attr(Attr::kBatchGroupCount, 1))});
    attributes.push_back({"window_strides", Dims(strides)});
    attributes.push_back({"lhs_dilation", Dims(base)});
    attributes.push_back({"rhs_dilation", Dims(dilation)});
    attributes.push_back({"window_reversal", Dims(reversal, 1)});
    AddPrecision(instruction, &attributes);
    return Define(instruction, OpKind::kStablehloConvolution, values, attributes);
  }
  attributes.push_back({"window_dimensions", Dims(sizes)});
  attributes.push_back({"window_strides", Dims(strides)});
  if (instruction.opcode() == Opcode::kSelectAndScatter) {
    return Define(instruction, OpKind::kStablehloSelectAndScatter, values, attributes);
  }
  attributes.push_back({"base_dilations", Dims(base)});
  attributes.push_back({"window_dilations", Dims(dilation)});
  return Define(instruction, OpKind::kStablehloReduceWindow, values, attributes);
}

absl::Status Exporter::ExportIota(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloIota, {},
                {{"iota_dimension", I64(instruction.int_attr(Attr::kIotaDimension))}});
}

absl::Status Exporter::ExportBroadcast(Instruction instruction) {
  // Reading transposes first where dimensions are out of order.
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  Attributes kept;
  if (!std::is_sorted(dimensions.begin(), dimensions.end())) AddKept(instruction, {}, &kept);
  return Define(instruction, OpKind::kStablehloBroadcastInDim, OperandsOf(instruction),
                {{"broadcast_dimensions", Dims(dimensions)}}, kept);
}

absl::Status Exporter::ExportReshape(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloReshape, OperandsOf(instruction));
}

absl::Status Exporter::ExportBitcastConvert(Instruction instruction) {
  const ElementType from = instruction.operand(0).shape().element_type(), to = instruction.shape().element_type();
  if (from != to && (from == ElementType::kPred || to == ElementType::kPred)) {
    return Unsupported(instruction, "in StableHLO booleans have one bit");
  }
  return Define(instruction, OpKind::kStablehloBitcastConvert, OperandsOf(instruction));
}

absl::Status Exporter::ExportTranspose(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloTranspose, OperandsOf(instruction),
                {{"permutation", Dims(instruction.list_attr(Attr::kDimensions))}});
}

absl::Status Exporter::ExportReverse(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloReverse, OperandsOf(instruction),
                {{"dimensions", Dims(instruction.list_attr(Attr::kDimensions))}});
}

absl::Status Exporter::ExportConcatenate(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloConcatenate, OperandsOf(instruction),
                {{"dimension", DimensionOf(instruction)}});
}

absl::Status Exporter::ExportSlice(Instruction instruction) {
  const SliceView slice = SliceView::Of(instruction);
  Ints starts, limits, strides;
  for (int64_t i = 0; i < slice.rank(); ++i) {
    starts.push_back(slice.start(i));
    limits.push_back(slice.limit(i));
    strides.push_back(slice.stride(i));
  }
  return Define(instruction, OpKind::kStablehloSlice, OperandsOf(instruction),
                {{"start_indices", Dims(starts)}, {"limit_indices", Dims(limits)}, {"strides", Dims(strides)}});
}

absl::Status Exporter::ExportPad(Instruction instruction) {
  const PaddingView padding = PaddingView::Of(instruction);
  Ints low, high, interior;
  for (int64_t i = 0; i < padding.rank(); ++i) {
    low.push_back(padding.low(i));
    high.push_back(padding.high(i));
    interior.push_back(padding.interior(i));
  }
  return Define(
      instruction, OpKind::kStablehloPad, OperandsOf(instruction),
      {{"edge_padding_low", Dims(low)}, {"edge_padding_high", Dims(high)}, {"interior_padding", Dims(interior)}});
}

absl::Status Exporter::ExportDynamicSlice(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloDynamicSlice, OperandsOf(instruction),
                {{"slice_sizes", Dims(instruction.list_attr(Attr::kDynamicSliceSizes))}});
}

absl::Status Exporter::ExportCompare(Instruction instruction) {
  Attributes attributes = {
      {"comparison_direction",
       n().Enum("stablehlo.comparison_direction",
                EnumTexts(EnumType::kComparisonDirection)[*instruction.payload(Attr::kDirection)])}};
  if (const std::optional<uint32_t> type = instruction.payload(Attr::kCompareType)) {
    attributes.push_back(
        {"compare_type", n().Enum("stablehlo.comparison_type", EnumTexts(EnumType::kComparisonType)[*type])});
  }
  return Define(instruction, OpKind::kStablehloCompare, OperandsOf(instruction), attributes);
}

absl::Status Exporter::ExportReducePrecision(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloReducePrecision, OperandsOf(instruction),
                {{"exponent_bits", I32(instruction.int_attr(Attr::kExponentBits))},
                 {"mantissa_bits", I32(instruction.int_attr(Attr::kMantissaBits))}});
}

absl::Status Exporter::ExportGather(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloGather, OperandsOf(instruction),
                {{"dimension_numbers",
                  Fields("stablehlo.gather",
                         {{"offset_dims", IntsOf(instruction, Attr::kOffsetDims)},
                          {"collapsed_slice_dims", IntsOf(instruction, Attr::kCollapsedSliceDims)},
                          {"operand_batching_dims", IntsOf(instruction, Attr::kOperandBatchingDims)},
                          {"start_indices_batching_dims", IntsOf(instruction, Attr::kStartIndicesBatchingDims)},
                          {"start_index_map", IntsOf(instruction, Attr::kStartIndexMap)}},
                         {{"index_vector_dim", instruction.int_attr(Attr::kIndexVectorDim)}})},
                 {"slice_sizes", Dims(instruction.list_attr(Attr::kSliceSizes))}});
}

absl::Status Exporter::ExportScatter(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloScatter, OperandsOf(instruction),
                {{"scatter_dimension_numbers",
                  Fields("stablehlo.scatter",
                         {{"update_window_dims", IntsOf(instruction, Attr::kUpdateWindowDims)},
                          {"inserted_window_dims", IntsOf(instruction, Attr::kInsertedWindowDims)},
                          {"input_batching_dims", IntsOf(instruction, Attr::kInputBatchingDims)},
                          {"scatter_indices_batching_dims", IntsOf(instruction, Attr::kScatterIndicesBatchingDims)},
                          {"scatter_dims_to_operand_dims", IntsOf(instruction, Attr::kScatterDimsToOperandDims)}},
                         {{"index_vector_dim", instruction.int_attr(Attr::kIndexVectorDim)}})}});
}

absl::Status Exporter::ExportSort(Instruction instruction) {
  return Define(
      instruction, OpKind::kStablehloSort, OperandsOf(instruction),
      {{"dimension", DimensionOf(instruction)}, {"is_stable", n().Bool(instruction.bool_attr(Attr::kIsStable))}});
}

absl::Status Exporter::ExportReduce(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloReduce, OperandsOf(instruction),
                {{"dimensions", Dims(instruction.list_attr(Attr::kDimensions))}});
}

absl::Status Exporter::ExportMap(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloMap, OperandsOf(instruction),
                {{"dimensions", Dims(instruction.list_attr(Attr::kDimensions))}});
}

absl::Status Exporter::ExportDot(Instruction instruction) {
  if (instruction.operand_count() != 2) return Unsupported(instruction, "more than two operands");
  Attributes attributes = {
      {"dot_dimension_numbers",
       Fields("stablehlo.dot", {{"lhs_batching_dimensions", IntsOf(instruction, Attr::kLhsBatchDims)},
                                {"rhs_batching_dimensions", IntsOf(instruction, Attr::kRhsBatchDims)},
                                {"lhs_contracting_dimensions", IntsOf(instruction, Attr::kLhsContractingDims)},
                                {"rhs_contracting_dimensions", IntsOf(instruction, Attr::kRhsContractingDims)}})}};
  if (const std::optional<uint32_t> algorithm = instruction.payload(Attr::kDotAlgorithm)) {
    // dot_LHS_RHS_SUM[_xN]
    std::string_view text = EnumTexts(EnumType::kDotAlgorithm)[*algorithm];
    std::vector<std::string_view> parts;
    for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(std::min(end + 1, text.size()))) {
      end = text.find('_');
      parts.push_back(text.substr(0, end));
      if (end == std::string_view::npos) break;
    }
    const bool several = parts.size() == 5 && parts[4].size() == 2 && parts[4][0] == 'x';
    if (parts.size() != 4 && !several) return Unsupported(instruction, "its algorithm");
    Ints names;
    std::vector<NodeId> values;
    const auto add = [&](std::string_view name, NodeId value) {
      names.push_back(n().strings().Intern(name).value);
      values.push_back(value);
    };
    constexpr std::string_view kTypes[] = {"lhs_precision_type", "rhs_precision_type", "accumulation_type"};
    for (size_t i = 0; i < 3; ++i) add(kTypes[i], n().Make(NodeKind::kFloatType, parts[i + 1], {}, {}));
    add("lhs_component_count", I64(1));
    add("rhs_component_count", I64(1));
    add("num_primitive_operations", I64(several ? parts[4][1] - '0' : 1));
    add("allow_imprecise_accumulation", n().Bool(false));
    attributes.push_back({"algorithm", n().Make(NodeKind::kFields, "stablehlo.dot_algorithm", names, values)});
  }
  AddPrecision(instruction, &attributes);
  // The last dimension of a matrix or vector with the first one.
  const Shape lhs = instruction.operand(0).shape(), rhs = instruction.operand(1).shape();
  if (options_.as_xla && lhs.rank() <= 2 && rhs.rank() <= 2 && !instruction.has(Attr::kDotAlgorithm) &&
      IntsOf(instruction, Attr::kLhsContractingDims) == Ints{lhs.rank() - 1} &&
      IntsOf(instruction, Attr::kRhsContractingDims) == Ints{0}) {
    attributes.erase(attributes.begin());
    return Define(instruction, OpKind::kStablehloDot, OperandsOf(instruction), attributes);
  }
  return Define(instruction, OpKind::kStablehloDotGeneral, OperandsOf(instruction), attributes);
}

absl::Status Exporter::ExportRaggedDot(Instruction instruction) {
  if (instruction.has(Attr::kDotAlgorithm)) return Unsupported(instruction);
  Attributes attributes = {
      {"ragged_dot_dimension_numbers",
       Fields("chlo.ragged_dot", {{"lhs_batching_dimensions", IntsOf(instruction, Attr::kLhsBatchDims)},
                                  {"rhs_batching_dimensions", IntsOf(instruction, Attr::kRhsBatchDims)},
                                  {"lhs_contracting_dimensions", IntsOf(instruction, Attr::kLhsContractingDims)},
                                  {"rhs_contracting_dimensions", IntsOf(instruction, Attr::kRhsContractingDims)},
                                  {"lhs_ragged_dimensions", IntsOf(instruction, Attr::kLhsRaggedDims)},
                                  {"rhs_group_dimensions", IntsOf(instruction, Attr::kRhsGroupDims)}})}};
  AddPrecision(instruction, &attributes, "chlo");
  return Define(instruction, OpKind::kChloRaggedDot, OperandsOf(instruction), attributes);
}

absl::Status Exporter::ExportScan(Instruction instruction) {
  if (!instruction.shape().IsTuple()) {
    return Unsupported(instruction, "an array for its tuple");
  }
  const int64_t carries = instruction.int_attr(Attr::kNumCarries);
  const NodeId i32 = n().IntegerType(32);
  const int64_t in[] = {instruction.operand_count() - carries, carries};
  const int64_t out[] = {instruction.shape().tuple_size() - carries, carries};
  Attributes attributes = {{"dimension", DimensionOf(instruction)},
                           {"is_reverse", n().Bool(instruction.bool_attr(Attr::kIsReverse))},
                           {"operandSegmentSizes", n().Make(NodeKind::kDenseArray, "", in, {&i32, 1})},
                           {"resultSegmentSizes", n().Make(NodeKind::kDenseArray, "", out, {&i32, 1})}};
  if (instruction.bool_attr(Attr::kIsAssociative)) attributes.push_back({"is_associative", n().Bool(true)});
  return Define(instruction, OpKind::kChloScan, OperandsOf(instruction), attributes);
}

absl::Status Exporter::ExportFft(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloFft, OperandsOf(instruction),
                {{"fft_length", Dims(instruction.list_attr(Attr::kFftLength))},
                 {"fft_type", n().Enum("stablehlo.fft_type",
                                       EnumTexts(EnumType::kFftType)[*instruction.payload(Attr::kFftType)])}});
}

absl::Status Exporter::ExportCholesky(Instruction instruction) {
  return Define(instruction, OpKind::kStablehloCholesky, OperandsOf(instruction));
}

absl::Status Exporter::ExportTriangularSolve(Instruction instruction) {
  return Define(
      instruction, OpKind::kStablehloTriangularSolve, OperandsOf(instruction),
      {{"left_side", n().Bool(instruction.bool_attr(Attr::kLeftSide))},
       {"transpose_a",
        n().Enum("stablehlo.transpose",
                 EnumTexts(EnumType::kTriangularTranspose)[instruction.payload(Attr::kTransposeA).value_or(1)])}});
}

absl::Status Exporter::ExportBatchNorm(Instruction instruction) {
  const int64_t bits = std::bit_cast<int64_t>(static_cast<double>(instruction.float_attr(Attr::kEpsilon)));
  const NodeId f32 = n().Make(NodeKind::kFloatType, "f32", {}, {});
  return Define(instruction, SimpleKind(instruction.opcode()), OperandsOf(instruction),
                {{"epsilon", n().Make(NodeKind::kFloat, "", {&bits, 1}, {&f32, 1})},
                 {"feature_index", I64(instruction.int_attr(Attr::kFeatureIndex))}});
}

absl::Status Exporter::ExportRng(Instruction instruction) {
  if (instruction.operand_count() != 2) return Unsupported(instruction, "an operand for its shape");
  const Ints sizes(instruction.shape().dims().begin(), instruction.shape().dims().end());
  const int64_t rank[] = {instruction.shape().rank()};
  const NodeId value = Elements64(sizes, rank);
  const Values shape = Emit(OpKind::kStablehloConstant, {}, {{"value", value}}, {n().child(value, 0)});
  Values operands = OperandsOf(instruction);
  operands.push_back(shape[0]);
  return Define(
      instruction, OpKind::kStablehloRng, operands,
      {{"rng_distribution",
        n().Enum("stablehlo.rng_distribution",
                 EnumName(EnumTexts(EnumType::kRngDistribution)[*instruction.payload(Attr::kDistribution)], "rng_"))}});
}

absl::Status Exporter::ExportRngBitGenerator(Instruction instruction) {
  const std::string_view algorithm = EnumTexts(EnumType::kRngAlgorithm)[*instruction.payload(Attr::kRngAlgorithm)];
  const Attributes attributes = {{"rng_algorithm", n().Enum("stablehlo.rng_algorithm", EnumName(algorithm, "rng_"))}};
  constexpr OpKind kKind = OpKind::kStablehloRngBitGenerator;
  if (instruction.shape().IsTuple()) return Define(instruction, kKind, OperandsOf(instruction), attributes);
  // One that does not give its state.
  if (options_.as_xla) return Unsupported(instruction, "no state in its result");
  const std::vector<NodeId> types = {TypeOf(instruction.operand(0).shape()), TypeOf(instruction.shape())};
  if (!types[0].valid() || !types[1].valid()) return Unsupported(instruction, "its type");
  Attributes discardable = Discardable(instruction);
  AddKept(instruction, {}, &discardable);
  const Values results =
      Emit(kKind, OperandsOf(instruction), attributes, types, {}, discardable, LocationOf(instruction));
  values_[instruction.id().value] = results[1];
  elements_[instruction.id().value].clear();
  return absl::OkStatus();
}

absl::Status Exporter::ExportTopK(Instruction instruction) {
  const bool largest = instruction.bool_attr(Attr::kLargest, true);
  if (options_.as_xla || !largest) {
    // CHLO has no smallest elements.
    if (!instruction.bool_attr(Attr::kIsStable, true) && !options_.as_xla) return Unsupported(instruction, "no order");
    Attributes attributes = {{"k", I64(instruction.int_attr(Attr::kK))}};
    if (!largest) attributes.push_back({"largest", n().Bool(false)});
    return Define(instruction, OpKind::kMhloTopk, OperandsOf(instruction), attributes);
  }
  return Define(instruction, OpKind::kChloTopK, OperandsOf(instruction),
                {{"k", I64(instruction.int_attr(Attr::kK))},
                 {"is_stable", n().Bool(instruction.bool_attr(Attr::kIsStable, true))}});
}

absl::Status Exporter::ExportAfterAll(Instruction instruction) {
  return Define(instruction,
                instruction.operand_count() == 0 ? OpKind::kStablehloCreateToken : OpKind::kStablehloAfterAll,
                OperandsOf(instruction));
}

absl::Status Exporter::ExportOptimizationBarrier(Instruction instruction) {
  const bool several = IsUnpacked(instruction.shape());
  return Define(instruction, OpKind::kStablehloOptimizationBarrier,
                several ? DataOf(instruction.operand(0)) : OperandsOf(instruction));
}

absl::Status Exporter::ExportDimensionSize(Instruction instruction) {
  const bool set = instruction.opcode() == Opcode::kSetDimensionSize;
  return Define(instruction, set ? OpKind::kStablehloSetDimensionSize : OpKind::kStablehloGetDimensionSize,
                OperandsOf(instruction), {{"dimension", DimensionOf(instruction)}});
}

}  // namespace hlokit::stablehlo
