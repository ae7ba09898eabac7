// SPDX-License-Identifier: Apache-2.0
// Emits the steps of reshard plans.
#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "ir/sharding/tile_assignment.h"
#include "passes/annotations/annotations.h"
#include "passes/sharding/partition/emitter.h"
#include "passes/sharding/partition/factor_choice.h"
#include "passes/sharding/partition/identity.h"

namespace hlokit::spmd {
InstructionId Emitter::EmitSlice(InstructionId part, Shape whole, const Tiling& before, const ReshardStep& step) {
  const std::vector<int64_t> sizes = LocalSizes(whole.dims(), step.after);
  std::vector<int64_t> padded = LocalSizes(whole.dims(), before);
  std::vector<InstructionId> starts(sizes.size(), Constant(0));
  for (const AxesMove& move : step.moves) {
    const size_t d = ToSize(move.to);
    padded[d] = std::max(padded[d], sizes[d] * SizeOf(move.axes));
    starts[d] = Times(TileNumber(step.after, move.axes), sizes[d]);
  }
  return DynamicSlice(PadTo(part, padded), starts, sizes);
}

InstructionId Emitter::EmitGather(InstructionId part, Shape whole, const ReshardStep& step) {
  const std::vector<int64_t> local = ToVector(builder_.shape_of(part).dims());
  const std::vector<int64_t> sizes = LocalSizes(whole.dims(), step.after);
  const auto rank = static_cast<int64_t>(local.size());
  const AxesMove& first = step.moves[0];
  const int64_t size = whole.dim(first.from);
  if (step.moves.size() == 1 && sizes[ToSize(first.from)] == size && IsMostlyPadding(size, SizeOf(first.axes))) {
    // Each element among zeros at its place, and their sum.
    const ElementType type = whole.element_type();
    const Opcode sum = type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd;
    if (HasIdentity(sum, type)) {
      const InstructionId zero = MakeIdentity(this, sum, type);
      Tiling tiling = step.after;
      tiling.dims[ToSize(first.from)] = first.axes;
      part = MaskPadding(part, whole, tiling, {first.from}, zero);
      std::vector<int64_t> padded = sizes;
      padded[ToSize(first.from)] = local[ToSize(first.from)] * SizeOf(first.axes);
      const Shape shape = builder_.shapes().Array(type, padded);
      std::vector<InstructionId> update = {Splat(shape, zero), part};
      for (int64_t d = 0; d < rank; ++d) {
        const InstructionId tile = TileNumber(step.after, first.axes);
        update.push_back(d == first.from ? Times(tile, local[ToSize(d)]) : Constant(0));
      }
      const InstructionId placed = builder_.Make(Opcode::kDynamicUpdateSlice, shape, update);
      const ComputationId reducer = state_.Reducer(sum, type);
      return AllReduce(SliceTo(placed, sizes), step.after, first.axes, reducer);
    }
  }
  if (step.moves.size() == 1) {
    return SliceTo(AllGather(part, step.after, step.moves[0].axes, step.moves[0].from), sizes);
  }
  // All dimensions at once: the parts are gathered along a new dimension, which then becomes those of the tiles.
  AxisList axes;
  std::vector<int64_t> split;  // the tiles, then the part
  for (const AxesMove& move : step.moves) {
    axes.insert(axes.end(), move.axes.begin(), move.axes.end());
    split.push_back(SizeOf(move.axes));
  }
  std::vector<int64_t> single = local;
  single.insert(single.begin(), 1);
  InstructionId gathered = AllGather(Reshape(part, single), step.after, axes, 0);
  split.insert(split.end(), local.begin(), local.end());
  gathered = Reshape(gathered, split);
  const auto count = static_cast<int64_t>(step.moves.size());
  std::vector<int64_t> perm, joined;
  for (int64_t d = 0; d < rank; ++d) {
    joined.push_back(local[ToSize(d)]);
    for (int64_t m = 0; m < count; ++m) {
      if (step.moves[ToSize(m)].from != d) continue;
      perm.push_back(m);
      joined.back() *= split[ToSize(m)];
    }
    perm.push_back(count + d);
  }
  return SliceTo(Reshape(Transpose(gathered, perm), joined), sizes);
}

// The target dimensions are split into one block for each device of the group, which an all-to-all exchanges; the
// blocks that arrive are the tiles of the source dimensions.
InstructionId Emitter::EmitAllToAll(InstructionId part, Shape whole, const ReshardStep& step) {
  const std::vector<int64_t> sizes = LocalSizes(whole.dims(), step.after);
  std::vector<int64_t> padded = ToVector(builder_.shape_of(part).dims());
  const auto rank = static_cast<int64_t>(padded.size());
  for (const AxesMove& move : step.moves) padded[ToSize(move.to)] = sizes[ToSize(move.to)] * SizeOf(move.axes);
  part = PadTo(part, padded);

  const auto move_to = [&](int64_t d) {
    for (size_t m = 0; m < step.moves.size(); ++m) {
      if (step.moves[m].to == d) return static_cast<int64_t>(m);
    }
    return int64_t{-1};
  };
  // Blocks first.
  const auto count = static_cast<int64_t>(step.moves.size());
  std::vector<int64_t> split, position_of_block(ToSize(count)), position_of_dim(ToSize(rank));
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t m = move_to(d);
    if (m >= 0) {
      position_of_block[ToSize(m)] = static_cast<int64_t>(split.size());
      split.push_back(SizeOf(step.moves[ToSize(m)].axes));
    }
    position_of_dim[ToSize(d)] = static_cast<int64_t>(split.size());
    split.push_back(m >= 0 ? sizes[ToSize(d)] : padded[ToSize(d)]);
  }
  std::vector<int64_t> perm = position_of_block;
  perm.insert(perm.end(), position_of_dim.begin(), position_of_dim.end());
  InstructionId blocks = Transpose(Reshape(part, split), perm);
  const std::vector<int64_t> block_dims = ToVector(builder_.shape_of(blocks).dims());
  AxisList axes;
  for (const AxesMove& move : step.moves) axes.insert(axes.end(), move.axes.begin(), move.axes.end());
  std::vector<int64_t> flat(block_dims.begin() + count, block_dims.end());
  flat.insert(flat.begin(), SizeOf(axes));
  blocks = AllToAll(Reshape(blocks, flat), step.after, axes, 0);
  blocks = Reshape(blocks, block_dims);
  // Each block in front of the dimension that it came from.
  std::vector<int64_t> back, joined;
  for (int64_t d = 0; d < rank; ++d) {
    joined.push_back(block_dims[ToSize(count + d)]);
    for (int64_t m = 0; m < count; ++m) {
      if (step.moves[ToSize(m)].from != d) continue;
      back.push_back(m);
      joined.back() *= block_dims[ToSize(m)];
    }
    back.push_back(count + d);
  }
  return SliceTo(Reshape(Transpose(blocks, back), joined), sizes);
}

