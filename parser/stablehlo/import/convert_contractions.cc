// SPDX-License-Identifier: Apache-2.0
// Contractions, windows, reductions, linear algebra, random numbers.
#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "parser/mlir/convolution_numbers.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::Status Converter::ConvertDotGeneral(const Op& op) {
  const NodeId numbers = Attribute(op, "dot_dimension_numbers");
  if (!numbers.valid()) return Error(op, "requires attribute 'dot_dimension_numbers'");
  Attrs attrs = {List(Attr::kLhsBatchDims, FieldInts(numbers, "lhs_batching_dimensions")),
                 List(Attr::kLhsContractingDims, FieldInts(numbers, "lhs_contracting_dimensions")),
                 List(Attr::kRhsBatchDims, FieldInts(numbers, "rhs_batching_dimensions")),
                 List(Attr::kRhsContractingDims, FieldInts(numbers, "rhs_contracting_dimensions"))};
  if (absl::Status status = AddPrecision(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddAlgorithm(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kDot, operands(op), attrs);
}

absl::Status Converter::ConvertDot(const Op& op) {
  const int64_t lhs[] = {shape_of(operand(op, 0)).rank() > 1 ? 1 : 0}, rhs[] = {0};
  Attrs attrs = {List(Attr::kLhsContractingDims, lhs), List(Attr::kRhsContractingDims, rhs)};
  if (absl::Status status = AddPrecision(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kDot, operands(op), attrs);
}

absl::Status Converter::ConvertEinsum(const Op& op) {
  // "ab,bc->ac": batch and contracted labels, then the order of the result.
  std::string config;
  for (char c : StringOf(op, "einsum_config")) {
    if (c != ' ') config.push_back(c);
  }
  const size_t comma = config.find(','), arrow = config.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow)
    return Error(op, "has a malformed config");
  const std::string lhs = config.substr(0, comma), rhs = config.substr(comma + 1, arrow - comma - 1);
  const std::string result = config.substr(arrow + 2);
  Ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  std::string order;
  for (size_t i = 0; i < lhs.size(); ++i) {
    const size_t other = rhs.find(lhs[i]);
    if (other == std::string::npos) continue;
    const bool batch = result.find(lhs[i]) != std::string::npos;
    (batch ? lhs_batch : lhs_contracting).push_back(static_cast<int64_t>(i));
    (batch ? rhs_batch : rhs_contracting).push_back(static_cast<int64_t>(other));
    if (batch) order.push_back(lhs[i]);
  }
  for (const std::string* side : {&lhs, &rhs}) {
    const std::string& other = side == &lhs ? rhs : lhs;
    for (char c : *side) {
      if (other.find(c) == std::string::npos) order.push_back(c);
    }
  }
  Attrs attrs = {List(Attr::kLhsBatchDims, lhs_batch), List(Attr::kLhsContractingDims, lhs_contracting),
                 List(Attr::kRhsBatchDims, rhs_batch), List(Attr::kRhsContractingDims, rhs_contracting)};
  Ints permutation;
  for (char c : result) {
    const size_t at = order.find(c);
    if (at == std::string::npos) return Error(op, "has a malformed config");
    permutation.push_back(static_cast<int64_t>(at));
  }
  if (permutation.size() != order.size()) return Error(op, "has a config that sums over one operand");
  const Result dot = b().Add(Opcode::kDot, operands(op), attrs);
  if (!dot.ok()) return SetResult(op, dot);
  return Emit(op, Opcode::kTranspose, {*dot}, {List(Attr::kDimensions, permutation)});
}

// ---- convolution ----

absl::StatusOr<Converter::Ints> Converter::WindowList(const Op& op, const Ints& sizes, const Ints& strides,
                                                      const Ints& padding, const Ints& base, const Ints& dilation,
                                                      const Ints& reversal) const {
  Ints list;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto at = [&](const Ints& values, size_t k, int64_t absent) {
      return k < values.size() ? values[k] : absent;
    };
    list.insert(list.end(), {sizes[i], at(strides, i, 1), at(padding, 2 * i, 0), at(padding, 2 * i + 1, 0),
                             at(base, i, 1), at(dilation, i, 1), at(reversal, i, 0)});
  }
  for (const Ints* values : {&strides, &base, &dilation, &reversal}) {
    if (!values->empty() && values->size() != sizes.size()) {
      return Error(op, "has window attributes of another number than that of its dimensions");
    }
  }
  return list;
}

