// SPDX-License-Identifier: Apache-2.0
// Operations whose dimensions are indexed by data. An index is clamped or checked against the whole array, then the
// offset of the part is subtracted. What is read outside of a part is the identity of a sum, which combines the parts;
// what would be written outside is dropped.
#include <algorithm>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

bool IsListed(absl::Span<const int64_t> dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

std::optional<size_t> PositionOf(absl::Span<const int64_t> dims, int64_t dim) {
  const auto found = std::find(dims.begin(), dims.end(), dim);
  if (found == dims.end()) return std::nullopt;
  return static_cast<size_t>(found - dims.begin());
}

// Returns true if some dimension of the array has the factor.
bool IsListed(const ArrayFactors& array, size_t factor) {
  return std::any_of(array.begin(), array.end(), [&](const std::vector<int32_t>& dim) {
    return std::find(dim.begin(), dim.end(), static_cast<int32_t>(factor)) != dim.end();
  });
}

// The factor of a dimension that has one.
size_t FactorOf(const ShardingRule& rule, int64_t operand, int64_t dim) {
  return ToSize(rule.operands[ToSize(operand)][ToSize(dim)][0]);
}

}  // namespace

const AxisList& ComputationPartitioner::AxesOf(const LocalOp& op, int64_t operand, int64_t dim) const {
  return op.choice->axes[FactorOf(*op.rule, operand, dim)];
}

// ---- dynamic-slice, dynamic-update-slice ----

bool ComputationPartitioner::DivideDynamicSlice(Instruction i, DividedOp* op) {
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    const size_t f = FactorOf(*op->rule, 0, d);
    if (op->rule->factors[f].kind == FactorKind::kLookedUp) op->divisible[f] = op->combined[f] = true;
  }
  return true;
}

bool ComputationPartitioner::DivideDynamicUpdateSlice(Instruction i, DividedOp* op) {
  for (int64_t d = 0; d < i.shape().rank(); ++d) op->divisible[FactorOf(*op->rule, 0, d)] = true;
  return true;
}

std::vector<InstructionId> ComputationPartitioner::StartsOf(const LocalOp& op, size_t first) {
  std::vector<InstructionId> starts(op.operands.begin() + static_cast<ptrdiff_t>(first), op.operands.end());
  if (starts.size() != 1 || builder().shape_of(starts[0]).rank() != 1) return starts;
  const InstructionId vector = starts[0];
  const int64_t count = builder().shape_of(vector).dim(0);
  starts.clear();
  for (int64_t d = 0; d < count; ++d) starts.push_back(emitter_.Reshape(emitter_.Slice(vector, {d}, {d + 1}), {}));
  return starts;
}

InstructionId ComputationPartitioner::NarrowStart(InstructionId start, int64_t last) {
  const Shape own = builder().shape_of(start);
  const ElementType type = own.element_type();
  if (BitsOf(type) > 32 || type == ElementType::kU32) {
    const InstructionId low = emitter_.Scalar(type, 0), high = emitter_.Scalar(type, static_cast<double>(last));
    start = builder().Make(Opcode::kClamp, own, {low, start, high});
  }
  return builder().MakeConvert(start, ElementType::kS32);
}

InstructionId ComputationPartitioner::LocalStart(const LocalOp& op, InstructionId start, int64_t operand, int64_t dim,
                                                 int64_t size) {
  const int64_t whole = op.whole.operand(operand).shape().dim(dim);
  const int64_t local = builder().shape_of(op.operands[ToSize(operand)]).dim(dim);
  const Shape s32 = builder().shapes().Scalar(ElementType::kS32);
  start = NarrowStart(start, whole - size);
  start = builder().Make(Opcode::kClamp, s32, {emitter_.Constant(0), start, emitter_.Constant(whole - size)});
  const InstructionId tile = emitter_.TileNumber(op.choice->frame, AxesOf(op, operand, dim));
  start = builder().Make(Opcode::kSubtract, s32, {start, emitter_.Times(tile, local)});
  return builder().Make(Opcode::kClamp, s32, {emitter_.Constant(-size), start, emitter_.Constant(local)});
}

