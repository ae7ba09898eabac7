// SPDX-License-Identifier: Apache-2.0
// Shardings from users.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/ops/opcode_table.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/contraction_dims.h"
#include "passes/sharding/propagator.h"

namespace hlokit::sharding {
namespace {

bool SpatialTiling(TilingRef t) {
  return t->tiled() || t->kind == ShardingKind::kReplicated || t->kind == ShardingKind::kManual;
}

bool IsBarrierTo(Instruction i) { return IsCustomCall(i, "ShardBarrierTo"); }

bool SameDims(Shape a, Shape b) {
  if (a.IsTuple() != b.IsTuple()) return false;
  if (a.IsTuple()) return Compatible(a, b);
  return a.IsArray() && b.IsArray() && std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end());
}

}  // namespace

bool Propagator::TakeManualFromUsers(Instruction i, absl::Span<const Instruction> users) {
  if (Has(i)) return false;
  for (Instruction user : users) {
    const LeafTilings& leaves = Get(user);
    if (leaves.empty() ||
        !std::all_of(leaves.begin(), leaves.end(), [](TilingRef t) { return t->kind == ShardingKind::kManual; })) {
      continue;
    }
    if (IsCustomCall(user, "SPMDFullToShardShape")) {
      continue;
    }
    if (i.shape().IsArray()) {
      SetFrom(i, {leaves[0]}, {SourceKind::kManual, user});
      return true;
    }
    int64_t index = 0;
    while (user.operand(index) != i) ++index;
    const auto proposals = FromUser(user, index);
    if (!proposals) return false;
    std::vector<TilingRef> refs;
    for (const std::optional<Tiling>& t : *proposals) refs.push_back(t ? Intern(*t) : nullptr);
    return ImproveAll(i, refs, false, {SourceKind::kManual, user});
  }
  return false;
}

bool Propagator::InferFromUsers(Instruction i) {
  if (level_ < 2 && i.opcode() == Opcode::kBroadcast) return false;
  if (Has(i) &&
      std::all_of(Get(i).begin(), Get(i).end(), [](TilingRef t) { return t->kind == ShardingKind::kManual; })) {
    return false;
  }
  const std::vector<Instruction> users = UsersOf(i);
  if (TakeManualFromUsers(i, users)) return true;
  if (!SupportsPartitioning(i, /*to_output=*/false)) return false;
  bool changed = false;
  for (Instruction user : users) {
    if (user.opcode() == Opcode::kRngBitGenerator) {
      // Every device has the state of a random number generator, whatever else would like it.
      SetFrom(i, {Intern(Tiling::Of(ShardingKind::kReplicated))}, {SourceKind::kUser, user});
      fixed_[i.id().value] = 1;
      return true;
    }
    if (!PassesAtLevel(user) || !IsSpatial(user)) continue;
    for (int64_t index = 0; index < user.operand_count(); ++index) {
      if (user.operand(index) != i) continue;
      std::optional<std::vector<std::optional<Tiling>>> proposals = FromUser(user, index);
      if (!proposals || proposals->size() != LeafShapes(i).size()) continue;
      std::vector<TilingRef> refs;
      for (std::optional<Tiling>& t : *proposals) {
        // Before a barrier nothing is learned of what is behind it.
        if (t && IsBarrierTo(i)) t = ReplicateAllDims(*t, t->rank());
        refs.push_back(t ? Intern(*t) : nullptr);
      }
      changed |= ImproveAll(i, refs, false, {SourceKind::kUser, user});
    }
  }
  return changed;
}

std::optional<Propagator::OperandTilings> Propagator::CopyLeaves(const LeafTilings& from, size_t first, size_t count) {
  if (first + count > from.size()) return std::nullopt;
  OperandTilings leaves(count);
  for (size_t k = 0; k < count; ++k) leaves[k] = *from[first + k];
  return leaves;
}

std::optional<Propagator::OperandTilings> Propagator::BackwardTuple(Instruction user, int64_t index) {
  size_t first = 0;
  for (int64_t k = 0; k < index; ++k) first += ToSize(user.operand(k).shape().leaf_count());
  return CopyLeaves(Get(user), first, LeafShapes(user.operand(index)).size());
}

