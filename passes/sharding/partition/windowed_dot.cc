// SPDX-License-Identifier: Apache-2.0
// Collective matmul: a dot that needs all parts of an operand, or whose result is scattered, as a loop over the parts,
// in which each travels while another is multiplied. After Wang et al., "Overlap Communication with Dependent
// Computation via Decomposition in Large Deep Learning Models", ASPLOS 2023.
//
//   gathered operand   step k multiplies the part of tile t + k, which the next device hands on. Along a dimension of
//   the
//                      result the product is a part of it; along a contracted one it is added, and the other operand is
//                      sliced.
//   scattered result   step k multiplies the slice for tile t + k + 1 and adds it to the sum that the next device hands
//                      on; the last step ends with this device's own part.
#include <algorithm>
#include <utility>

#include "ir/sharding/tile_assignment.h"
#include "ir/text/frontend_attributes.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

// Returns the dimension of an array that has the factor; -1 if none has.
int64_t DimOf(const ArrayFactors& array, size_t factor) {
  for (size_t d = 0; d < array.size(); ++d) {
    if (!array[d].empty() && ToSize(array[d][0]) == factor) return static_cast<int64_t>(d);
  }
  return -1;
}

std::vector<int64_t> Rotation(int64_t tiles) {
  std::vector<int64_t> source;
  for (int64_t i = 0; i < tiles; ++i) source.push_back((i + 1) % tiles);
  return source;
}

}  // namespace

bool ComputationPartitioner::IsWindowedSize(Shape whole, double both_bytes) const {
  const PartitionOptions& options = owner_.options();
  if (options.total_bytes_windowed_einsum_threshold >= 0) {
    return both_bytes >= static_cast<double>(options.total_bytes_windowed_einsum_threshold);
  }
  const double bytes = static_cast<double>(ByteSize(whole));
  return bytes >= static_cast<double>(options.threshold_for_windowed_einsum_mib) * 1048576;
}

std::optional<Value> ComputationPartitioner::WindowedDot(const DividedOp& divided, LocalOp* op) {
  const Instruction i = op->whole;
  if (i.opcode() != Opcode::kDot || i.operand_count() != 2 || i.has(Attr::kSparsityConfig)) return std::nullopt;
  // The user's word against it.
  const StringId word = FindFrontendAttribute(i, "_xla_collective_matmul");
  if (word.valid() && module_.context().str(word) == "none") return std::nullopt;
  const double both_bytes =
      static_cast<double>(ByteSize(i.operand(0).shape())) + static_cast<double>(ByteSize(i.operand(1).shape()));
  // The larger operand that one gather along one dimension would complete.
  DotLoop loop;
  double largest = -1;
  for (int64_t k = 0; k < 2; ++k) {
    const Leaf& leaf = LeafOf(i.operand(k));
    const TilingRef wanted = state_.tilings.Intern(TilingFor(*op->rule, *op->choice, op->rule->operands[ToSize(k)]));
    if (leaf.source.valid() || leaf.tiling == wanted || !IsMade(*leaf.tiling) || !IsMade(*wanted)) continue;
    const ReshardPlan& plan = state_.PlanFor(leaf.shape, leaf.tiling, wanted);
    if (plan.steps.size() != 1 || plan.steps[0].kind != MoveKind::kAllGather || plan.steps[0].moves.size() != 1)
      continue;
    const AxesMove& move = plan.steps[0].moves[0];
    const int64_t tiles = SizeOf(move.axes);
    if (tiles > owner_.options().max_windowed_einsum_iteration || !IsWindowedSize(leaf.shape, both_bytes)) continue;
    if (wanted->tiled() && !wanted->dims[ToSize(move.from)].empty()) continue;
    // Another user would need the whole operand anyway.
    if (!owner_.options().skip_checking_windowed_einsum_users && HasOtherUser(i.operand(k), i)) continue;
    const bool again = looped_.contains(i.operand(k).id().value);
    if (owner_.options().disable_ag_rewrite_for_multiple_consumers && again) continue;
    if (static_cast<double>(ByteSize(leaf.shape)) <= largest) continue;
    largest = static_cast<double>(ByteSize(leaf.shape));
    loop = {k, move.from, move.axes, plan.steps[0].after, tiles, false};
  }
  if (largest >= 0) {
    looped_.insert(i.operand(loop.operand).id().value);
    return GatheredDot(loop, op);
  }

  if (op->choice->partial.empty()) return std::nullopt;
  const std::vector<AxisList> dims = DimsOf(*op->results[0], i.shape().rank());
  const Combination combination =
      PlanCombination(i.shape(), op->choice->frame, dims, op->choice->partial, *divided.results[0], divided.combines);
  if (combination.scatters.size() != 1) return std::nullopt;
  const Combination::Scatter& scatter = combination.scatters[0];
  const int64_t tiles = SizeOf(scatter.axes);
  if (tiles > owner_.options().max_windowed_einsum_iteration || !IsWindowedSize(i.shape(), both_bytes)) {
    return std::nullopt;
  }
  const size_t f = ToSize(op->rule->results[0][ToSize(scatter.dim)][0]);
  const int64_t left = DimOf(op->rule->operands[0], f);
  loop = {left >= 0 ? 0 : 1, scatter.dim, scatter.axes, op->choice->frame, tiles, true};
  if (left >= 0 && DimOf(op->rule->operands[1], f) >= 0) return std::nullopt;  // a batch dimension
  std::optional<Value> value = ScatteredDot(loop, op);
  if (value) {
    (*value)[0].tiling = state_.tilings.Intern(WithDims(op->choice->frame, combination.dims));
    scattered_rest_ = combination.rest;
  }
  return value;
}

