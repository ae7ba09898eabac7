// SPDX-License-Identifier: Apache-2.0
// Operations that move data.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;

absl::Status Converter::ConvertIota(const Op& op) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  // HLO has no size that is computed.
  if (op.operand_count != 0 && shape->has_dynamic_dims()) return ConvertNone(op);
  return Emit(op, Opcode::kIota, {}, {Int(Attr::kIotaDimension, IntOf(op, "iota_dimension"))});
}

absl::Status Converter::ConvertBroadcastInDim(const Op& op) {
  absl::StatusOr<Ints> dimensions = IntsOf(op, "broadcast_dimensions");
  if (!dimensions.ok()) return dimensions.status();
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  if (op.operand_count == 2 && shape->has_dynamic_dims()) return ConvertNone(op);
  InstructionId input = operand(op, 0);
  const Shape from = shape_of(input);
  if (!from.IsArray() || static_cast<int64_t>(dimensions->size()) != from.rank()) {
    return Error(op, StrCat("broadcast_dimensions size (", dimensions->size(), ") does not match operand rank (",
                            from.IsArray() ? from.rank() : 0, ")"));
  }
  if (KeptOpcode(op) == Opcode::kBroadcast) {
    return Emit(op, Opcode::kBroadcast, {input}, {List(Attr::kDimensions, *dimensions)});
  }
  // XLA has them ascend: others are transposed first.
  if (!std::is_sorted(dimensions->begin(), dimensions->end())) {
    Ints order(dimensions->size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t c) {
      return (*dimensions)[static_cast<size_t>(a)] < (*dimensions)[static_cast<size_t>(c)];
    });
    const Result transposed = b().Transpose(input, order);
    if (!transposed.ok()) return SetResult(op, transposed);
    input = *transposed;
    std::sort(dimensions->begin(), dimensions->end());
  }
  const Shape in = shape_of(input);
  bool grows = false;
  Ints middle(shape->dims().begin(), shape->dims().end());
  for (size_t i = 0; i < dimensions->size(); ++i) {
    const int64_t to = (*dimensions)[i];
    if (to < 0 || to >= shape->rank())
      return Error(op,
                   StrCat("broadcast_dimensions contains invalid value ", to, " for result with rank ", shape->rank()));
    const int64_t size = in.dim(static_cast<int64_t>(i));
    if (size == 1 && shape->dim(to) != 1) grows = true;
    middle[static_cast<size_t>(to)] = size;
  }
  if (!grows) return Emit(op, Opcode::kBroadcast, {input}, {List(Attr::kDimensions, *dimensions)});
  // A dimension of size 1 that grows is no HLO broadcast: it is in its place first, dropped by a reshape, and comes
  // back by a broadcast.
  const Result placed = b().Add(Opcode::kBroadcast, {input}, {List(Attr::kDimensions, *dimensions)},
                                shapes().Array(in.element_type(), middle));
  if (!placed.ok()) return SetResult(op, placed);
  Ints kept, kept_sizes;
  for (size_t i = 0; i < middle.size(); ++i) {
    if (middle[i] != shape->dim(static_cast<int64_t>(i))) continue;
    kept.push_back(static_cast<int64_t>(i));
    kept_sizes.push_back(middle[i]);
  }
  const Result reshaped = b().Reshape(*placed, kept_sizes);
  if (!reshaped.ok()) return SetResult(op, reshaped);
  return Emit(op, Opcode::kBroadcast, {*reshaped}, {List(Attr::kDimensions, kept)});
}

absl::Status Converter::ConvertBroadcast(const Op& op) {
  absl::StatusOr<Ints> sizes = IntsOf(op, "broadcast_sizes");
  if (!sizes.ok()) return sizes.status();
  Ints dimensions;
  for (int64_t i = 0; i < shape_of(operand(op, 0)).rank(); ++i) {
    dimensions.push_back(static_cast<int64_t>(sizes->size()) + i);
  }
  return Emit(op, Opcode::kBroadcast, {operand(op, 0)}, {List(Attr::kDimensions, dimensions)});
}

absl::Status Converter::ConvertReshape(const Op& op) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  if (shape->has_dynamic_dims() && op.operand_count == 2) {
    // The sizes, one by one: as they were before they became the vector, or taken from it.
    std::vector<InstructionId> inputs = {operand(op, 0)};
    const Instruction sizes = module_->instruction(operand(op, 1));
    const bool joined = !options_.as_xla && sizes.opcode() == Opcode::kConcatenate && shape->rank() != 0 &&
                        sizes.operand_count() == shape->rank();
    for (int64_t i = 0; joined && i < shape->rank(); ++i) {
      const Instruction part = sizes.operand(i);
      if (part.opcode() == Opcode::kReshape && part.operand(0).shape().IsScalar()) {
        inputs.push_back(part.operand(0).id());
      }
    }
    if (static_cast<int64_t>(inputs.size()) == shape->rank() + 1) return Emit(op, Opcode::kDynamicReshape, inputs);
    inputs.resize(1);
    for (int64_t i = 0; i < shape->rank(); ++i) {
      const int64_t start[] = {i}, limit[] = {i + 1};
      const Result part = b().Slice(operand(op, 1), start, limit);
      if (!part.ok()) return SetResult(op, part);
      const Result scalar = b().Reshape(*part, {});
      if (!scalar.ok()) return SetResult(op, scalar);
      inputs.push_back(*scalar);
    }
    return Emit(op, Opcode::kDynamicReshape, inputs);
  }
  return Emit(op, KeptOpcode(op) == Opcode::kBitcast ? Opcode::kBitcast : Opcode::kReshape, {operand(op, 0)});
}