absl::Status Converter::ConvolutionWithPadding(const Op& op, const Ints& padding) {
  const NodeId numbers = Attribute(op, "dimension_numbers");
  mlir::ConvolutionNumbers read;
  if (const std::string message = mlir::ReadConvolutionNumbers(nodes(), numbers, &read); !message.empty()) {
    return Error(op, StrCat("has malformed dimension numbers: ", message));
  }
  Ints dims = {static_cast<int64_t>(read.parts[0].spatial.size())};
  for (const mlir::ConvolutionNumbers::Part& part : read.parts) {
    if (part.spatial.size() != read.parts[0].spatial.size()) return Error(op, "has dimension numbers of unequal ranks");
    dims.insert(dims.end(), {part.first, part.second});
    dims.insert(dims.end(), part.spatial.begin(), part.spatial.end());
  }
  const auto spatial = static_cast<size_t>(dims[0]);
  const Shape kernel = shape_of(operand(op, 1));
  Ints sizes;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t at = 1 + (2 + spatial) + 2 + i;
    if (at >= dims.size() || dims[at] < 0 || dims[at] >= kernel.rank())
      return Error(op, "has dimension numbers out of range");
    sizes.push_back(kernel.dim(dims[at]));
  }
  absl::StatusOr<Ints> strides = IntsOf(op, "window_strides", true), base = IntsOf(op, "lhs_dilation", true),
                       dilation = IntsOf(op, "rhs_dilation", true), reversal = IntsOf(op, "window_reversal", true);
  for (const auto* list : {&strides, &base, &dilation, &reversal}) {
    if (!list->ok()) return list->status();
  }
  absl::StatusOr<Ints> window = WindowList(op, sizes, *strides, padding, *base, *dilation, *reversal);
  if (!window.ok()) return window.status();
  Attrs attrs = {List(Attr::kWindow, *window), List(Attr::kDimLabels, dims),
                 Int(Attr::kFeatureGroupCount, IntOf(op, "feature_group_count", 1)),
                 Int(Attr::kBatchGroupCount, IntOf(op, "batch_group_count", 1))};
  if (absl::Status status = AddPrecision(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kConvolution, operands(op, 0, 2), attrs);
}

absl::Status Converter::ConvertConvolution(const Op& op) {
  absl::StatusOr<Ints> padding = IntsOf(op, "padding", /*optional=*/true);
  if (!padding.ok()) return padding.status();
  return ConvolutionWithPadding(op, *padding);
}

absl::Status Converter::ConvertDynamicConv(const Op& op) {
  const std::optional<Ints> padding = op.operand_count == 3 ? ConstantInts(program_.operands_of(op)[2]) : std::nullopt;
  return padding ? ConvolutionWithPadding(op, *padding) : ConvertNone(op);
}

// ---- reductions ----

absl::Status Converter::ConvertReduce(const Op& op) {
  absl::StatusOr<Ints> dimensions = IntsOf(op, "dimensions");
  if (!dimensions.ok()) return dimensions.status();
  return EmitTuple(op, Opcode::kReduce, operands(op),
                   {List(Attr::kDimensions, *dimensions), Builder::Calls(Attr::kToApply, callee(0))});
}

absl::Status Converter::ConvertReduceWindow(const Op& op) {
  absl::StatusOr<Ints> sizes = IntsOf(op, "window_dimensions"), strides = IntsOf(op, "window_strides", true),
                       padding = IntsOf(op, "padding", true), base = IntsOf(op, "base_dilations", true),
                       dilation = IntsOf(op, "window_dilations", true);
  for (const auto* list : {&sizes, &strides, &padding, &base, &dilation}) {
    if (!list->ok()) return list->status();
  }
  absl::StatusOr<Ints> window = WindowList(op, *sizes, *strides, *padding, *base, *dilation, {});
  if (!window.ok()) return window.status();
  return EmitTuple(op, Opcode::kReduceWindow, operands(op),
                   {List(Attr::kWindow, *window), Builder::Calls(Attr::kToApply, callee(0))});
}

absl::Status Converter::ConvertSelectAndScatter(const Op& op) {
  absl::StatusOr<Ints> sizes = IntsOf(op, "window_dimensions", true), strides = IntsOf(op, "window_strides", true),
                       padding = IntsOf(op, "padding", true);
  for (const auto* list : {&sizes, &strides, &padding}) {
    if (!list->ok()) return list->status();
  }
  Ints window_sizes = *sizes;
  if (window_sizes.empty()) window_sizes.assign(static_cast<size_t>(shape_of(operand(op, 0)).rank()), 1);
  absl::StatusOr<Ints> window = WindowList(op, window_sizes, *strides, *padding, {}, {}, {});
  if (!window.ok()) return window.status();
  return Emit(op, Opcode::kSelectAndScatter, operands(op),
              {List(Attr::kWindow, *window), Builder::Calls(Attr::kSelect, callee(0)),
               Builder::Calls(Attr::kScatter, callee(1))});
}

absl::Status Converter::ConvertMap(const Op& op) {
  absl::StatusOr<Ints> dimensions = IntsOf(op, "dimensions");
  if (!dimensions.ok()) return dimensions.status();
  return Emit(op, Opcode::kMap, operands(op),
              {List(Attr::kDimensions, *dimensions), Builder::Calls(Attr::kToApply, callee(0))});
}