bool ComputationPartitioner::HasOtherUser(Instruction operand, Instruction user) const {
  for (const Instruction::UseRange::Value use : operand.uses()) {
    if (use.user != user && values_.find(use.user.id().value) == values_.end() &&
        use.user.parent().id() == operand.parent().id() && use.user.opcode() == Opcode::kDot) {
      return true;
    }
  }
  return false;
}

InstructionId ComputationPartitioner::SliceTile(Emitter* e, InstructionId array, int64_t dim, InstructionId start,
                                                int64_t size) {
  std::vector<int64_t> sizes = ToVector(e->builder().shape_of(array).dims());
  sizes[ToSize(dim)] = size;
  std::vector<InstructionId> starts(sizes.size(), e->Constant(0));
  starts[ToSize(dim)] = start;
  return e->DynamicSlice(array, starts, sizes);
}

InstructionId ComputationPartitioner::LocalDot(Emitter* e, Instruction whole, InstructionId lhs, InstructionId rhs,
                                               absl::Span<const int64_t> sizes) {
  Builder& b = e->builder();
  const InstructionId id = b.MakeClone(whole.id(), {lhs, rhs});
  module_.SetShape(id, b.shapes().Array(whole.shape().element_type(), sizes));
  module_.RemoveAttr(id, Attr::kSharding);
  module_.RemoveAttr(id, Attr::kControlPredecessors);
  return id;
}