Value ComputationPartitioner::EmitDynamicSlice(const LocalOp& op) {
  const Instruction i = op.whole;
  InstructionId array = op.operands[0];
  std::vector<InstructionId> starts = StartsOf(op, 1);
  const int64_t rank = i.shape().rank();
  std::vector<int64_t> sizes = ToVector(LocalShapeOf(i.shape(), op.results).dims()), margin(ToSize(rank), 0), cut;
  for (int64_t d = 0; d < rank; ++d) {
    if (op.rule->factors[FactorOf(*op.rule, 0, d)].kind != FactorKind::kLookedUp || AxesOf(op, 0, d).empty()) continue;
    // The part between identities: what the slice takes of them is in the parts of others.
    const InstructionId start = LocalStart(op, starts[ToSize(d)], 0, d, sizes[ToSize(d)]);
    starts[ToSize(d)] = emitter_.Plus(start, emitter_.Constant(sizes[ToSize(d)]));
    margin[ToSize(d)] = sizes[ToSize(d)];
    cut.push_back(d);
  }
  if (!cut.empty()) {
    const Shape whole = i.operand(0).shape();
    const ElementType type = whole.element_type();
    const InstructionId identity =
        MakeIdentity(&emitter_, type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd, type);
    const Tiling tiling = TilingFor(*op.rule, *op.choice, op.rule->operands[0]);
    array = emitter_.MaskPadding(array, whole, tiling, cut, identity);
    array = emitter_.Pad(array, identity, margin, margin);
    // All indices of one type.
    for (size_t k = 0; k < starts.size(); ++k) {
      const auto d = static_cast<int64_t>(k);
      if (margin[k] == 0) starts[k] = NarrowStart(starts[k], i.operand(0).shape().dim(d) - i.shape().dim(d));
    }
  }
  std::vector<InstructionId> operands = {array};
  operands.insert(operands.end(), starts.begin(), starts.end());
  const InstructionId local = Clone(i, operands, LocalShapeOf(i.shape(), op.results));
  module_.SetAttr(local, Attr::kDynamicSliceSizes, module_.ListPayload(sizes));
  return {{local, i.shape(), op.results[0]}};
}

Value ComputationPartitioner::EmitDynamicUpdateSlice(const LocalOp& op) {
  if (!op.windows->empty()) return EmitUpdateAsWindow(op);
  const Instruction i = op.whole;
  InstructionId array = op.operands[0];
  std::vector<InstructionId> starts = StartsOf(op, 2);
  const Shape update = builder().shape_of(op.operands[1]);
  const std::vector<int64_t> local = ToVector(builder().shape_of(array).dims());
  std::vector<int64_t> margin(local.size(), 0), limits = local;
  bool any = false;
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (op.rule->factors[FactorOf(*op.rule, 0, d)].kind != FactorKind::kLookedUp || AxesOf(op, 0, d).empty()) continue;
    const size_t k = ToSize(d);
    const InstructionId start = LocalStart(op, starts[k], 0, d, update.dim(d));
    starts[k] = emitter_.Plus(start, emitter_.Constant(update.dim(d)));
    margin[k] = update.dim(d);
    limits[k] += update.dim(d);
    any = true;
  }
  if (any) {
    // Into a part with margins, which take what belongs to others.
    array = emitter_.Pad(array, emitter_.Scalar(i.shape().element_type(), 0), margin, margin);
    for (size_t k = 0; k < starts.size(); ++k) {
      const auto d = static_cast<int64_t>(k);
      if (margin[k] == 0) starts[k] = NarrowStart(starts[k], i.operand(0).shape().dim(d) - i.operand(1).shape().dim(d));
    }
  }
  std::vector<InstructionId> operands = {array, op.operands[1]};
  operands.insert(operands.end(), starts.begin(), starts.end());
  InstructionId result = Clone(i, operands, any ? builder().shape_of(array) : LocalShapeOf(i.shape(), op.results));
  if (any) result = emitter_.Slice(result, margin, limits);
  return {{result, i.shape(), op.results[0]}};
}

