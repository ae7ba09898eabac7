// SPDX-License-Identifier: Apache-2.0
// Shardings from operands.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/side_effects.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/contraction_dims.h"
#include "passes/sharding/propagator.h"

namespace hlokit::sharding {
namespace {

constexpr uint32_t kAllKinds = ~uint32_t{0};
constexpr uint32_t kParallelOnly = KindBit(FactorKind::kParallel);

bool SpatialLeaf(TilingRef t) {
  return t->tiled() || t->kind == ShardingKind::kReplicated || t->kind == ShardingKind::kManual;
}

bool IsRuleElementwise(Instruction i) {
  return HasShardingTrait(i.opcode(), kPassesEarly) || RuleClassOf(i.opcode()) == RuleClass::kElementwise;
}

}  // namespace

bool Propagator::IsSpatial(Instruction i) const { return std::any_of(Get(i).begin(), Get(i).end(), SpatialLeaf); }

bool Propagator::PassesAtLevel(Instruction i) const {
  if (i.opcode() == Opcode::kBroadcast) return level_ >= 2;
  if (level_ >= 1 || IsRuleElementwise(i) || IsCustomCall(i, "Sharding")) return true;
  const RuleClass rule = RuleClassOf(i.opcode());
  if (rule == RuleClass::kForwarding) return i.opcode() != Opcode::kConditional;
  if (rule == RuleClass::kTranspose || rule == RuleClass::kReshape || rule == RuleClass::kConcatenate ||
      rule == RuleClass::kDynamicSlice || rule == RuleClass::kDynamicUpdateSlice) {
    return true;
  }
  return false;
}

bool Propagator::SupportsPartitioning(Instruction i, bool to_output) const {
  const bool output_allowed =
      to_output && std::find(options_.to_output.begin(), options_.to_output.end(), true) != options_.to_output.end();
  if (i.is_root() && !callers_.contains(i.parent().id().value) && !(i.parent().is_entry() && output_allowed))
    return false;
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kParameter) {
    return callers_.contains(i.parent().id().value) ||
           std::find(options_.to_parameters.begin(), options_.to_parameters.end(), true) !=
               options_.to_parameters.end();
  }
  if (HasTrait(opcode, kReducesAcrossDevices)) {
    return !i.has(Attr::kChannelId);
  }
  if (OpcodeSet{Opcode::kReverse, Opcode::kRng}.Contains(opcode)) return options_.is_spmd;
  const RuleClass rule = RuleClassOf(i.opcode());
  if (rule == RuleClass::kNothing || rule == RuleClass::kWhole || rule == RuleClass::kDeviceDimension) return false;
  if (rule == RuleClass::kCustomCall) return options_.is_spmd && RuleClassOf(i) != RuleClass::kCustomCall;
  return true;
}

bool Propagator::IsForeignAsync(Instruction i) const {
  while (HasTrait(i.opcode(), kGenericAsync) && i.opcode() != Opcode::kAsyncStart && i.operand_count() > 0)
    i = i.operand(0);
  if (i.opcode() != Opcode::kAsyncStart) return false;
  bool foreign = false;
  i.ForEachCallee([&](Computation callee) { foreign = foreign || !InThreads(callee); });
  return foreign;
}

std::optional<bool> Propagator::TakeManualFromOperands(Instruction i) {
  // Asynchronous code of a thread that propagation does not enter.
  const bool async = IsForeignAsync(i);
  const bool one_value = async || i.shape().IsArray() || HasShardingTrait(i.opcode(), kTakesManual) ||
                         RuleClassOf(i.opcode()) == RuleClass::kNothing;
  if (Has(i) || !one_value || IsCustomCall(i, "SPMDShardToFullShape") || IsCustomCall(i, "SPMDFullToShardShape")) {
    return std::nullopt;
  }
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const LeafTilings& leaves = Get(i.operand(k));
    if (leaves.empty() ||
        !std::all_of(leaves.begin(), leaves.end(), [](TilingRef t) { return t->kind == ShardingKind::kManual; })) {
      continue;
    }
    if (level_ == 0 && OpcodeSet{Opcode::kConcatenate, Opcode::kDynamicSlice}.Contains(i.opcode())) return false;
    SetFrom(i, LeafTilings(LeafShapes(i).size(), leaves[0]), {SourceKind::kManual, i.operand(k)});
    return true;
  }
  return std::nullopt;
}