std::optional<Propagator::OperandTilings> Propagator::BackwardElement(Instruction user, int64_t index) {
  const Instruction operand = user.operand(index);
  OperandTilings leaves(LeafShapes(operand).size());
  const size_t first = ToSize(FirstLeaf(operand.shape(), user.int_attr(Attr::kIndex)));
  const LeafTilings& from = Get(user);
  if (first + from.size() > leaves.size()) return std::nullopt;
  for (size_t k = 0; k < from.size(); ++k) leaves[first + k] = *from[k];
  return leaves;
}

// Operands are passed to parameters of one callee, or one to each after the first.
std::optional<Propagator::OperandTilings> Propagator::BackwardCall(Instruction user, int64_t index) {
  const std::vector<Computation> callees = user.called_computations();
  const bool call = user.opcode() == Opcode::kCall;
  if (!call && index == 0) return std::nullopt;
  const size_t callee = call ? 0 : ToSize(index - 1);
  const int64_t parameter = call ? index : 0;
  if (callee >= callees.size() || parameter >= callees[callee].parameter_count()) return std::nullopt;
  const Instruction in_callee = callees[callee].parameter(parameter);
  if (!Has(in_callee)) return std::nullopt;
  return CopyLeaves(Get(in_callee), 0, LeafShapes(user.operand(index)).size());
}

// The data, and then a token.
std::optional<Propagator::OperandTilings> Propagator::BackwardOutfeed(Instruction user, int64_t index) {
  if (index != 0) return std::nullopt;
  return CopyLeaves(Get(user), 0, LeafShapes(user.operand(index)).size());
}

std::optional<Propagator::OperandTilings> Propagator::FromUser(Instruction user, int64_t index) {
  // Opcodes whose operands' shardings do not follow from their rule class.
  using Backward = std::optional<OperandTilings> (Propagator::*)(Instruction, int64_t);
  static constexpr OpcodeRow<Backward> kRows[] = {
      {Opcode::kTuple, &Propagator::BackwardTuple},     {Opcode::kGetTupleElement, &Propagator::BackwardElement},
      {Opcode::kCall, &Propagator::BackwardCall},       {Opcode::kConditional, &Propagator::BackwardCall},
      {Opcode::kOutfeed, &Propagator::BackwardOutfeed},
  };
  static constexpr auto kBackward = MakeOpcodeHandlers<Backward>(kRows);
  if (const Backward backward = kBackward[static_cast<size_t>(user.opcode())]; backward != nullptr) {
    return (this->*backward)(user, index);
  }
  const Instruction operand = user.operand(index);
  const size_t count = LeafShapes(operand).size();
  if (!operand.shape().IsArray()) {
    return SameDims(operand.shape(), user.shape()) ? CopyLeaves(Get(user), 0, count) : std::nullopt;
  }
  OperandTilings leaves(count);
  leaves[0] = ArrayFromUser(user, index);
  if (!leaves[0]) return std::nullopt;
  return leaves;
}

Tiling Propagator::ResultToOperand(Instruction user, int64_t leaf, int64_t operand) {
  const ShardingRule& rule = Rule(user);
  return CarryAlongFactors(rule, rule.results[ToSize(leaf)], rule.operands[ToSize(operand)], *Get(user)[ToSize(leaf)]);
}