// ---- gather, scatter ----

bool ComputationPartitioner::DivideGather(Instruction i, DividedOp* op) {
  const GatherDims dims = GatherDims::Of(i);
  for (int64_t d = 0; d < i.operand(0).shape().rank(); ++d) {
    const size_t f = FactorOf(*op->rule, 0, d);
    // A dimension of size one that the result has not: the part of one device is for all.
    if (IsListed(dims.collapsed_slice_dims, d) && dims.slice_sizes[ToSize(d)] == i.operand(0).shape().dim(d)) {
      const bool batch = IsListed(op->rule->operands[1], f);
      op->divisible[f] = op->divisible[f] && batch;
    }
    // A slice of more than one element may lie in two parts.
    if (op->rule->factors[f].kind != FactorKind::kLookedUp || dims.slice_sizes[ToSize(d)] != 1) continue;
    if (IsListed(dims.start_index_map, d)) op->divisible[f] = op->combined[f] = true;
  }
  return true;
}

bool ComputationPartitioner::DivideScatter(Instruction i, DividedOp* op) {
  const ScatterDims dims = ScatterDims::Of(i);
  const int64_t count = i.operand_count() / 2;
  for (int64_t d = 0; d < i.operand(0).shape().rank(); ++d) {
    const size_t f = FactorOf(*op->rule, 0, d);
    if (op->rule->factors[f].kind != FactorKind::kLookedUp || !IsListed(dims.inserted_window_dims, d)) continue;
    if (IsListed(dims.scatter_dims_to_operand_dims, d)) op->divisible[f] = true;
  }
  const std::optional<Opcode> opcode = BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
  if (count != 1 || !opcode || !HasIdentity(*opcode, i.operand(0).shape().element_type())) return true;
  op->combines = ReductionOf(*opcode, i.operand(0).shape().element_type());
  for (int64_t d = 0; d < i.operand(1).shape().rank(); ++d) {
    const size_t f = FactorOf(*op->rule, 1, d);
    if (op->rule->factors[f].kind == FactorKind::kReduced) op->divisible[f] = op->combined[f] = true;
  }
  return true;
}

InstructionId ComputationPartitioner::SubtractOffsets(InstructionId indices, int64_t index_vector_dim,
                                                      const std::vector<InstructionId>& offsets) {
  if (std::none_of(offsets.begin(), offsets.end(), [](InstructionId id) { return id.valid(); })) return indices;
  if (BitsOf(builder().shape_of(indices).element_type()) < 32) {
    indices = builder().MakeConvert(indices, ElementType::kS32);
  }
  const Shape shape = builder().shape_of(indices);
  if (index_vector_dim >= shape.rank()) {
    const InstructionId offset = builder().MakeConvert(offsets[0], shape.element_type());
    return builder().Make(Opcode::kSubtract, shape, {indices, builder().MakeSplat(shape, offset)});
  }
  std::vector<InstructionId> components;
  for (const InstructionId& offset : offsets) {
    const InstructionId value = offset.valid() ? offset : emitter_.Constant(0);
    components.push_back(emitter_.Reshape(builder().MakeConvert(value, shape.element_type()), {1}));
  }
  const InstructionId vector = emitter_.Concatenate(components, 0);
  const InstructionId spread =
      builder().Make(Opcode::kBroadcast, shape, {vector}, {builder().List(Attr::kDimensions, {index_vector_dim})});
  return builder().Make(Opcode::kSubtract, shape, {indices, spread});
}