// An array that cannot be divided is at least replicated where an operand is.
bool Propagator::TakeReplicationFromOperands(Instruction i) {
  if (!i.shape().IsArray() || i.operand_count() == 0 || i.is_root() || HasSideEffectNoRecurse(i)) return false;
  for (Instruction operand : i.operands()) {
    const TilingRef tiling = ArrayTiling(operand);
    if (tiling != nullptr && tiling->kind == ShardingKind::kReplicated) {
      return Improve(i, 0, *tiling, false, {SourceKind::kOperand, operand});
    }
  }
  return false;
}

bool Propagator::InferFromOperands(Instruction i) {
  if (!PassesAtLevel(i)) return false;
  if (Has(i) &&
      std::all_of(Get(i).begin(), Get(i).end(), [](TilingRef t) { return t->kind == ShardingKind::kManual; })) {
    return false;
  }
  if (IsCustomCall(i, "ShardBarrierFrom")) return false;
  if (const std::optional<bool> taken = TakeManualFromOperands(i)) return *taken;
  if (!SupportsPartitioning(i, /*to_output=*/true)) return TakeReplicationFromOperands(i);
  // Opcodes whose result's sharding does not follow from their rule class.
  using Forward = bool (Propagator::*)(Instruction);
  static constexpr OpcodeRow<Forward> kRows[] = {
      {Opcode::kGetTupleElement, &Propagator::ForwardElement}, {Opcode::kTuple, &Propagator::ForwardTuple},
      {Opcode::kParameter, &Propagator::ForwardParameter},     {Opcode::kWhile, &Propagator::ForwardWhile},
      {Opcode::kConditional, &Propagator::ForwardFromCallees}, {Opcode::kCall, &Propagator::ForwardFromCallees},
      {Opcode::kRng, &Propagator::ForwardElementwise},
  };
  static constexpr auto kForward = MakeOpcodeHandlers<Forward>(kRows);
  if (const Forward forward = kForward[static_cast<size_t>(i.opcode())]; forward != nullptr) return (this->*forward)(i);
  switch (RuleClassOf(i)) {
    case RuleClass::kForwarding:
      return i.operand_count() > 0 && i.shape().IsTuple() ? ForwardAllLeaves(i, i.operand(0)) : ForwardElementwise(i);
    case RuleClass::kElementwise:
      return ForwardElementwise(i);
    case RuleClass::kBitcastConvert:
      return i.shape().rank() == i.operand(0).shape().rank() ? ForwardElementwise(i) : ForwardByRule(i);
    case RuleClass::kBroadcast:
      return level_ >= 3 && IsSpatial(i.operand(0)) && Get(i.operand(0))[0]->tiled() &&
             ForwardOperand(i, 0, 0, NonRootUsers(i) == 1);
    case RuleClass::kConcatenate:
      return ForwardConcatenate(i);
    case RuleClass::kDot:
    case RuleClass::kRaggedDot:
      return ForwardDot(i);
    case RuleClass::kConvolution:
      return ForwardConvolution(i);
    case RuleClass::kReduce:
      return ForwardReduce(i);
    case RuleClass::kReshape:
      return ForwardReshape(i);
    case RuleClass::kSort:
      return ForwardSort(i);
    case RuleClass::kScan:
      return ForwardScan(i);
    case RuleClass::kGather:
      return ForwardGather(i);
    case RuleClass::kScatter:
      return ForwardScatter(i);
    case RuleClass::kDynamicSlice:
      return ForwardDynamicSlice(i);
    case RuleClass::kDynamicUpdateSlice:
      return ForwardDynamicUpdateSlice(i);
    case RuleClass::kReduceWindow:
    case RuleClass::kSelectAndScatter:
      return ForwardWindow(i);
    case RuleClass::kTranspose:
    case RuleClass::kReverse:
    case RuleClass::kSlice:
    case RuleClass::kPad:
      return ForwardOperand(i, 0, 0, NonRootUsers(i) == 1);
    case RuleClass::kBatchNorm:
    case RuleClass::kFft:
    case RuleClass::kMatrixWhole:
    case RuleClass::kStated:
    case RuleClass::kTopK:
    case RuleClass::kTriangularSolve:
      return ForwardByRule(i);
    case RuleClass::kSource:
    case RuleClass::kNothing:
    case RuleClass::kWhole:
    case RuleClass::kDeviceDimension:
    case RuleClass::kCustomCall:
    case RuleClass::kRngBitGenerator:
      return false;
  }
  return false;
}