ComputationPartitioner::DotState ComputationPartitioner::RunLoop(
    int64_t end, const DotState& state, const std::function<DotState(Emitter*, DotState)>& step) {
  const InstructionId tuple = builder().MakeTuple(state);
  const Shape shape = builder().shape_of(tuple);
  const auto last = static_cast<int64_t>(state.size()) - 1;

  const ComputationId condition = module_.AddComputation(module_.UniqueComputationName("windowed_dot_condition"));
  Emitter test(&state_, condition);
  const InstructionId seen = test.builder().Make(Opcode::kParameter, shape, {}, {}, 0);
  const InstructionId limit = test.Constant(end), number = test.builder().MakeElement(seen, last);
  test.builder().SetRoot(test.builder().MakeCompare(ComparisonDirection::kLt, number, limit));

  const ComputationId body = module_.AddComputation(module_.UniqueComputationName("windowed_dot_body"));
  Emitter e(&state_, body);
  e.builder().SetMetadata(builder().SetMetadata(MetadataId()));
  const InstructionId parameter = e.builder().Make(Opcode::kParameter, shape, {}, {}, 0);
  std::vector<InstructionId> elements;
  for (int64_t k = 0; k <= last; ++k) elements.push_back(e.builder().MakeElement(parameter, k));
  e.builder().SetRoot(e.builder().MakeTuple(step(&e, std::move(elements))));
  const InstructionId done = builder().Make(
      Opcode::kWhile, shape, {tuple}, {Builder::Calls(Attr::kCondition, condition), Builder::Calls(Attr::kBody, body)});
  elements.clear();
  for (int64_t k = 0; k <= last; ++k) elements.push_back(builder().MakeElement(done, k));
  return elements;
}

Value ComputationPartitioner::GatheredDot(const DotLoop& loop, LocalOp* op) {
  const Instruction i = op->whole;
  const int64_t other = 1 - loop.operand;
  const size_t f = ToSize(op->rule->operands[ToSize(loop.operand)][ToSize(loop.dim)][0]);
  const int64_t other_dim = DimOf(op->rule->operands[ToSize(other)], f);
  const int64_t result_dim = DimOf(op->rule->results[0], f);
  const Leaf& leaf = LeafOf(i.operand(loop.operand));
  std::vector<InstructionId> operands = op->operands;
  MaskOperands(i, *op->rule, *op->choice, &operands);
  InstructionId part = leaf.id;
  std::vector<int64_t> reduced;
  for (size_t d = 0; d < op->rule->operands[ToSize(loop.operand)].size(); ++d) {
    const size_t factor = ToSize(op->rule->operands[ToSize(loop.operand)][d][0]);
    if (op->rule->factors[factor].kind == FactorKind::kReduced) reduced.push_back(static_cast<int64_t>(d));
  }
  const ElementType type = i.shape().element_type();
  part = emitter_.MaskPadding(part, leaf.shape, *leaf.tiling, reduced, emitter_.Scalar(leaf.shape.element_type(), 0));
  const int64_t size = builder().shape_of(part).dim(loop.dim);
  InstructionId whole = operands[ToSize(other)];
  if (other_dim >= 0) {
    std::vector<int64_t> padded = ToVector(builder().shape_of(whole).dims());
    padded[ToSize(other_dim)] = size * loop.tiles;
    whole = emitter_.PadTo(whole, padded);
  }
  const std::vector<int64_t> local = ToVector(LocalShapeOf(i.shape(), op->results).dims());
  std::vector<int64_t> buffer = local, step_sizes = local;
  if (result_dim >= 0) {
    buffer[ToSize(result_dim)] = size * loop.tiles;
    step_sizes[ToSize(result_dim)] = size;
  }
  const Shape result = builder().shapes().Array(type, buffer);
  const InstructionId zeros = builder().MakeSplat(result, emitter_.Scalar(type, 0));
  const auto add = [&](Emitter* e, DotState state) {
    Builder& b = e->builder();
    const Shape s32 = b.shapes().Scalar(ElementType::kS32);
    const InstructionId count = state[3];
    InstructionId tile = e->Plus(e->TileNumber(loop.frame, loop.axes), count);
    tile = b.Make(Opcode::kRemainder, s32, {tile, e->Constant(loop.tiles)});
    const InstructionId start = e->Times(tile, size);
    const InstructionId slice = other_dim >= 0 ? SliceTile(e, state[1], other_dim, start, size) : state[1];
    const InstructionId product =
        loop.operand == 0 ? LocalDot(e, i, state[0], slice, step_sizes) : LocalDot(e, i, slice, state[0], step_sizes);
    if (result_dim >= 0) {
      std::vector<InstructionId> update = {state[2], product};
      for (size_t d = 0; d < buffer.size(); ++d) {
        update.push_back(static_cast<int64_t>(d) == result_dim ? start : e->Constant(0));
      }
      state[2] = b.Make(Opcode::kDynamicUpdateSlice, result, update);
    } else {
      state[2] = b.Make(Opcode::kAdd, result, {state[2], product});
    }
    state[3] = e->Plus(count, e->Constant(1));
    return state;
  };
  // While a part is used, the next one comes in; after the last none does.
  const InstructionId first = builder().MakeScalarConstant(ElementType::kS32, 0);
  DotState state = RunLoop(loop.tiles - 1, {part, whole, zeros, first}, [&](Emitter* e, DotState now) {
    const InstructionId next = e->FromTiles(now[0], loop.frame, loop.axes, Rotation(loop.tiles));
    DotState after = add(e, std::move(now));
    after[0] = next;
    return after;
  });
  state = add(&emitter_, std::move(state));
  owner_.TakeName(state[2], i);
  const InstructionId product = emitter_.SliceTo(state[2], local);
  return {{product, i.shape(), op->results[0]}};
}