// Each device gets its new part from one that has it: itself, if it has; otherwise the devices with equal parts serve
// those that want them in turn.
InstructionId Emitter::EmitPermute(InstructionId part, const Tiling& before, const ReshardStep& step) {
  const Tiling& after = step.after;
  const auto tile_of = [](const Tiling& tiling, int64_t position) {
    std::vector<int64_t> tile;
    for (const AxisList& axes : tiling.dims) tile.push_back(hlokit::TileNumber(axes, position));
    tile.push_back(hlokit::TileNumber(tiling.manual, position));
    return tile;
  };
  std::map<std::vector<int64_t>, std::vector<int64_t>> owners;  // by tile, devices
  std::map<int64_t, std::vector<int64_t>> tile_before;
  for (int64_t p = 0; p < before.device_count; ++p) {
    std::vector<int64_t> tile = tile_of(before, p);
    owners[tile].push_back(before.DeviceAt(p));
    tile_before[before.DeviceAt(p)] = std::move(tile);
  }
  std::map<int64_t, std::vector<int64_t>> wanted;
  for (int64_t p = 0; p < after.device_count; ++p) wanted[after.DeviceAt(p)] = tile_of(after, p);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  // A source sends to one target: devices that keep their part are their own sources.
  std::map<std::vector<int64_t>, std::vector<int64_t>> free_owners;
  for (auto& [tile, devices] : owners) {
    for (int64_t device : devices) {
      const auto want = wanted.find(device);
      if (want != wanted.end() && want->second == tile) {
        pairs.emplace_back(device, device);
      } else {
        free_owners[tile].push_back(device);
      }
    }
  }
  std::map<std::vector<int64_t>, size_t> next;
  for (const auto& [device, tile] : wanted) {
    if (tile_before[device] == tile) continue;
    const std::vector<int64_t>& sources = free_owners[tile];
    size_t& at = next[tile];
    assert(at < sources.size());  // as many devices want a part as have it
    pairs.emplace_back(sources[at++], device);
  }
  std::sort(pairs.begin(), pairs.end());
  return Permute(part, pairs);
}