std::optional<Tiling> Propagator::OperandToResult(Instruction i, int64_t operand, int64_t leaf) {
  const TilingRef from = ArrayTiling(i.operand(operand));
  if (from == nullptr || !SpatialLeaf(from)) return std::nullopt;
  if (!from->tiled()) return *from;
  const ShardingRule& rule = Rule(i);
  Tiling result = CarryAlongFactors(rule, rule.operands[ToSize(operand)], rule.results[ToSize(leaf)], *from, kAllKinds);
  if (i.opcode() == Opcode::kReverse) return Reverse(result, i.list_attr(Attr::kDimensions));
  return result;
}

bool Propagator::ForwardOperand(Instruction i, int64_t operand, int64_t leaf, bool aggressive) {
  const std::optional<Tiling> proposal = OperandToResult(i, operand, leaf);
  return proposal && Improve(i, leaf, *proposal, aggressive, {SourceKind::kOperand, i.operand(operand)});
}

bool Propagator::ForwardElement(Instruction i) {
  const Instruction tuple = i.operand(0);
  if (!Has(tuple) || !IsSpatial(tuple)) return false;
  const int64_t first = FirstLeaf(tuple.shape(), i.int_attr(Attr::kIndex));
  std::vector<TilingRef> leaves;
  std::vector<int64_t> source_leaves;
  for (size_t k = 0; k < LeafShapes(i).size() && ToSize(first) + k < Get(tuple).size(); ++k) {
    leaves.push_back(Get(tuple)[ToSize(first) + k]);
  }
  if (leaves.size() != LeafShapes(i).size()) return false;
  return ImproveAll(i, leaves, NonRootUsers(i) == 1, {SourceKind::kOperand, tuple, first});
}

bool Propagator::ForwardTuple(Instruction i) {
  bool spatial = false;
  for (Instruction operand : i.operands()) spatial = spatial || IsSpatial(operand);
  if (!spatial) return false;
  std::vector<TilingRef> leaves;
  Instruction from;
  for (Instruction operand : i.operands()) {
    const size_t count = ToSize(operand.shape().leaf_count());
    if (Has(operand) && Get(operand).size() == count) {
      leaves.insert(leaves.end(), Get(operand).begin(), Get(operand).end());
      if (!from.valid()) from = operand;
    } else if (operand.opcode() == Opcode::kOutfeed && Has(operand)) {
      leaves.push_back(Get(operand).back());
    } else {
      leaves.resize(leaves.size() + count, nullptr);
    }
  }
  if (leaves.size() != LeafShapes(i).size()) return false;
  if (Has(i)) {
    // Of each leaf the more specific one.
    LeafTilings now = Get(i);
    bool improved = false;
    for (size_t k = 0; k < now.size(); ++k) {
      if (leaves[k] == nullptr || now[k]->kind == ShardingKind::kManual || !IsMoreSpecific(*leaves[k], *now[k]))
        continue;
      if (leaves[k]->kind == ShardingKind::kManual && now[k]->tiled()) continue;
      now[k] = leaves[k];
      improved = true;
    }
    if (improved) SetFrom(i, std::move(now), {SourceKind::kOperand, from});
    return improved;
  }
  for (TilingRef& leaf : leaves) {
    if (leaf == nullptr) leaf = Intern(Tiling::Of(ShardingKind::kReplicated));
  }
  SetFrom(i, std::move(leaves), {SourceKind::kOperand, from});
  return true;
}