Value ComputationPartitioner::EmitGather(const LocalOp& op) {
  const Instruction i = op.whole;
  const std::vector<int64_t> index_map = ToVector(i.list_attr(Attr::kStartIndexMap));
  const std::vector<int64_t> batching = ToVector(i.list_attr(Attr::kOperandBatchingDims));
  const int64_t index_vector_dim = i.int_attr(Attr::kIndexVectorDim);
  std::vector<int64_t> slice_sizes = ToVector(i.list_attr(Attr::kSliceSizes));
  const Shape whole = i.operand(0).shape();
  const Shape local = builder().shape_of(op.operands[0]);
  InstructionId indices = op.operands[1];

  std::vector<InstructionId> offsets(index_map.size());
  bool looked_up = false;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (slice_sizes[ToSize(d)] == whole.dim(d)) slice_sizes[ToSize(d)] = local.dim(d);
    const AxisList& axes = AxesOf(op, 0, d);
    const std::optional<size_t> component = PositionOf(index_map, d);
    if (axes.empty() || !component || IsListed(batching, d) || slice_sizes[ToSize(d)] != 1) continue;
    offsets[*component] = emitter_.Times(emitter_.TileNumber(op.choice->frame, axes), local.dim(d));
    looked_up = looked_up || op.rule->factors[FactorOf(*op.rule, 0, d)].kind == FactorKind::kLookedUp;
  }
  InstructionId mask;
  if (looked_up) {
    // Clamped as in the whole array, then what is in the part.
    if (BitsOf(builder().shape_of(indices).element_type()) < 32) {
      indices = builder().MakeConvert(indices, ElementType::kS32);
    }
    const Shape shape = builder().shape_of(indices);
    const ElementType type = shape.element_type();
    const bool implicit = index_vector_dim >= shape.rank();
    const auto vector_of = [&](const std::vector<int64_t>& values) {
      std::vector<InstructionId> components;
      for (int64_t value : values) {
        components.push_back(emitter_.Reshape(emitter_.Scalar(type, static_cast<double>(value)), {1}));
      }
      if (implicit) return builder().MakeSplat(shape, emitter_.Scalar(type, static_cast<double>(values[0])));
      return builder().Make(Opcode::kBroadcast, shape, {emitter_.Concatenate(components, 0)},
                            {builder().List(Attr::kDimensions, {index_vector_dim})});
    };
    std::vector<int64_t> lasts, sizes;
    std::vector<InstructionId> own;
    for (size_t c = 0; c < index_map.size(); ++c) {
      const int64_t d = index_map[c];
      const bool cut = offsets[c].valid();
      lasts.push_back(cut ? whole.dim(d) - 1 : whole.dim(d));
      sizes.push_back(cut ? local.dim(d) : whole.dim(d) + 1);
    }
    const InstructionId zero = builder().MakeSplat(shape, emitter_.Scalar(type, 0));
    indices = builder().Make(Opcode::kClamp, shape, {zero, indices, vector_of(lasts)});
    indices = SubtractOffsets(indices, index_vector_dim, offsets);
    const InstructionId from = builder().MakeCompare(ComparisonDirection::kGe, indices, zero);
    const InstructionId to = builder().MakeCompare(ComparisonDirection::kLt, indices, vector_of(sizes));
    mask = builder().Make(Opcode::kAnd, builder().shape_of(from), {from, to});
    if (!implicit) {
      const InstructionId yes = emitter_.Scalar(ElementType::kPred, 1);
      mask = builder().MakeReduce(mask, yes, {index_vector_dim}, state_.Reducer(Opcode::kAnd, ElementType::kPred));
    }
  } else {
    indices = SubtractOffsets(indices, index_vector_dim, offsets);
  }
  const Shape result = LocalShapeOf(i.shape(), op.results);
  const std::vector<int64_t> offset_dims = ToVector(i.list_attr(Attr::kOffsetDims));
  InstructionId id = Clone(i, {op.operands[0], indices}, result);
  module_.SetAttr(id, Attr::kSliceSizes, module_.ListPayload(slice_sizes));
  if (mask.valid()) {
    module_.RemoveAttr(id, Attr::kIndicesAreSorted);
    std::vector<int64_t> batch;
    for (int64_t d = 0; d < result.rank(); ++d) {
      if (!IsListed(offset_dims, d)) batch.push_back(d);
    }
    const Shape pred = builder().shapes().Array(ElementType::kPred, result.dims());
    if (pred.rank() != builder().shape_of(mask).rank()) {
      mask = builder().Make(Opcode::kBroadcast, pred, {mask}, {builder().List(Attr::kDimensions, batch)});
    }
    const ElementType type = result.element_type();
    const InstructionId identity =
        MakeIdentity(&emitter_, type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd, type);
    id = emitter_.Select(mask, id, emitter_.Splat(result, identity));
  }
  return {{id, i.shape(), op.results[0]}};
}