std::optional<Value> ComputationPartitioner::ScatteredDot(const DotLoop& loop, LocalOp* op) {
  const Instruction i = op->whole;
  const int64_t other = 1 - loop.operand;
  const size_t f = ToSize(op->rule->results[0][ToSize(loop.dim)][0]);
  const int64_t own_dim = DimOf(op->rule->operands[ToSize(loop.operand)], f);
  if (own_dim < 0) return std::nullopt;
  std::vector<InstructionId> operands = op->operands;
  MaskOperands(i, *op->rule, *op->choice, &operands);
  std::vector<int64_t> sizes = ToVector(LocalShapeOf(i.shape(), op->results).dims());
  sizes[ToSize(loop.dim)] = CeilOfRatio(sizes[ToSize(loop.dim)], loop.tiles);
  const int64_t size = sizes[ToSize(loop.dim)];
  std::vector<int64_t> padded = ToVector(builder().shape_of(operands[ToSize(loop.operand)]).dims());
  padded[ToSize(own_dim)] = size * loop.tiles;
  const InstructionId sliced = emitter_.PadTo(operands[ToSize(loop.operand)], padded);
  const ElementType type = i.shape().element_type();
  const Shape result = builder().shapes().Array(type, sizes);
  const InstructionId zeros = builder().MakeSplat(result, emitter_.Scalar(type, 0));
  const auto add = [&](Emitter* e, DotState state) {
    Builder& b = e->builder();
    const Shape s32 = b.shapes().Scalar(ElementType::kS32);
    state[3] = e->Plus(state[3], e->Constant(1));
    InstructionId tile = e->Plus(e->TileNumber(loop.frame, loop.axes), state[3]);
    tile = b.Make(Opcode::kRemainder, s32, {tile, e->Constant(loop.tiles)});
    const InstructionId slice = SliceTile(e, state[0], own_dim, e->Times(tile, size), size);
    const InstructionId product =
        loop.operand == 0 ? LocalDot(e, i, slice, state[1], sizes) : LocalDot(e, i, state[1], slice, sizes);
    state[2] = b.Make(Opcode::kAdd, result, {state[2], product});
    return state;
  };
  // While a sum travels, what is added to it is computed; after the last step it is where it belongs.
  const InstructionId first = builder().MakeScalarConstant(ElementType::kS32, 0);
  DotState state = add(&emitter_, {sliced, operands[ToSize(other)], zeros, first});
  state = RunLoop(loop.tiles, state, [&](Emitter* e, DotState now) {
    now[2] = e->FromTiles(now[2], loop.frame, loop.axes, Rotation(loop.tiles));
    return add(e, std::move(now));
  });
  owner_.TakeName(state[2], i);
  return Value{{state[2], i.shape(), op->results[0]}};
}

}  // namespace hlokit::spmd