std::optional<Tiling> Propagator::ArrayFromUser(Instruction user, int64_t index) {
  const TilingRef result = Get(user)[0];
  const Instruction operand = user.operand(index);
  switch (RuleClassOf(user)) {
    case RuleClass::kBroadcast: {
      if (!result->tiled()) return *result;
      const absl::Span<const int64_t> dims = user.list_attr(Attr::kDimensions);
      for (int64_t d = 0; d < user.shape().rank() && !options_.is_spmd; ++d) {
        if (result->tiles(d) > 1 && std::find(dims.begin(), dims.end(), d) == dims.end()) return std::nullopt;
      }
      return ResultToOperand(user, 0, 0);
    }
    case RuleClass::kConcatenate:
      return ConcatenateOperand(user, index);
    case RuleClass::kConvolution:
      return IsConvolutionADot(user) ? DotOperand(user, index) : std::nullopt;
    case RuleClass::kDot:
    case RuleClass::kRaggedDot:
      return DotOperand(user, index);
    case RuleClass::kDynamicSlice:
    case RuleClass::kDynamicUpdateSlice: {
      if (level_ == 0) return std::nullopt;
      const int64_t arrays = user.opcode() == Opcode::kDynamicSlice ? 1 : 2;
      if (!result->tiled()) return *result;
      return index < arrays ? std::optional(ResultToOperand(user, 0, index)) : std::nullopt;
    }
    case RuleClass::kReduceWindow:
      if (index >= user.operand_count() / 2) return std::nullopt;
      return ResultToOperand(user, user.shape().IsTuple() ? index : 0, index);
    case RuleClass::kReduce:
      return ReduceOperand(user, index);
    case RuleClass::kReshape:
    case RuleClass::kSlice:
    case RuleClass::kTranspose:
      return ResultToOperand(user, 0, 0);
    case RuleClass::kPad:
      return index == 0 ? std::optional(ResultToOperand(user, 0, 0)) : std::nullopt;
    case RuleClass::kReverse:
      return Reverse(*result, user.list_attr(Attr::kDimensions));
    case RuleClass::kSort:
    case RuleClass::kScan: {
      const bool tuple = user.shape().IsTuple();
      if (user.opcode() == Opcode::kScan) {
        const int64_t carries = user.int_attr(Attr::kNumCarries);
        const int64_t inputs = user.operand_count() - carries;
        const int64_t outputs = static_cast<int64_t>(Get(user).size()) - carries;
        const int64_t leaf = index >= inputs ? outputs + index - inputs : index;
        if (leaf < 0 || leaf >= static_cast<int64_t>(Get(user).size())) return std::nullopt;
        return ResultToOperand(user, leaf, index);
      }
      return ResultToOperand(user, tuple ? index : 0, index);
    }
    case RuleClass::kGather:
      return GatherOperand(user, index);
    case RuleClass::kScatter:
      return ScatterOperand(user, index);
    case RuleClass::kRngBitGenerator:
      return Tiling::Of(ShardingKind::kReplicated);
    case RuleClass::kSelectAndScatter:
      return std::nullopt;
    case RuleClass::kBatchNorm:
    case RuleClass::kFft:
    case RuleClass::kMatrixWhole:
    case RuleClass::kStated:
    case RuleClass::kTopK:
    case RuleClass::kTriangularSolve: {
      if (!options_.is_spmd) return std::nullopt;
      const ShardingRule& rule = Rule(user);
      if (!result->tiled()) return std::nullopt;
      return CarryAlongFactors(rule, rule.results[0], rule.operands[ToSize(index)], *result,
                               KindBit(FactorKind::kParallel));
    }
    case RuleClass::kElementwise:
    case RuleClass::kForwarding:
    case RuleClass::kNothing:
    case RuleClass::kSource:
    case RuleClass::kWhole:
    case RuleClass::kDeviceDimension:
    case RuleClass::kBitcastConvert:
    case RuleClass::kCustomCall:
      break;
  }
  if (!user.shape().IsArray() || !SameDims(operand.shape(), user.shape())) return std::nullopt;
  return *result;
}

std::optional<Tiling> Propagator::ConcatenateOperand(Instruction user, int64_t index) {
  if (level_ == 0) return std::nullopt;
  const TilingRef result = ArrayTiling(user);
  // A module of several partitions is one program for all of them.
  if (!result->tiled() || options_.is_spmd || module_.header().num_partitions > 1) return *result;
  const int64_t dim = user.list_attr(Attr::kDimensions).empty() ? 0 : user.list_attr(Attr::kDimensions)[0];
  const int64_t tiles = result->tiles(dim);
  if (tiles == 1) return *result;
  // Devices may run different programs: the operand is on those that have its part of the result.
  int64_t start = 0;
  for (int64_t k = 0; k < index; ++k) start += user.operand(k).shape().dim(dim);
  const int64_t size = user.shape().dim(dim), part = (size + tiles - 1) / tiles;
  if (part == 0 || result->device_count > kMaxListedDevices) return std::nullopt;
  const int64_t first = start / part;
  const int64_t last = (start + user.operand(index).shape().dim(dim) + part - 1) / part;
  ShardingLeaf leaf = LeafOf(*result);
  if (leaf.kind != ShardingKind::kTiled || !leaf.tiles.Expand(kMaxExpandedDevices) || last <= first)
    return std::nullopt;
  int64_t inner = 1;
  for (size_t d = ToSize(dim) + 1; d < leaf.tiles.dims.size(); ++d) inner *= leaf.tiles.dims[d];
  std::vector<int64_t> devices;
  for (size_t position = 0; position < leaf.tiles.devices.size(); ++position) {
    const int64_t tile = static_cast<int64_t>(position) / inner % tiles;
    if (tile >= first && tile < last) devices.push_back(leaf.tiles.devices[position]);
  }
  if (devices.size() == 1) {
    Tiling one = Tiling::Of(ShardingKind::kMaximal);
    one.device = devices[0];
    return one;
  }
  leaf.tiles.dims[ToSize(dim)] = last - first;
  leaf.tiles.devices = std::move(devices);
  return TilingOf(leaf, result->rank());
}