InstructionId Emitter::ReduceUnreduced(InstructionId part, Shape whole, TilingRef* tiling) {
  const Tiling& from = **tiling;
  Tiling frame = from;
  AxisList axes = from.unreduced;
  if (from.kind == ShardingKind::kUnreduced) {
    frame = Tiling();
    frame.device_count = state_.partitions;
    if (state_.partitions > 1) axes = {{1, state_.partitions}};
  }
  const ComputationId reducer = state_.Reducer(OpcodeOf(from.reduction, whole.element_type()), whole.element_type());
  const InstructionId reduced = AllReduce(part, frame, axes, reducer);
  Tiling after = from;
  if (from.kind == ShardingKind::kUnreduced) after = Tiling();
  after.unreduced.clear();
  *tiling = state_.tilings.Intern(std::move(after));
  return reduced;
}

namespace {

// Returns the tiling with what each device has of an unreduced value as axes.
Tiling AsTiled(const Tiling& tiling, int64_t rank, int64_t partitions) {
  if (tiling.kind != ShardingKind::kUnreduced) return tiling;
  Tiling tiled = Tiling::Of(ShardingKind::kTiled);
  tiled.reduction = tiling.reduction;
  tiled.device_count = partitions;
  tiled.dims.resize(static_cast<size_t>(rank));
  if (partitions > 1) tiled.unreduced = {{1, partitions}};
  return tiled;
}

bool IsUnreduced(const Tiling& tiling) { return tiling.kind == ShardingKind::kUnreduced || !tiling.unreduced.empty(); }

}  // namespace

InstructionId Emitter::Nones(Shape shape, ReductionOp reduction) {
  const ElementType type = shape.element_type();
  const Opcode opcode = OpcodeOf(reduction, type);
  return Splat(shape, HasIdentity(opcode, type) ? MakeIdentity(this, opcode, type) : Scalar(type, 0));
}

// The first device of each group keeps the value, the others have the identity. Minimum and maximum need none.
InstructionId Emitter::MakeUnreduced(InstructionId part, const Tiling& to, const AxisList& axes) {
  if (to.reduction != ReductionOp::kSum || SizeOf(axes) == 1) return part;
  const Shape shape = builder_.shape_of(part);
  const InstructionId zero = Constant(0);
  const InstructionId first = builder_.MakeCompare(ComparisonDirection::kEq, TileNumber(to, axes), zero);
  return Select(Splat(shape, first), part, Nones(shape, to.reduction));
}

