// SPDX-License-Identifier: Apache-2.0
// The operations of an export, by opcode.
#include <bit>

#include "ir/core/str_cat.h"
#include "ir/sharding/replica_groups.h"
#include "ir/text/attribute_text.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/printer.h"
#include "parser/stablehlo/exporter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

namespace {

// The operation of an opcode that is elementwise or whose operands say all: the first row of operations.def with it.
std::string_view SimpleName(Opcode opcode) {
  struct Row {
    std::string_view name, converter;
    Opcode opcode;
  };
  static constexpr Row kRows[] = {
#define OP(name, operands, attributes, regions, results, format, converter, opcode) \
  {name, #converter, Opcode::k##opcode},
#include "parser/mlir/operations.def"
  };
  for (const Row& row : kRows) {
    if (row.opcode != opcode || row.name.starts_with("arith.")) continue;
    if (row.converter == "Elementwise" || row.converter == "Explicit" || row.converter == "MinMax" ||
        row.converter == "Clamp" || row.converter == "Select" || row.converter == "Convert") {
      return row.name;
    }
  }
  return "";
}

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
  return n().MakeBlob(type, data, values.size() * sizeof(int64_t), values.size() == 1);
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
  if (precision.empty()) return;
  std::vector<NodeId> values;
  for (int64_t p : precision) {
    values.push_back(
        n().Enum(StrCat(dialect, ".precision"), EnumName(EnumTexts(EnumType::kPrecision)[static_cast<size_t>(p)], "")));
  }
  attributes->push_back({"precision_config", n().Make(NodeKind::kArray, "", {}, values)});
}

Exporter::Attributes Exporter::Discardable(Instruction instruction) {
  Attributes attributes;
  const Context& context = module_.context();
  if (const std::optional<uint32_t> list = instruction.payload(Attr::kFrontendAttributes)) {
    Ints names;
    std::vector<NodeId> values;
    for (const FrontendAttribute& entry : DecodeFrontendAttributes(context, ListId(*list))) {
      names.push_back(n().strings().Intern(context.str(entry.first)).value);
      values.push_back(n().String(context.str(entry.second)));
    }
    attributes.push_back({"mhlo.frontend_attributes", n().Make(NodeKind::kDictionary, "", names, values)});
  }
  if (const std::optional<uint32_t> sharding = instruction.payload(Attr::kSharding)) {
    std::string text;
    {
      TextWriter out(&text);
      PrintAttrValue(out, module_, {Attr::kSharding, *sharding});
    }
    attributes.push_back({"mhlo.sharding", n().String(text)});
  }
  return attributes;
}

absl::Status Exporter::ConvertConstant(Instruction instruction) {
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
  return Define(instruction, "stablehlo.constant", {}, {{"value", value}});
}

absl::Status Exporter::ConvertWindowed(Instruction instruction) {
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
    return Define(instruction, "stablehlo.convolution", values, attributes);
  }
  attributes.push_back({"window_dimensions", Dims(sizes)});
  attributes.push_back({"window_strides", Dims(strides)});
  if (instruction.opcode() == Opcode::kSelectAndScatter) {
    return Define(instruction, "stablehlo.select_and_scatter", values, attributes);
  }
  attributes.push_back({"base_dilations", Dims(base)});
  attributes.push_back({"window_dilations", Dims(dilation)});
  return Define(instruction, "stablehlo.reduce_window", values, attributes);
}