absl::Status Converter::ConvertScan(const Op& op) {
  const int64_t dimension[] = {IntOf(op, "dimension")};
  const std::optional<Ints> segments = nodes().Integers(Attribute(op, "operandSegmentSizes"));
  const int64_t carries = segments && segments->size() == 2 ? (*segments)[1] : op.operand_count / 2;
  Attrs attrs = {List(Attr::kDimensions, dimension),
                 Int(Attr::kNumCarries, carries),
                 {Attr::kIsReverse, IntOf(op, "is_reverse") != 0},
                 {Attr::kIsAssociative, IntOf(op, "is_associative") != 0},
                 Builder::Calls(Attr::kToApply, callee(0))};
  if (op.result_count == 1) return Emit(op, Opcode::kScan, operands(op), attrs);
  std::vector<Shape> elements;
  for (size_t i = 0; i < op.result_count; ++i) {
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape.status();
    elements.push_back(*shape);
  }
  return SetResults(op, b().Add(Opcode::kScan, operands(op), attrs, shapes().Tuple(elements)));
}

// ---- linear algebra ----

absl::Status Converter::ConvertFft(const Op& op) {
  absl::StatusOr<Ints> length = IntsOf(op, "fft_length");
  if (!length.ok()) return length.status();
  absl::StatusOr<AttrValue> type = EnumAttr(op, "fft_type", Attr::kFftType);
  if (!type.ok()) return type.status();
  return Emit(op, Opcode::kFft, operands(op), {*type, List(Attr::kFftLength, *length)});
}

absl::Status Converter::ConvertCholesky(const Op& op) { return Emit(op, Opcode::kCholesky, operands(op)); }

absl::Status Converter::ConvertTriangularSolve(const Op& op) {
  absl::StatusOr<AttrValue> transpose = EnumAttr(op, "transpose_a", Attr::kTransposeA);
  if (!transpose.ok()) return transpose.status();
  return Emit(op, Opcode::kTriangularSolve, operands(op), {{Attr::kLeftSide, IntOf(op, "left_side") != 0}, *transpose});
}

absl::Status Converter::ConvertBatchNorm(const Op& op) {
  const NodeId epsilon = Attribute(op, "epsilon");
  if (!epsilon.valid() || nodes().kind(epsilon) != NodeKind::kFloat) return Error(op, "requires attribute 'epsilon'");
  const auto value = static_cast<float>(std::bit_cast<double>(nodes().ints(epsilon)[0]));
  return EmitTuple(
      op, OpcodeOf(op), operands(op),
      {{Attr::kEpsilon, std::bit_cast<uint32_t>(value)}, Int(Attr::kFeatureIndex, IntOf(op, "feature_index"))});
}

absl::Status Converter::ConvertRaggedDot(const Op& op) {
  const NodeId numbers = Attribute(op, "ragged_dot_dimension_numbers");
  if (!numbers.valid()) return Error(op, "requires attribute 'ragged_dot_dimension_numbers'");
  Attrs attrs = {List(Attr::kLhsBatchDims, FieldInts(numbers, "lhs_batching_dimensions")),
                 List(Attr::kLhsContractingDims, FieldInts(numbers, "lhs_contracting_dimensions")),
                 List(Attr::kRhsBatchDims, FieldInts(numbers, "rhs_batching_dimensions")),
                 List(Attr::kRhsContractingDims, FieldInts(numbers, "rhs_contracting_dimensions")),
                 List(Attr::kLhsRaggedDims, FieldInts(numbers, "lhs_ragged_dimensions")),
                 List(Attr::kRhsGroupDims, FieldInts(numbers, "rhs_group_dimensions"))};
  if (absl::Status status = AddPrecision(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kRaggedDot, operands(op), attrs);
}

absl::Status Converter::ConvertTopK(const Op& op) {
  return EmitTuple(op, Opcode::kTopK, operands(op),
                   {Int(Attr::kK, IntOf(op, "k")),
                    {Attr::kLargest, IntOf(op, "largest", 1) != 0},
                    {Attr::kIsStable, IntOf(op, "is_stable", 1) != 0}});
}

// ---- random numbers ----

absl::Status Converter::ConvertRng(const Op& op) {
  absl::StatusOr<AttrValue> distribution = EnumAttr(op, "rng_distribution", Attr::kDistribution, "rng_");
  if (!distribution.ok()) return distribution.status();
  return Emit(op, Opcode::kRng, operands(op, 0, 2), {*distribution});
}

absl::Status Converter::ConvertRngBitGenerator(const Op& op) {
  absl::StatusOr<AttrValue> algorithm = EnumAttr(op, "rng_algorithm", Attr::kRngAlgorithm, "rng_");
  if (!algorithm.ok()) return algorithm.status();
  if (KeptOpcode(op) != Opcode::kRngBitGenerator) {
    return EmitTuple(op, Opcode::kRngBitGenerator, operands(op), {*algorithm});
  }
  // One without its state among the results.
  absl::StatusOr<Shape> shape = ResultShape(op, 1);
  if (!shape.ok()) return shape.status();
  const Result made = b().Add(Opcode::kRngBitGenerator, operands(op), {*algorithm}, *shape);
  if (absl::Status status = SetResult(op, made, 1); !status.ok()) return status;
  return Annotate(op, *made);
}

}  // namespace hlokit::stablehlo