// The result's sharding along its dimensions in the operand, and the other operand's along those that both have.
std::optional<Tiling> Propagator::DotOperand(Instruction user, int64_t index) {
  if (index > 1) return std::nullopt;
  Tiling from_result = ResultToOperand(user, 0, index);
  const TilingRef other = ArrayTiling(user.operand(1 - index));
  if (other == nullptr || !SpatialTiling(other)) return from_result;
  const ShardingRule& rule = Rule(user);
  Tiling from_other = CarryAlongFactors(rule, rule.operands[ToSize(1 - index)], rule.operands[ToSize(index)], *other);
  bool conflict = false;
  std::optional<Tiling> merged =
      Improvement(user.operand(index).shape(), from_result, from_other, /*aggressive=*/true, &conflict);
  return merged ? merged : from_result;
}

std::optional<Tiling> Propagator::ReduceOperand(Instruction user, int64_t index) {
  const int64_t inputs = user.operand_count() / 2;
  if (index >= inputs || user.operand(index).shape().rank() == 0) return std::nullopt;
  Tiling proposal = ResultToOperand(user, user.shape().IsTuple() ? index : 0, index);
  // The inputs are divided alike, along the reduced dimensions too.
  for (int64_t k = 0; k < inputs && MayMerge(); ++k) {
    const TilingRef other = ArrayTiling(user.operand(k));
    if (k == index || other == nullptr || !other->tiled() || !proposal.tiled()) continue;
    if (std::optional<Tiling> merged = Merge(*other, proposal, MergePolicy::kWholeDimensions)) proposal = *merged;
  }
  return proposal;
}

std::optional<Tiling> Propagator::GatherOperand(Instruction user, int64_t index) {
  if (index == 0 && !options_.is_spmd) return std::nullopt;
  return ResultToOperand(user, 0, index);
}

std::optional<Tiling> Propagator::ScatterOperand(Instruction user, int64_t index) {
  const int64_t count = user.operand_count() / 2;
  const ShardingRule& rule = Rule(user);
  const size_t indices = ToSize(count);
  if (index < count) return *Get(user)[user.shape().IsTuple() ? ToSize(index) : 0];
  const auto carry = [&](size_t from, int64_t to) -> std::optional<Tiling> {
    const TilingRef tiling = ArrayTiling(user.operand(static_cast<int64_t>(from)));
    if (tiling == nullptr || !SpatialTiling(tiling)) return std::nullopt;
    return CarryAlongFactors(rule, rule.operands[from], rule.operands[ToSize(to)], *tiling);
  };
  if (index == count) {
    std::optional<Tiling> proposal;
    for (size_t update = indices + 1; update < ToSize(user.operand_count()); ++update) {
      const std::optional<Tiling> from_update = carry(update, index);
      if (!from_update) continue;
      std::optional<Tiling> merged;
      if (proposal && level_ > 0) merged = Merge(*from_update, *proposal, MergePolicy::kWholeDimensions);
      proposal = merged ? *merged : proposal && !IsMoreSpecific(*from_update, *proposal) ? *proposal : *from_update;
    }
    if (!options_.is_spmd) return proposal;
    const Tiling from_result = ResultToOperand(user, 0, index);
    if (!proposal) return from_result.tiled() ? std::optional(from_result) : std::nullopt;
    if (from_result.tiled() && proposal->tiled()) {
      if (auto merged = Merge(from_result, *proposal, MergePolicy::kWholeDimensions)) return merged;
    }
    return proposal->tiled() ? proposal : std::optional(from_result);
  }
  const std::optional<Tiling> from_indices = carry(indices, index);
  if (options_.is_spmd) {
    const size_t leaf = user.shape().IsTuple() ? ToSize(index - count - 1) : 0;
    const Tiling from_result = ResultToOperand(user, static_cast<int64_t>(leaf), index);
    if (from_result.tiled()) {
      if (from_indices && from_indices->tiled()) {
        if (auto merged = Merge(*from_indices, from_result, MergePolicy::kWholeDimensions)) return merged;
      }
      return from_result;
    }
  }
  if (from_indices && from_indices->tiled()) return from_indices;
  return std::nullopt;
}

}  // namespace hlokit::sharding