absl::Status Exporter::ConvertCollective(Instruction instruction) {
  const Opcode opcode = instruction.opcode();
  Attributes attributes;
  if (opcode == Opcode::kCollectivePermute) {
    const absl::Span<const int64_t> encoded = instruction.list_attr(Attr::kSourceTargetPairs);
    Ints pairs;
    for (size_t i = 0; i + 2 < encoded.size(); i += 3) pairs.insert(pairs.end(), {encoded[i + 1], encoded[i + 2]});
    const int64_t sizes[] = {static_cast<int64_t>(pairs.size() / 2), 2};
    attributes.push_back({"source_target_pairs", Elements64(pairs, sizes)});
  } else {
    constexpr int64_t kMaxDevices = 1 << 20;
    const auto groups =
        ExpandReplicaGroups(module_.context(), AttrReader(instruction).list_id(Attr::kReplicaGroups), kMaxDevices);
    if (!groups.ok()) return Unsupported(instruction, "its replica groups");
    size_t width = 0;
    for (const auto& group : *groups) width = std::max(width, group.size());
    Ints flat;
    for (const auto& group : *groups) {
      flat.insert(flat.end(), group.begin(), group.end());
      flat.insert(flat.end(), width - group.size(), -1);
    }
    const int64_t sizes[] = {static_cast<int64_t>(groups->size()), static_cast<int64_t>(width)};
    attributes.push_back({"replica_groups", Elements64(flat, sizes)});
  }
  if (const int64_t channel = instruction.int_attr(Attr::kChannelId, 0); channel > 0) {
    attributes.push_back(
        {"channel_handle", Fields("stablehlo.channel_handle", {}, {{"handle", channel}, {"type", 1}})});
  }
  if (instruction.bool_attr(Attr::kUseGlobalDeviceIds)) {
    attributes.push_back({"use_global_device_ids", n().Make(NodeKind::kUnit)});
  }
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  const int64_t dimension = dimensions.empty() ? 0 : dimensions[0];
  const Values values = OperandsOf(instruction);
  switch (opcode) {
    case Opcode::kCollectivePermute:
      if (instruction.operand_count() != 1) return Unsupported(instruction, "several operands");
      return Define(instruction, "stablehlo.collective_permute", values, attributes);
    case Opcode::kAllReduce:
      return Define(instruction, "stablehlo.all_reduce", values, attributes);
    case Opcode::kAllGather:
      attributes.push_back({"all_gather_dim", I64(dimension)});
      return Define(instruction, "stablehlo.all_gather", values, attributes);
    case Opcode::kReduceScatter:
      if (instruction.operand_count() != 1) return Unsupported(instruction, "several operands");
      attributes.push_back({"scatter_dimension", I64(dimension)});
      return Define(instruction, "stablehlo.reduce_scatter", values, attributes);
    case Opcode::kCollectiveBroadcast:
      return Define(instruction, "stablehlo.collective_broadcast", values, attributes);
    default: {
      if (dimensions.empty()) return Unsupported(instruction, "a tuple of chunks");
      const ReplicaGroupCounts counts =
          CountReplicaGroups(module_.context(), AttrReader(instruction).list_id(Attr::kReplicaGroups));
      attributes.push_back({"split_dimension", I64(dimension)});
      attributes.push_back({"concat_dimension", I64(dimension)});
      attributes.push_back({"split_count", I64(std::max<int64_t>(counts.group_size, 1))});
      return Define(instruction, "stablehlo.all_to_all", values, attributes);
    }
  }
}

absl::Status Exporter::ConvertCustomCall(Instruction instruction) {
  for (Attr attr : {Attr::kWindow, Attr::kDimLabels, Attr::kLiteral, Attr::kSchedule, Attr::kOutputToOperandAliasing,
                    Attr::kOperandLayoutConstraints, Attr::kCalledComputations, Attr::kOperandPrecision}) {
    if (instruction.has(attr)) return Unsupported(instruction, ToString(attr));
  }
  Attributes attributes = {{"call_target_name", n().String(instruction.string_attr(Attr::kCustomCallTarget))}};
  if (instruction.bool_attr(Attr::kCustomCallHasSideEffect)) attributes.push_back({"has_side_effect", n().Bool(true)});
  if (const std::string_view config = instruction.string_attr(Attr::kBackendConfig); !config.empty()) {
    attributes.push_back({"backend_config", n().String(config)});
  }
  if (const std::optional<uint32_t> version = instruction.payload(Attr::kApiVersion)) {
    attributes.push_back({"api_version", I32(*version)});
  }
  return Define(instruction, "stablehlo.custom_call", OperandsOf(instruction), attributes);
}

absl::Status Exporter::ConvertControlFlow(Instruction instruction) {
  switch (instruction.opcode()) {
    case Opcode::kWhile: {
      const Instruction init = instruction.operand(0);
      Values state;
      if (!init.shape().IsTuple()) {
        state = {Whole(init)};
      } else if (values_[init.id().value].valid()) {
        for (int64_t i = 0; i < init.shape().tuple_size(); ++i) {
          state.push_back(Emit("stablehlo.get_tuple_element", {Whole(init)}, {{"index", I32(i)}},
                               {TypeOf(init.shape().element(i))})[0]);
        }
      } else {
        state = Elements(init);
      }
      return Define(instruction, "stablehlo.while", state);
    }
    case Opcode::kConditional: {
      const bool pred = instruction.operand(0).shape().element_type() == ElementType::kPred;
      return Define(instruction, pred ? "stablehlo.if" : "stablehlo.case", {Whole(instruction.operand(0))});
    }
    default: {
      const Computation called = instruction.computation_attr(Attr::kToApply);
      const NodeId symbol = n().Make(NodeKind::kSymbol, functions_[called.id().value], {}, {});
      return Define(instruction, "func.call", OperandsOf(instruction), {{"callee", symbol}});
    }
  }
}