absl::Status Converter::ConvertTranspose(const Op& op) {
  absl::StatusOr<Ints> permutation = IntsOf(op, "permutation");
  if (!permutation.ok()) return permutation.status();
  return Emit(op, Opcode::kTranspose, operands(op), {List(Attr::kDimensions, *permutation)});
}

absl::Status Converter::ConvertSlice(const Op& op) {
  absl::StatusOr<Ints> starts = IntsOf(op, "start_indices"), limits = IntsOf(op, "limit_indices"),
                       strides = IntsOf(op, "strides");
  for (const auto* list : {&starts, &limits, &strides}) {
    if (!list->ok()) return list->status();
  }
  if (starts->size() != limits->size() || starts->size() != strides->size()) {
    return Error(op, "has starts, limits and strides of different numbers");
  }
  Ints ranges;
  for (size_t i = 0; i < starts->size(); ++i) {
    ranges.insert(ranges.end(), {(*starts)[i], (*limits)[i], (*strides)[i]});
  }
  return Emit(op, Opcode::kSlice, {operand(op, 0)}, {List(Attr::kSlice, ranges)});
}

absl::Status Converter::ConvertRealDynamicSlice(const Op& op) {
  std::optional<Ints> parts[3];
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = ConstantInts(program_.operands_of(op)[i + 1]);
    if (!parts[i]) return ConvertNone(op);
  }
  Ints ranges;
  for (size_t i = 0; i < parts[0]->size() && i < parts[1]->size() && i < parts[2]->size(); ++i) {
    ranges.insert(ranges.end(), {(*parts[0])[i], (*parts[1])[i], (*parts[2])[i]});
  }
  return Emit(op, Opcode::kSlice, {operand(op, 0)}, {List(Attr::kSlice, ranges)});
}

namespace {

std::vector<int64_t> PaddingList(const std::vector<int64_t>& low, const std::vector<int64_t>& high,
                                 const std::vector<int64_t>& interior) {
  std::vector<int64_t> list;
  for (size_t i = 0; i < low.size() && i < high.size() && i < interior.size(); ++i) {
    list.insert(list.end(), {low[i], high[i], interior[i]});
  }
  return list;
}

}  // namespace

absl::Status Converter::ConvertPad(const Op& op) {
  absl::StatusOr<Ints> low = IntsOf(op, "edge_padding_low"), high = IntsOf(op, "edge_padding_high"),
                       interior = IntsOf(op, "interior_padding");
  for (const auto* list : {&low, &high, &interior}) {
    if (!list->ok()) return list->status();
  }
  return Emit(op, Opcode::kPad, operands(op), {List(Attr::kPadding, PaddingList(*low, *high, *interior))});
}

absl::Status Converter::ConvertDynamicPad(const Op& op) {
  std::optional<Ints> parts[3];
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = ConstantInts(program_.operands_of(op)[i + 2]);
    if (!parts[i]) return ConvertNone(op);
  }
  return Emit(op, Opcode::kPad, operands(op, 0, 2),
              {List(Attr::kPadding, PaddingList(*parts[0], *parts[1], *parts[2]))});
}

absl::Status Converter::ConvertConcatenate(const Op& op) {
  const int64_t dimension[] = {IntOf(op, "dimension")};
  return Emit(op, Opcode::kConcatenate, operands(op), {List(Attr::kDimensions, dimension)});
}

absl::Status Converter::ConvertReverse(const Op& op) {
  absl::StatusOr<Ints> dimensions = IntsOf(op, "dimensions");
  if (!dimensions.ok()) return dimensions.status();
  return Emit(op, Opcode::kReverse, operands(op), {List(Attr::kDimensions, *dimensions)});
}

absl::Status Converter::ConvertDynamicSlice(const Op& op) {
  absl::StatusOr<Ints> sizes = IntsOf(op, "slice_sizes");
  if (!sizes.ok()) return sizes.status();
  return Emit(op, Opcode::kDynamicSlice, operands(op), {List(Attr::kDynamicSliceSizes, *sizes)});
}