Value ComputationPartitioner::EmitScatter(const LocalOp& op) {
  const Instruction i = op.whole;
  const int64_t count = i.operand_count() / 2;
  const std::vector<int64_t> index_map = ToVector(i.list_attr(Attr::kScatterDimsToOperandDims));
  const std::vector<int64_t> batching = ToVector(i.list_attr(Attr::kInputBatchingDims));
  const std::vector<int64_t> inserted = ToVector(i.list_attr(Attr::kInsertedWindowDims));
  const int64_t index_vector_dim = i.int_attr(Attr::kIndexVectorDim);
  const Shape whole = i.operand(0).shape();
  const Shape local = builder().shape_of(op.operands[0]);
  std::vector<InstructionId> operands = op.operands;
  InstructionId& indices = operands[ToSize(count)];

  std::vector<InstructionId> offsets(index_map.size());
  for (int64_t d = 0; d < whole.rank(); ++d) {
    const AxisList& axes = AxesOf(op, 0, d);
    const std::optional<size_t> component = PositionOf(index_map, d);
    if (axes.empty() || !component || IsListed(batching, d) || !IsListed(inserted, d)) continue;
    offsets[*component] = emitter_.Times(emitter_.TileNumber(op.choice->frame, axes), local.dim(d));
  }
  // Rows of padding point nowhere.
  const Shape index_shape = i.operand(count).shape();
  std::vector<int64_t> rows;
  for (int64_t d = 0; d < index_shape.rank(); ++d) {
    if (d != index_vector_dim) rows.push_back(d);
  }
  indices = SubtractOffsets(indices, index_vector_dim, offsets);
  const ElementType type = builder().shape_of(indices).element_type();
  const std::vector<std::byte> ones(static_cast<size_t>(BytesOf(type)), std::byte{0xff});
  const Tiling index_tiling = TilingFor(*op.rule, *op.choice, op.rule->operands[ToSize(count)]);
  const bool uneven = index_tiling.tiled() && std::any_of(rows.begin(), rows.end(), [&](int64_t d) {
                        return index_shape.dim(d) % index_tiling.tiles(d) != 0;
                      });
  if (uneven) {
    indices = emitter_.MaskPadding(indices, index_shape, index_tiling, rows, builder().MakeScalar(type, ones.data()));
  }
  if (!op.choice->partial.empty()) {
    // The operand counts once.
    const Opcode opcode = *BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
    if (!IsIdempotent(opcode)) {
      const InstructionId tile = emitter_.TileNumber(op.choice->frame, op.choice->partial);
      const InstructionId first = builder().MakeCompare(ComparisonDirection::kEq, tile, emitter_.Constant(0));
      const InstructionId identity = MakeIdentity(&emitter_, opcode, local.element_type());
      const InstructionId identities = emitter_.Splat(local, identity);
      operands[0] = emitter_.Select(emitter_.Splat(local, first), operands[0], identities);
    }
  }
  const InstructionId id = Clone(i, operands, LocalShapeOf(i.shape(), op.results));
  module_.RemoveAttr(id, Attr::kIndicesAreSorted);
  if (uneven) module_.RemoveAttr(id, Attr::kUniqueIndices);
  return Unpack(id, i.shape(), op.results);
}

}  // namespace hlokit::spmd