bool Propagator::ForwardAllLeaves(Instruction i, Instruction from) {
  if (!Has(from) || Get(from).size() != LeafShapes(i).size() || !IsSpatial(from)) return false;
  return ImproveAll(i, Get(from), NonRootUsers(i) == 1, {SourceKind::kOperand, from});
}

// The parameter of a branch or of a called computation has the value of an operand of the caller.
bool Propagator::ForwardParameter(Instruction i) {
  const auto found = callers_.find(i.parent().id().value);
  bool changed = false;
  if (found == callers_.end()) return false;
  for (Instruction caller : found->second) changed |= ForwardParameterFrom(caller, i);
  return changed;
}

bool Propagator::ForwardParameterFrom(Instruction caller, Instruction i) {
  int64_t operand = -1;
  if (caller.opcode() == Opcode::kCall) operand = i.parameter_number();
  if (caller.opcode() == Opcode::kConditional) {
    const std::vector<Computation> branches = caller.called_computations();
    const auto at = std::find(branches.begin(), branches.end(), i.parent());
    operand = 1 + (at - branches.begin());
  }
  if (operand < 0 || operand >= caller.operand_count() || !Has(caller.operand(operand))) return false;
  const Instruction from = caller.operand(operand);
  if (Get(from).size() != LeafShapes(i).size()) return false;
  return ImproveAll(i, Get(from), false, {SourceKind::kSameValue, from});
}

bool Propagator::ForwardWhile(Instruction i) { return ForwardAllLeaves(i, i.operand(0)); }

int64_t Propagator::RepresentativeOperand(Instruction i) const {
  if (HasShardingTrait(i.opcode(), kFollowsFirstOperand)) return Has(i.operand(0)) ? 0 : -1;
  int64_t best = -1;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const TilingRef tiling = ArrayTiling(i.operand(k));
    if (tiling == nullptr || i.operand(k).shape().rank() != i.shape().rank()) continue;
    if (best < 0 || IsMoreSpecific(*tiling, *ArrayTiling(i.operand(best)))) best = k;
  }
  return best;
}

bool Propagator::ForwardElementwise(Instruction i) {
  if (!i.shape().IsArray()) return i.operand_count() > 0 && ForwardAllLeaves(i, i.operand(0));
  if (i.opcode() == Opcode::kRng) {
    bool changed = false;
    for (Instruction operand : i.operands()) {
      const TilingRef tiling = ArrayTiling(operand);
      if (tiling == nullptr || !SpatialLeaf(tiling)) continue;
      changed |= Improve(i, 0, ReplicateAllDims(*tiling, i.shape().rank()), false, {SourceKind::kOperand, operand});
    }
    return changed;
  }
  if (!MayMerge() || !IsRuleElementwise(i)) {
    if (RuleClassOf(i.opcode()) == RuleClass::kCustomCall) return ForwardOperand(i, 0, 0, NonRootUsers(i) == 1);
    const int64_t operand = RepresentativeOperand(i);
    return operand >= 0 && ForwardOperand(i, operand, 0, NonRootUsers(i) == 1);
  }
  bool changed = false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    changed |= ForwardOperand(i, k, 0, i.operand_count() == 1 && NonRootUsers(i) == 1);
  }
  return changed;
}

// At level 0 only layers that are stacked: parameters, reshaped and tiled, but not along the new dimension.
bool Propagator::ForwardConcatenate(Instruction i) {
  if (level_ == 0) {
    for (Instruction operand : i.operands()) {
      const TilingRef tiling = ArrayTiling(operand);
      if (tiling == nullptr || !tiling->tiled() || tiling->tiles() == 1 || operand.opcode() != Opcode::kReshape)
        return false;
      const Opcode source = operand.operand(0).opcode();
      if (!OpcodeSet{Opcode::kParameter, Opcode::kGetTupleElement}.Contains(source)) return false;
      for (int64_t d : i.list_attr(Attr::kDimensions)) {
        if (tiling->tiles(d) > 1) return false;
      }
    }
  }
  const int64_t operand = RepresentativeOperand(i);
  return operand >= 0 && ForwardOperand(i, operand, 0, NonRootUsers(i) == 1);
}