absl::Status Converter::ConvertGather(const Op& op) {
  const NodeId numbers = Attribute(op, "dimension_numbers");
  if (!numbers.valid()) return Error(op, "requires attribute 'dimension_numbers'");
  Ints sizes;
  if (op.operand_count == 3) {
    std::optional<Ints> constant = ConstantInts(program_.operands_of(op)[2]);
    if (!constant) return ConvertNone(op);
    sizes = *constant;
  } else {
    absl::StatusOr<Ints> given = IntsOf(op, "slice_sizes");
    if (!given.ok()) return given.status();
    sizes = *given;
  }
  Attrs attrs = {
      List(Attr::kOffsetDims, FieldInts(numbers, "offset_dims")),
      List(Attr::kCollapsedSliceDims, FieldInts(numbers, "collapsed_slice_dims")),
      List(Attr::kStartIndexMap, FieldInts(numbers, "start_index_map")),
      List(Attr::kOperandBatchingDims, FieldInts(numbers, "operand_batching_dims")),
      List(Attr::kStartIndicesBatchingDims, FieldInts(numbers, "start_indices_batching_dims")),
      Int(Attr::kIndexVectorDim, nodes().IntegerValue(nodes().Entry(numbers, "index_vector_dim")).value_or(0)),
      List(Attr::kSliceSizes, sizes)};
  return Emit(op, Opcode::kGather, operands(op, 0, 2), attrs);
}

absl::Status Converter::ConvertScatter(const Op& op) {
  const NodeId numbers = Attribute(op, "scatter_dimension_numbers");
  if (!numbers.valid()) return Error(op, "requires attribute 'scatter_dimension_numbers'");
  Attrs attrs = {
      List(Attr::kUpdateWindowDims, FieldInts(numbers, "update_window_dims")),
      List(Attr::kInsertedWindowDims, FieldInts(numbers, "inserted_window_dims")),
      List(Attr::kScatterDimsToOperandDims, FieldInts(numbers, "scatter_dims_to_operand_dims")),
      List(Attr::kInputBatchingDims, FieldInts(numbers, "input_batching_dims")),
      List(Attr::kScatterIndicesBatchingDims, FieldInts(numbers, "scatter_indices_batching_dims")),
      Int(Attr::kIndexVectorDim, nodes().IntegerValue(nodes().Entry(numbers, "index_vector_dim")).value_or(0)),
      Builder::Calls(Attr::kToApply, callee(0))};
  return EmitTuple(op, Opcode::kScatter, operands(op), attrs);
}

absl::Status Converter::ConvertSort(const Op& op) {
  int64_t dimension = IntOf(op, "dimension", -1);
  if (dimension < 0 && op.operand_count != 0) dimension += shape_of(operand(op, 0)).rank();
  const int64_t list[] = {dimension};
  return EmitTuple(op, Opcode::kSort, operands(op),
                   {List(Attr::kDimensions, list),
                    {Attr::kIsStable, IntOf(op, "is_stable") != 0},
                    Builder::Calls(Attr::kToApply, callee(0))});
}

absl::Status Converter::ConvertDimensionSize(const Op& op) {
  const int64_t dimension[] = {IntOf(op, "dimension")};
  return Emit(op, OpcodeOf(op), operands(op), {List(Attr::kDimensions, dimension)});
}

absl::Status Converter::ConvertSetDimensionSize(const Op& op) {
  const int64_t dimension[] = {IntOf(op, "dimension")};
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  // A constant size equal to the bound makes the dimension static; otherwise the rule says the shape, if the program
  // has it static.
  const Shape from = shape_of(operand(op, 0));
  const std::optional<Ints> size = ConstantInts(program_.operands_of(op)[1]);
  const bool whole = from.IsArray() && dimension[0] >= 0 && dimension[0] < from.rank() && size && size->size() == 1 &&
                     (*size)[0] == from.dim(dimension[0]);
  const bool known = !shape->has_unbounded_dims() && (whole || shape->has_dynamic_dims());
  return SetResult(op, b().Add(Opcode::kSetDimensionSize, operands(op), {List(Attr::kDimensions, dimension)},
                               known ? *shape : Shape()));
}

absl::Status Converter::ConvertTorchIndexSelect(const Op& op) {
  // A gather of slices of size 1 in the dimension; batch dimensions come first in both.
  const Shape shape = shape_of(operand(op, 0)), index = shape_of(operand(op, 1));
  const int64_t dimension = IntOf(op, "dim"), batch = IntOf(op, "batch_dims");
  if (!shape.IsArray() || !index.IsArray() || dimension < 0 || dimension >= shape.rank() || batch < 0 ||
      batch > dimension || batch > index.rank()) {
    return Error(op, "has dimensions out of range");
  }
  Ints offset, sizes, batching;
  for (int64_t i = 0; i < shape.rank(); ++i) sizes.push_back(i == dimension || i < batch ? 1 : shape.dim(i));
  for (int64_t i = batch; i < shape.rank(); ++i) {
    if (i != dimension) offset.push_back(i < dimension ? i : i - 1 + index.rank() - batch);
  }
  for (int64_t i = 0; i < batch; ++i) batching.push_back(i);
  const int64_t selected[] = {dimension};
  return Emit(
      op, Opcode::kGather, operands(op),
      {List(Attr::kOffsetDims, offset), List(Attr::kCollapsedSliceDims, selected), List(Attr::kStartIndexMap, selected),
       List(Attr::kOperandBatchingDims, batching), List(Attr::kStartIndicesBatchingDims, batching),
       Int(Attr::kIndexVectorDim, index.rank()), List(Attr::kSliceSizes, sizes)});
}

}  // namespace hlokit::stablehlo