std::optional<InstructionId> Emitter::PlaceUnreduced(InstructionId part, Shape whole, const Tiling& from,
                                                     const Tiling& to) {
  if (!from.tiled() || from.order != to.order || from.device_count != to.device_count || IsUnreduced(from) ||
      from.manual != to.manual || from.rank() != to.rank()) {
    return std::nullopt;
  }
  // Parts that others do not have stand as what changes nothing, which some types lack.
  if (!HasIdentity(OpcodeOf(to.reduction, whole.element_type()), whole.element_type())) return std::nullopt;
  const auto rank = static_cast<size_t>(whole.rank());
  AxisList left = to.unreduced;
  std::vector<InstructionId> starts(rank, Constant(0));
  std::vector<int64_t> sizes = LocalSizes(whole.dims(), to), padded = sizes;
  const std::vector<int64_t> local = LocalSizes(whole.dims(), from);
  bool moved = false;
  for (size_t d = 0; d < rank; ++d) {
    if (!IsPrefix(to.dims[d], from.dims[d])) return std::nullopt;
    AxisList axes = from.dims[d];
    if (!TakeMajor(&axes, SizeOf(to.dims[d]))) return std::nullopt;
    if (SizeOf(axes) == 1) continue;
    const std::optional<AxisList> missing = Subtract(axes, left, to.device_count);
    const std::optional<AxisList> rest = Subtract(left, axes, to.device_count);
    if (!missing || !missing->empty() || !rest) return std::nullopt;
    left = *rest;
    padded[d] = local[d] * SizeOf(axes);
    if (padded[d] != sizes[d] && SizeOf(to.dims[d]) != 1) return std::nullopt;
    starts[d] = Times(TileNumber(to, axes), local[d]);
    moved = true;
  }
  if (!moved) return std::nullopt;
  std::vector<InstructionId> update = {Nones(builder_.shapes().Array(whole.element_type(), padded), to.reduction),
                                       part};
  update.insert(update.end(), starts.begin(), starts.end());
  const InstructionId placed =
      builder_.Make(Opcode::kDynamicUpdateSlice, builder_.shapes().Array(whole.element_type(), padded), update);
  return MakeUnreduced(SliceTo(placed, sizes), to, left);
}

bool Emitter::ReduceDifference(InstructionId* value, Shape whole, TilingRef* from, const Tiling& to) {
  Tiling tiled = AsTiled(**from, whole.rank(), state_.partitions);
  if (tiled.reduction != to.reduction || tiled.order != to.order || tiled.device_count != to.device_count) return false;
  const std::optional<AxisList> missing = Subtract(to.unreduced, tiled.unreduced, to.device_count);
  const std::optional<AxisList> rest = Subtract(tiled.unreduced, to.unreduced, to.device_count);
  if (!missing || !missing->empty() || !rest) return false;
  if (!rest->empty()) {
    const ElementType type = whole.element_type();
    *value = AllReduce(*value, tiled, *rest, state_.Reducer(OpcodeOf(to.reduction, type), type));
  }
  tiled.unreduced = to.unreduced;
  *from = state_.tilings.Intern(std::move(tiled));
  return true;
}

InstructionId Emitter::Reshard(InstructionId part, Shape whole, TilingRef from, TilingRef to) {
  if (from == to || !whole.IsArray() || from->kind == ShardingKind::kManual || to->kind == ShardingKind::kManual) {
    return part;
  }
  const auto key = std::make_tuple(part.value, from, to);
  const auto found = reshards_.find(key);
  if (found != reshards_.end()) {
    // What has been merged into the part since.
    if (bypassed_.contains(part.value)) MergeMetadata(state_.module, part, found->second);
    return found->second;
  }
  if (const InstructionId given = FromOrigin(part, whole, from, to); given.valid()) {
    reshards_[key] = given;
    return given;
  }

  const TilingRef given = from;
  const uint32_t first = static_cast<uint32_t>(state_.module.instruction_id_bound());
  InstructionId value = part;
  TilingRef target = to;
  const Tiling wanted = AsTiled(*to, whole.rank(), state_.partitions);
  const bool stays = IsUnreduced(*from) && IsUnreduced(*to) && ReduceDifference(&value, whole, &from, wanted);
  if (IsUnreduced(*to) && !stays) {
    // A part stays on its device, among identities.
    if (const std::optional<InstructionId> placed = PlaceUnreduced(part, whole, *from, wanted)) {
      reshards_[key] = *placed;
      return *placed;
    }
    Tiling reduced = wanted;
    reduced.unreduced.clear();
    target = state_.tilings.Intern(std::move(reduced));
  }
  if (IsUnreduced(*from) && !stays) value = ReduceUnreduced(value, whole, &from);
  const ReshardPlan& plan = state_.PlanFor(whole, from, target);
  if (plan.rematerialized) state_.full_gathers.push_back({part, whole, from, target});
  // Steps may add plans, so the plan is read by index from its own copy.
  const std::vector<ReshardStep> steps = plan.steps;
  const Tiling* before = from;
  for (const ReshardStep& step : steps) {
    switch (step.kind) {
      case MoveKind::kSlice:
        value = EmitSlice(value, whole, *before, step);
        break;
      case MoveKind::kAllGather:
        value = EmitGather(value, whole, step);
        break;
      case MoveKind::kAllToAll:
        value = EmitAllToAll(value, whole, step);
        break;
      case MoveKind::kPermute:
        value = EmitPermute(value, *before, step);
        break;
    }
    before = &step.after;
  }
  if (target != to) value = MakeUnreduced(value, wanted, wanted.unreduced);
  if (state_.records_reshards) {
    const auto end = static_cast<uint32_t>(state_.module.instruction_id_bound());
    state_.reshards.push_back({part, whole, *given, *to, first, end});
  }
  reshards_[key] = value;
  return value;
}