std::optional<Tiling> Propagator::LookAhead(Instruction i) {
  std::vector<Instruction> chain;
  Instruction at = i;
  constexpr size_t kMaxChain = 64;
  while (chain.size() < kMaxChain) {
    const std::vector<Instruction> users = at.users();
    if (users.size() != 1) return std::nullopt;
    chain.push_back(at);
    at = users[0];
    if (Has(at)) break;
  }
  if (!Has(at)) return std::nullopt;
  // Back along the chain, as users propose.
  std::optional<Tiling> asked;
  std::vector<LeafTilings> kept;
  for (size_t n = chain.size(); n-- > 0;) {
    const Instruction operand = chain[n];
    int64_t index = 0;
    while (at.operand(index) != operand) ++index;
    asked = operand.shape().IsArray() && at.shape().IsArray() ? ArrayFromUser(at, index) : std::nullopt;
    if (!asked) break;
    at = operand;
    kept.push_back(Get(at));
    state_[at.id().value] = {Intern(*asked)};
  }
  for (size_t n = 0; n < kept.size(); ++n) state_[chain[chain.size() - 1 - n].id().value] = std::move(kept[n]);
  return asked;
}

bool Propagator::ForwardDot(Instruction i) {
  std::optional<Tiling> proposals[2] = {OperandToResult(i, 0, 0), OperandToResult(i, 1, 0)};
  int64_t first = ByteSize(i.operand(0).shape()) >= ByteSize(i.operand(1).shape()) ? 0 : 1;
  // Where either would do, the one that the users ask for.
  if (proposals[0] && proposals[1] && proposals[0]->tiled() && proposals[1]->tiled()) {
    if (const std::optional<Tiling> asked = LookAhead(i); asked && asked->tiled()) {
      for (int64_t side : {first, 1 - first}) {
        if (!IsSubTilingOrEqual(i.shape().dims(), *asked, *proposals[side])) continue;
        first = side;
        break;
      }
    }
  }
  bool changed = false;
  for (int64_t side : {first, 1 - first}) {
    if (proposals[side]) {
      changed |= Improve(i, 0, *proposals[side], false, {SourceKind::kOperand, i.operand(side)});
    }
  }
  return changed;
}

bool Propagator::ForwardConvolution(Instruction i) {
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  const TilingRef lhs = ArrayTiling(i.operand(0)), rhs = ArrayTiling(i.operand(1));
  bool spatial_tiled = false;
  for (int64_t d = 0; d < dims.spatial_rank(); ++d) {
    if (SpatialKindOf(i, d) != ConvolutionSpatialKind::kWindow) continue;
    spatial_tiled |= lhs != nullptr && lhs->tiled() && lhs->tiles(dims.input_spatial[ToSize(d)]) > 1;
    spatial_tiled |= rhs != nullptr && rhs->tiled() && rhs->tiles(dims.kernel_spatial[ToSize(d)]) > 1;
  }
  const bool grouped = i.int_attr(Attr::kFeatureGroupCount, 1) != 1 || i.int_attr(Attr::kBatchGroupCount, 1) != 1;
  if (IsConvolutionADot(i) || (!spatial_tiled && !grouped)) return ForwardDot(i);
  if (lhs == nullptr || !SpatialLeaf(lhs)) return false;
  if (!lhs->tiled()) return Improve(i, 0, *lhs, false, {SourceKind::kOperand, i.operand(0)});
  // A kernel that is small along every dimension leaves the input's tiling; a large one only that of the batch.
  bool small = true;
  int64_t kernel_size = 1, output_size = 1;
  for (int64_t d = 0; d < dims.spatial_rank(); ++d) {
    const int64_t kernel = i.operand(1).shape().dim(dims.kernel_spatial[ToSize(d)]);
    const int64_t output = i.shape().dim(dims.output_spatial[ToSize(d)]);
    kernel_size *= kernel;
    output_size *= output;
    if (kernel >= output && (d < 2 || kernel > 3 || kernel_size >= output_size)) small = false;
  }
  const ShardingRule& rule = Rule(i);
  if (small) {
    if (lhs->tiles(dims.input_feature) > 1) return false;
    return ForwardOperand(i, 0, 0, false);
  }
  const Tiling batch =
      CarryAlongFactors(rule, rule.operands[0], rule.results[0], ReplicateDimsExcept(*lhs, {dims.input_batch}));
  return Improve(i, 0, batch, false, {SourceKind::kOperand, i.operand(0)});
}