absl::Status Exporter::Convert(Instruction instruction) {
  const Opcode opcode = instruction.opcode();
  const auto list = [&](Attr attr) { return instruction.list_attr(attr); };
  const auto ints = [&](Attr attr) { return Ints(list(attr).begin(), list(attr).end()); };
  const absl::Span<const int64_t> dimensions = list(Attr::kDimensions);
  const auto dimension = [&] { return I64(dimensions.empty() ? 0 : dimensions[0]); };
  if (instruction.has(Attr::kControlPredecessors)) return Unsupported(instruction, "control dependencies");
  if (!IsApplied(opcode) && opcode != Opcode::kWhile && opcode != Opcode::kConditional && opcode != Opcode::kCall &&
      opcode != Opcode::kTuple && opcode != Opcode::kGetTupleElement && opcode != Opcode::kParameter) {
    if (const std::string_view name = SimpleName(opcode); !name.empty()) {
      return Define(instruction, name, OperandsOf(instruction));
    }
  }
  switch (opcode) {
    case Opcode::kParameter:
      return absl::OkStatus();
    case Opcode::kConstant:
      return ConvertConstant(instruction);
    case Opcode::kTuple:
      elements_[instruction.id().value] = OperandsOf(instruction);
      values_[instruction.id().value] = mlir::ValueId();
      return absl::OkStatus();
    case Opcode::kGetTupleElement: {
      const Instruction tuple = instruction.operand(0);
      const int64_t index = instruction.int_attr(Attr::kIndex);
      if (values_[tuple.id().value].valid()) {
        return Define(instruction, "stablehlo.get_tuple_element", {Whole(tuple)}, {{"index", I32(index)}});
      }
      // Of a tuple within a tuple the value is one.
      values_[instruction.id().value] = Elements(tuple)[static_cast<size_t>(index)];
      elements_[instruction.id().value].clear();
      return absl::OkStatus();
    }
    case Opcode::kIota:
      return Define(instruction, "stablehlo.iota", {},
                    {{"iota_dimension", I64(instruction.int_attr(Attr::kIotaDimension))}});
    case Opcode::kBroadcast:
      return Define(instruction, "stablehlo.broadcast_in_dim", OperandsOf(instruction),
                    {{"broadcast_dimensions", Dims(dimensions)}});
    case Opcode::kReshape:
      return Define(instruction, "stablehlo.reshape", OperandsOf(instruction));
    case Opcode::kBitcastConvert:
      return Define(instruction, "stablehlo.bitcast_convert", OperandsOf(instruction));
    case Opcode::kTranspose:
      return Define(instruction, "stablehlo.transpose", OperandsOf(instruction), {{"permutation", Dims(dimensions)}});
    case Opcode::kReverse:
      return Define(instruction, "stablehlo.reverse", OperandsOf(instruction), {{"dimensions", Dims(dimensions)}});
    case Opcode::kConcatenate:
      return Define(instruction, "stablehlo.concatenate", OperandsOf(instruction), {{"dimension", dimension()}});
    case Opcode::kSlice: {
      const SliceView slice = SliceView::Of(instruction);
      Ints starts, limits, strides;
      for (int64_t i = 0; i < slice.rank(); ++i) {
        starts.push_back(slice.start(i));
        limits.push_back(slice.limit(i));
        strides.push_back(slice.stride(i));
      }
      return Define(instruction, "stablehlo.slice", OperandsOf(instruction),
                    {{"start_indices", Dims(starts)}, {"limit_indices", Dims(limits)}, {"strides", Dims(strides)}});
    }
    case Opcode::kPad: {
      const PaddingView padding = PaddingView::Of(instruction);
      Ints low, high, interior;
      for (int64_t i = 0; i < padding.rank(); ++i) {
        low.push_back(padding.low(i));
        high.push_back(padding.high(i));
        interior.push_back(padding.interior(i));
      }
      return Define(
          instruction, "stablehlo.pad", OperandsOf(instruction),
          {{"edge_padding_low", Dims(low)}, {"edge_padding_high", Dims(high)}, {"interior_padding", Dims(interior)}});
    }
    case Opcode::kDynamicSlice:
      return Define(instruction, "stablehlo.dynamic_slice", OperandsOf(instruction),
                    {{"slice_sizes", Dims(list(Attr::kDynamicSliceSizes))}});
    case Opcode::kCompare: {
      Attributes attributes = {
          {"comparison_direction",
           n().Enum("stablehlo.comparison_direction",
                    EnumTexts(EnumType::kComparisonDirection)[*instruction.payload(Attr::kDirection)])}};
      if (const std::optional<uint32_t> type = instruction.payload(Attr::kCompareType)) {
        attributes.push_back(
            {"compare_type", n().Enum("stablehlo.comparison_type", EnumTexts(EnumType::kComparisonType)[*type])});
      }
      return Define(instruction, "stablehlo.compare", OperandsOf(instruction), attributes);
    }
    case Opcode::kReducePrecision:
      return Define(instruction, "stablehlo.reduce_precision", OperandsOf(instruction),
                    {{"exponent_bits", I32(instruction.int_attr(Attr::kExponentBits))},
                     {"mantissa_bits", I32(instruction.int_attr(Attr::kMantissaBits))}});
    case Opcode::kGather:
      return Define(
          instruction, "stablehlo.gather", OperandsOf(instruction),
          {{"dimension_numbers", Fields("stablehlo.gather",
                                        {{"offset_dims", ints(Attr::kOffsetDims)},
                                         {"collapsed_slice_dims", ints(Attr::kCollapsedSliceDims)},
                                         {"operand_batching_dims", ints(Attr::kOperandBatchingDims)},
                                         {"start_indices_batching_dims", ints(Attr::kStartIndicesBatchingDims)},
                                         {"start_index_map", ints(Attr::kStartIndexMap)}},
                                        {{"index_vector_dim", instruction.int_attr(Attr::kIndexVectorDim)}})},
           {"indices_are_sorted", n().Bool(instruction.bool_attr(Attr::kIndicesAreSorted))},
           {"slice_sizes", Dims(list(Attr::kSliceSizes))}});
    case Opcode::kScatter:
      return Define(instruction, "stablehlo.scatter", OperandsOf(instruction),
                    {{"scatter_dimension_numbers",
                      Fields("stablehlo.scatter",
                             {{"update_window_dims", ints(Attr::kUpdateWindowDims)},
                              {"inserted_window_dims", ints(Attr::kInsertedWindowDims)},
                              {"input_batching_dims", ints(Attr::kInputBatchingDims)},
                              {"scatter_indices_batching_dims", ints(Attr::kScatterIndicesBatchingDims)},
                              {"scatter_dims_to_operand_dims", ints(Attr::kScatterDimsToOperandDims)}},
                             {{"index_vector_dim", instruction.int_attr(Attr::kIndexVectorDim)}})},
                     {"indices_are_sorted", n().Bool(instruction.bool_attr(Attr::kIndicesAreSorted))},
                     {"unique_indices", n().Bool(instruction.bool_attr(Attr::kUniqueIndices))}});
    case Opcode::kSort:
      return Define(instruction, "stablehlo.sort", OperandsOf(instruction),
                    {{"dimension", dimension()}, {"is_stable", n().Bool(instruction.bool_attr(Attr::kIsStable))}});
    case Opcode::kReduce:
      return Define(instruction, "stablehlo.reduce", OperandsOf(instruction), {{"dimensions", Dims(dimensions)}});
    case Opcode::kMap:
      return Define(instruction, "stablehlo.map", OperandsOf(instruction), {{"dimensions", Dims(dimensions)}});
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kConvolution:
      return ConvertWindowed(instruction);
    case Opcode::kDot: {
      if (instruction.operand_count() != 2 || instruction.has(Attr::kDotAlgorithm)) return Unsupported(instruction);
      Attributes attributes = {
          {"dot_dimension_numbers",
           Fields("stablehlo.dot", {{"lhs_batching_dimensions", ints(Attr::kLhsBatchDims)},
                                    {"rhs_batching_dimensions", ints(Attr::kRhsBatchDims)},
                                    {"lhs_contracting_dimensions", ints(Attr::kLhsContractingDims)},
                                    {"rhs_contracting_dimensions", ints(Attr::kRhsContractingDims)}})}};
      AddPrecision(instruction, &attributes);
      return Define(instruction, "stablehlo.dot_general", OperandsOf(instruction), attributes);
    }
    case Opcode::kFft:
      return Define(instruction, "stablehlo.fft", OperandsOf(instruction),
                    {{"fft_length", Dims(list(Attr::kFftLength))},
                     {"fft_type", n().Enum("stablehlo.fft_type",
                                           EnumTexts(EnumType::kFftType)[*instruction.payload(Attr::kFftType)])}});
    case Opcode::kCholesky:
      return Define(instruction, "stablehlo.cholesky", OperandsOf(instruction),
                    {{"lower", n().Bool(instruction.bool_attr(Attr::kLower))}});
    case Opcode::kTriangularSolve:
      return Define(
          instruction, "stablehlo.triangular_solve", OperandsOf(instruction),
          {{"left_side", n().Bool(instruction.bool_attr(Attr::kLeftSide))},
           {"lower", n().Bool(instruction.bool_attr(Attr::kLower))},
           {"unit_diagonal", n().Bool(instruction.bool_attr(Attr::kUnitDiagonal))},
           {"transpose_a",
            n().Enum("stablehlo.transpose",
                     EnumTexts(EnumType::kTriangularTranspose)[instruction.payload(Attr::kTransposeA).value_or(1)])}});
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining: {
      const int64_t bits = std::bit_cast<int64_t>(static_cast<double>(instruction.float_attr(Attr::kEpsilon)));
      const NodeId f32 = n().Make(NodeKind::kFloatType, "f32", {}, {});
      std::string name = "stablehlo.";
      for (char c : ToString(opcode)) name.push_back(c == '-' ? '_' : c);
      return Define(instruction, name, OperandsOf(instruction),
                    {{"epsilon", n().Make(NodeKind::kFloat, "", {&bits, 1}, {&f32, 1})},
                     {"feature_index", I64(instruction.int_attr(Attr::kFeatureIndex))}});
    }
    case Opcode::kRng: {
      const Ints sizes(instruction.shape().dims().begin(), instruction.shape().dims().end());
      const int64_t rank[] = {instruction.shape().rank()};
      const NodeId value = Elements64(sizes, rank);
      const Values shape = Emit("stablehlo.constant", {}, {{"value", value}}, {n().child(value, 0)});
      Values operands = OperandsOf(instruction);
      operands.push_back(shape[0]);
      return Define(
          instruction, "stablehlo.rng", operands,
          {{"rng_distribution",
            n().Enum(
                "stablehlo.rng_distribution",
                EnumName(EnumTexts(EnumType::kRngDistribution)[*instruction.payload(Attr::kDistribution)], "rng_"))}});
    }
    case Opcode::kRngBitGenerator:
      return Define(instruction, "stablehlo.rng_bit_generator", OperandsOf(instruction),
                    {{"rng_algorithm",
                      n().Enum("stablehlo.rng_algorithm",
                               EnumName(EnumTexts(EnumType::kRngAlgorithm)[*instruction.payload(Attr::kRngAlgorithm)],
                                        "rng_"))}});
    case Opcode::kTopK:
      if (!instruction.bool_attr(Attr::kLargest, true)) return Unsupported(instruction, "the smallest elements");
      return Define(instruction, "chlo.top_k", OperandsOf(instruction),
                    {{"k", I64(instruction.int_attr(Attr::kK))},
                     {"is_stable", n().Bool(instruction.bool_attr(Attr::kIsStable, true))}});
    case Opcode::kGetDimensionSize:
      return Define(instruction, "stablehlo.get_dimension_size", OperandsOf(instruction), {{"dimension", dimension()}});
    case Opcode::kSetDimensionSize:
      return Define(instruction, "stablehlo.set_dimension_size", OperandsOf(instruction), {{"dimension", dimension()}});
    case Opcode::kAfterAll:
      return Define(instruction, instruction.operand_count() == 0 ? "stablehlo.create_token" : "stablehlo.after_all",
                    OperandsOf(instruction));
    case Opcode::kOptimizationBarrier:
      return instruction.shape().IsTuple() && !values_[instruction.operand(0).id().value].valid()
                 ? Define(instruction, "stablehlo.optimization_barrier", Elements(instruction.operand(0)))
             : instruction.shape().IsTuple()
                 ? Unsupported(instruction, "a tuple")
                 : Define(instruction, "stablehlo.optimization_barrier", OperandsOf(instruction));
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectiveBroadcast:
      return ConvertCollective(instruction);
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
      return ConvertControlFlow(instruction);
    case Opcode::kCustomCall:
      return ConvertCustomCall(instruction);
    default:
      return Unsupported(instruction);
  }
}

}  // namespace hlokit::stablehlo