InstructionId Emitter::FromOrigin(InstructionId part, Shape whole, TilingRef from, TilingRef to) {
  const auto found = origins_.find(part.value);
  if (found == origins_.end() || found->second.whole != whole || IsUnreduced(*to)) return InstructionId();
  const Origin origin = found->second;
  InstructionId given = origin.source;
  if (origin.tiling != to) {
    if (state_.PlanFor(whole, origin.tiling, to).cost >= state_.PlanFor(whole, from, to).cost) return InstructionId();
    given = Reshard(origin.source, whole, origin.tiling, to);
  }
  MergeMetadata(state_.module, part, given);  // the part may be read by nothing any more
  bypassed_.insert(part.value);
  return given;
}

InstructionId Emitter::CombineAndReshard(InstructionId part, Shape whole, const Tiling& frame,
                                         std::vector<AxisList> dims, const AxisList& partial,
                                         const std::function<ComputationId()>& reducer, TilingRef to,
                                         std::optional<ReductionOp> combines) {
  const Combination combination = PlanCombination(whole, frame, dims, partial, *to, combines);
  if (!combination.scatters.empty()) {
    std::vector<int64_t> padded = ToVector(builder_.shape_of(part).dims()), sizes = padded;
    for (const Combination::Scatter& scatter : combination.scatters) {
      const size_t d = ToSize(scatter.dim);
      AppendAxes(&dims[d], scatter.axes);
      sizes[d] = CeilOfRatio(whole.dim(scatter.dim), SizeOf(dims[d]));
      padded[d] = sizes[d] * SizeOf(scatter.axes);
    }
    part = PadTo(part, padded);
    if (combination.scatters.size() == 1) {
      const Combination::Scatter& scatter = combination.scatters[0];
      part = ReduceScatter(part, frame, scatter.axes, scatter.dim, reducer());
    } else {
      // Several dimensions at once: the blocks of all along a dimension of their own.
      AxisList axes;
      std::vector<int64_t> split, blocks, others;
      for (int64_t d = 0; d < whole.rank(); ++d) {
        if (sizes[ToSize(d)] != padded[ToSize(d)]) {
          blocks.push_back(static_cast<int64_t>(split.size()));
          split.push_back(padded[ToSize(d)] / sizes[ToSize(d)]);
        }
        others.push_back(static_cast<int64_t>(split.size()));
        split.push_back(sizes[ToSize(d)]);
      }
      for (const Combination::Scatter& scatter : combination.scatters) {
        axes.insert(axes.end(), scatter.axes.begin(), scatter.axes.end());
      }
      std::vector<int64_t> perm = blocks, flat = sizes;
      perm.insert(perm.end(), others.begin(), others.end());
      flat.insert(flat.begin(), SizeOf(axes));
      part = Reshape(Transpose(Reshape(part, split), perm), flat);
      part = Reshape(ReduceScatter(part, frame, axes, 0, reducer()), sizes);
    }
  }
  if (!combination.rest.empty()) part = AllReduce(part, frame, combination.rest, reducer());
  if (!combination.kept.empty() && to->kind == ShardingKind::kUnreduced) return part;
  Tiling after = frame;
  after.unreduced = combination.kept;
  if (!combination.kept.empty()) after.reduction = to->reduction;
  return Reshard(part, whole, state_.tilings.Intern(WithDims(after, combination.dims)), to);
}

}  // namespace hlokit::spmd