bool Propagator::ForwardReduce(Instruction i) {
  const ShardingRule& rule = Rule(i);
  bool changed = false;
  for (int64_t k = 0; k < i.operand_count() / 2; ++k) {
    const TilingRef from = ArrayTiling(i.operand(k));
    if (from == nullptr || !SpatialLeaf(from)) continue;
    Tiling result = *from;
    if (from->tiled()) {
      bool reduced_tiled = false;
      for (int64_t d : i.list_attr(Attr::kDimensions)) reduced_tiled |= from->tiles(d) > 1;
      const Tiling source = !options_.is_spmd && reduced_tiled ? ReplicateAllDims(*from, from->rank()) : *from;
      result = CarryAlongFactors(rule, rule.operands[ToSize(k)], rule.results[0], source);
    }
    const std::vector<TilingRef> leaves(LeafShapes(i).size(), Intern(result));
    changed |= ImproveAll(i, leaves, NonRootUsers(i) == 1, {SourceKind::kOperand, i.operand(k)});
  }
  return changed;
}

bool Propagator::ForwardReshape(Instruction i) {
  const std::optional<Tiling> proposal = OperandToResult(i, 0, 0);
  if (!proposal) return false;
  const TilingRef from = ArrayTiling(i.operand(0));
  // If nothing of it is kept, it is better than nothing.
  if (from->tiled() && proposal->tiles() == 1 && Has(i)) return false;
  return Improve(i, 0, *proposal, NonRootUsers(i) == 1, {SourceKind::kOperand, i.operand(0)});
}

bool Propagator::ForwardSort(Instruction i) {
  int64_t best = -1;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const TilingRef tiling = ArrayTiling(i.operand(k));
    if (tiling != nullptr && (best < 0 || IsMoreSpecific(*tiling, *ArrayTiling(i.operand(best))))) best = k;
  }
  if (best < 0) return false;
  const TilingRef from = ArrayTiling(i.operand(best));
  if (!SpatialLeaf(from)) return false;
  const int64_t dim = i.list_attr(Attr::kDimensions).empty() ? 0 : i.list_attr(Attr::kDimensions)[0];
  if (from->tiled() && from->tiles(dim) > 1 && !DimToMoveTilesTo(i.operand(best).shape().dims(), *from, dim)) {
    return false;
  }
  const std::vector<TilingRef> leaves(LeafShapes(i).size(), from);
  return ImproveAll(i, leaves, NonRootUsers(i) == 1, {SourceKind::kOperand, i.operand(best)});
}

// Each output from the input of its number, carries from inputs and from their initial values.
bool Propagator::ForwardScan(Instruction i) {
  const ShardingRule& rule = Rule(i);
  const int64_t carries = i.int_attr(Attr::kNumCarries);
  const int64_t inputs = i.operand_count() - carries, outputs = static_cast<int64_t>(LeafShapes(i).size()) - carries;
  if (inputs < 0 || outputs < 0) return false;
  bool changed = false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const TilingRef from = ArrayTiling(i.operand(k));
    if (from == nullptr || !SpatialLeaf(from)) continue;
    std::vector<TilingRef> leaves(LeafShapes(i).size(), nullptr);
    for (int64_t leaf = 0; leaf < static_cast<int64_t>(leaves.size()); ++leaf) {
      const bool to_carry = leaf >= outputs;
      const bool matches = k < inputs ? to_carry || leaf == k || inputs == 1 : to_carry && leaf - outputs == k - inputs;
      if (!matches) continue;
      leaves[ToSize(leaf)] =
          Intern(CarryAlongFactors(rule, rule.operands[ToSize(k)], rule.results[ToSize(leaf)], *from));
    }
    changed |= ImproveAll(i, leaves, NonRootUsers(i) == 1, {SourceKind::kOperand, i.operand(k)});
  }
  return changed;
}

bool Propagator::ForwardGather(Instruction i) {
  bool changed = ForwardOperand(i, 1, 0, false);
  if (options_.is_spmd) changed |= ForwardOperand(i, 0, 0, false);
  return changed;
}

bool Propagator::ForwardScatter(Instruction i) {
  const int64_t count = i.operand_count() / 2;
  const ShardingRule& rule = Rule(i);
  bool changed = false;
  const auto from_operand = [&](int64_t k) {
    const TilingRef from = ArrayTiling(i.operand(k));
    if (from == nullptr || !SpatialLeaf(from)) return;
    const TilingRef result = Intern(CarryAlongFactors(rule, rule.operands[ToSize(k)], rule.results[0], *from));
    // Indices say the same of all results; operands and updates of their own.
    std::vector<TilingRef> leaves(LeafShapes(i).size(), k == count ? result : nullptr);
    if (k != count) leaves[ToSize(k < count ? k : k - count - 1)] = result;
    changed |= ImproveAll(i, leaves, false, {SourceKind::kOperand, i.operand(k)});
  };
  const bool other = IsSpatial(i.operand(count)) || IsSpatial(i.operand(count + 1));
  if (!options_.is_spmd) {
    if (!other) return false;
    const std::vector<TilingRef> leaves(LeafShapes(i).size(), Intern(Tiling::Of(ShardingKind::kReplicated)));
    return ImproveAll(i, leaves, false, {SourceKind::kOperand, i.operand(count)});
  }
  for (int64_t k = 0; k < count; ++k) from_operand(k);
  for (int64_t k = count; k < i.operand_count(); ++k) from_operand(k);
  return changed;
}

bool Propagator::ForwardDynamicSlice(Instruction i) { return ForwardOperand(i, 0, 0, NonRootUsers(i) == 1); }

bool Propagator::ForwardDynamicUpdateSlice(Instruction i) {
  bool changed = ForwardOperand(i, 1, 0, NonRootUsers(i) == 1);
  changed |= ForwardOperand(i, 0, 0, false);
  return changed;
}

bool Propagator::ForwardWindow(Instruction i) {
  const WindowView window = WindowView::Of(i);
  for (int64_t d = 0; d < window.rank(); ++d) {
    if (window[d].base_dilation > 1) return false;
    if (window[d].window_dilation > 1 && i.opcode() == Opcode::kReduceWindow) return false;
  }
  const int64_t inputs = i.opcode() == Opcode::kReduceWindow ? i.operand_count() / 2 : 1;
  bool changed = false;
  for (int64_t k = 0; k < inputs; ++k) {
    const std::optional<Tiling> proposal = OperandToResult(i, k, 0);
    if (!proposal) continue;
    const std::vector<TilingRef> leaves(LeafShapes(i).size(), Intern(*proposal));
    changed |= ImproveAll(i, leaves, NonRootUsers(i) == 1, {SourceKind::kOperand, i.operand(k)});
  }
  return changed;
}

// Operations that XLA replicates: along their parallel factors.
bool Propagator::ForwardByRule(Instruction i) {
  if (!options_.is_spmd) return TakeReplicationFromOperands(i);
  const ShardingRule& rule = Rule(i);
  bool changed = false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const TilingRef from = ArrayTiling(i.operand(k));
    if (from == nullptr || !SpatialLeaf(from)) continue;
    std::vector<TilingRef> leaves;
    for (const ArrayFactors& result : rule.results) {
      leaves.push_back(Intern(CarryAlongFactors(rule, rule.operands[ToSize(k)], result, *from, kParallelOnly)));
    }
    changed |= ImproveAll(i, leaves, false, {SourceKind::kOperand, i.operand(k)});
  }
  return changed;
}

}  // namespace hlokit::sharding
