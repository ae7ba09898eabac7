// SPDX-License-Identifier: Apache-2.0
// Operations that are divided along the factors of their sharding rule.
#include <algorithm>
#include <memory>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {

// The handlers of the classes of rules. Factors are parallel unless Restrict allows more.
ComputationPartitioner::RuleHandler ComputationPartitioner::HandlerOf(RuleClass rule) {
  using Self = ComputationPartitioner;
  constexpr RuleHandler kSame = {nullptr, nullptr, &Self::EmitClone};
  switch (rule) {
    case RuleClass::kDot:
    case RuleClass::kCustomCall:
    case RuleClass::kStated:
      return {&Self::DivideContraction, nullptr, &Self::EmitClone};
    case RuleClass::kRaggedDot:
      return {&Self::DivideContraction, nullptr, &Self::EmitRaggedDot};
    case RuleClass::kSelectAndScatter:
      return {&Self::DivideSelectAndScatter, nullptr, &Self::EmitSelectAndScatter};
    case RuleClass::kConvolution:
      return {&Self::DivideConvolution, &Self::DivideKernel, &Self::EmitConvolution};
    case RuleClass::kSlice:
      return {&Self::DivideSlice, nullptr, &Self::EmitSlice};
    case RuleClass::kPad:
      return {&Self::DividePad, nullptr, &Self::EmitPad};
    case RuleClass::kReduceWindow:
      return {&Self::DivideReduceWindow, nullptr, &Self::EmitReduceWindow};
    case RuleClass::kReverse:
      return {&Self::DivideReverse, nullptr, &Self::EmitReverse};
    case RuleClass::kConcatenate:
      return {&Self::DivideConcatenate, nullptr, &Self::EmitConcatenate};
    case RuleClass::kReduce:
      return {&Self::DivideReduce, nullptr, &Self::EmitReduce};
    case RuleClass::kScan:
      return {&Self::DivideScan, nullptr, &Self::EmitScan};
    case RuleClass::kSort:
      return {&Self::DivideSort, nullptr, &Self::EmitSort};
    case RuleClass::kTopK:
      return {&Self::DivideTopK, nullptr, &Self::EmitTopK};
    case RuleClass::kDynamicSlice:
      return {&Self::DivideDynamicSlice, nullptr, &Self::EmitDynamicSlice};
    case RuleClass::kDynamicUpdateSlice:
      return {&Self::DivideDynamicUpdateSlice, &Self::DivideUpdateAsWindow, &Self::EmitDynamicUpdateSlice};
    case RuleClass::kGather:
      return {&Self::DivideGather, nullptr, &Self::EmitGather};
    case RuleClass::kScatter:
      return {&Self::DivideScatter, nullptr, &Self::EmitScatter};
    case RuleClass::kElementwise:
    case RuleClass::kForwarding:
    case RuleClass::kNothing:
    case RuleClass::kSource:
    case RuleClass::kWhole:
    case RuleClass::kDeviceDimension:
    case RuleClass::kBatchNorm:
    case RuleClass::kBitcastConvert:
    case RuleClass::kBroadcast:
    case RuleClass::kFft:
    case RuleClass::kMatrixWhole:
    case RuleClass::kReshape:
    case RuleClass::kRngBitGenerator:
    case RuleClass::kTranspose:
    case RuleClass::kTriangularSolve:
      return kSame;
  }
  return kSame;
}

bool ComputationPartitioner::DivideContraction(Instruction i, DividedOp* op) {
  op->contraction = true;
  op->combines = ReductionOp::kSum;
  // Convolutions of integers saturate, which sums of partial results would not.
  const bool saturates = i.opcode() == Opcode::kConvolution && IsInteger(i.shape().element_type());
  for (size_t f = 0; f < op->rule->factors.size(); ++f) {
    if (op->rule->factors[f].kind != FactorKind::kReduced || i.opcode() == Opcode::kScaledDot || saturates) continue;
    op->divisible[f] = op->combined[f] = true;
  }
  // What a kernel makes of padding is not known.
  if (RuleClassOf(i) == RuleClass::kStated) op->exact.assign(op->exact.size(), true);
  // Groups of convolutions stay whole. The factors in the order of the rule: batch groups, batch, feature groups.
  const int64_t batch_groups = i.int_attr(Attr::kBatchGroupCount, 1);
  if (batch_groups > 1) op->exact[0] = true;
  if (i.int_attr(Attr::kFeatureGroupCount, 1) > 1) op->exact[batch_groups > 1 ? 2 : 1] = true;
  return true;
}

bool ComputationPartitioner::DivideReduce(Instruction i, DividedOp* op) {
  const Computation reducer = i.computation_attr(Attr::kToApply);
  const std::optional<Opcode> opcode = BinaryOpcodeOf(reducer);
  const bool combines = i.operand_count() == 2 && opcode && HasIdentity(*opcode, i.operand(0).shape().element_type());
  if (combines) op->combines = ReductionOf(*opcode, i.operand(0).shape().element_type());
  // Partial results are combined, or gathered if there are several arrays. Other computations on one array stay whole:
  // few are associative.
  bool gathers = i.operand_count() > 2;
  for (const Instruction inner : reducer.instructions()) gathers = gathers && inner.called_computations().empty();
  for (size_t f = 0; f < op->rule->factors.size(); ++f) {
    if (op->rule->factors[f].kind != FactorKind::kReduced) continue;
    op->divisible[f] = combines || gathers;
    op->combined[f] = combines;
    op->gathered[f] = gathers;
  }
  return true;
}

namespace {

// Which operands of an operation are partial results if its result is one, the others being whole.
struct UnreducedForm {
  int64_t operands = 0;      // the first so many; 0: no result is partial
  bool elementwise = false;  // of parts too; others only of whole arrays
  bool moves = false;        // elements stay as they are: also of maxima and minima
};

UnreducedForm UnreducedFormOf(Instruction i) {
  static constexpr OpcodeSet kMoves = {Opcode::kBroadcast, Opcode::kConcatenate, Opcode::kReshape,
                                       Opcode::kReverse,   Opcode::kSlice,       Opcode::kTranspose};
  static constexpr OpcodeSet kSums = {Opcode::kAdd, Opcode::kSubtract, Opcode::kNegate};
  const int64_t count = i.operand_count();
  if (kMoves.Contains(i.opcode())) return {count, false, true};
  if (kSums.Contains(i.opcode())) return {count, true, false};
  if (i.opcode() == Opcode::kDynamicSlice) return {1, false, true};
  if (i.opcode() == Opcode::kDynamicUpdateSlice) return {2, false, true};
  if (i.opcode() == Opcode::kConvert) {
    // To a type that has all values of the other one.
    const ElementType from = i.operand(0).shape().element_type(), to = i.shape().element_type();
    const bool widens = IsFloat(from) && IsFloat(to) && BitsOf(to) > BitsOf(from) && BitsOf(from) >= 16;
    return {widens ? 1 : 0, true, true};
  }
  const bool same = i.opcode() == Opcode::kCustomCall && RuleClassOf(i) == RuleClass::kElementwise;
  return {same && count == 1 ? 1 : 0, true, true};
}

}  // namespace

bool ComputationPartitioner::KeepsUnreduced(Instruction i, const DividedOp& op) const {
  if (op.results.size() != 1 || !IsUnreduced(*op.results[0])) return false;
  const Tiling& wanted = *op.results[0];
  const UnreducedForm form = UnreducedFormOf(i);
  if (form.operands == 0 || (!form.moves && wanted.reduction != ReductionOp::kSum)) return false;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const Tiling& own = *op.operands[k];
    if (static_cast<int64_t>(k) >= form.operands) {
      if (!own.replicated_everywhere()) return false;
      continue;
    }
    if (form.elementwise && op.operands[k] == op.results[0]) continue;
    const bool alike = IsUnreduced(own) && own.kind == wanted.kind && own.unreduced == wanted.unreduced &&
                       own.reduction == wanted.reduction && own.order == wanted.order && own.manual == wanted.manual;
    if (!alike || own.tiles() != 1 || wanted.tiles() != 1) return false;
  }
  return true;
}

Value ComputationPartitioner::EmitClone(const LocalOp& op) {
  std::vector<InstructionId> operands = op.operands;
  MaskOperands(op.whole, *op.rule, *op.choice, &operands);
  const InstructionId local = Clone(op.whole, operands, LocalShapeOf(op.whole.shape(), op.results));
  LocalizeAttributes(op.whole, *op.choice, local);
  return Unpack(local, op.whole.shape(), op.results);
}

// A collective in code for the devices of a manual subgroup is among these devices, which have the same part.
absl::Status ComputationPartitioner::CheckManualGroups(Instruction i, const LeafTilings& wanted) const {
  if (!HasTrait(i.opcode(), kCollective) || !i.has(Attr::kReplicaGroups)) return absl::OkStatus();
  const auto manual = std::find_if(wanted.begin(), wanted.end(), [](TilingRef t) { return !t->manual.empty(); });
  if (manual == wanted.end() || !(*manual)->tiled()) return absl::OkStatus();
  const Tiling& tiling = **manual;
  const auto groups = ExpandReplicaGroups(module_.context(), AttrReader(i).list_id(Attr::kReplicaGroups), kMaxDevices);
  if (!groups.ok()) return groups.status();
  std::map<int64_t, int64_t> positions;  // by device
  for (int64_t p = 0; p < tiling.device_count; ++p) positions[tiling.DeviceAt(p)] = p;
  for (const std::vector<int64_t>& group : *groups) {
    for (const int64_t device : group) {
      const auto first = positions.find(group[0] % state_.partitions), own = positions.find(device % state_.partitions);
      if (first == positions.end() || own == positions.end()) continue;
      for (const AxisList& dim : tiling.dims) {
        if (TileNumber(dim, first->second) == TileNumber(dim, own->second)) continue;
        return Error(
            i, StrCat("Manual ", i.opcode_text(), " across devices that belong to different manual subgroups: devices ",
                      group[0], " and ", device, " have different parts"));
      }
    }
  }
  return absl::OkStatus();
}

void ComputationPartitioner::NoteOrigin(Instruction reshape, InstructionId operand, const Leaf& part) {
  const InstructionId whole = emitter_.WholeOrigin(operand);
  if (!whole.valid() || !part.tiling->tiled()) return;
  emitter_.SetOrigin(part.id, part.shape, Clone(reshape, {whole}, part.shape), state_.tilings.Replicated());
}

absl::Status ComputationPartitioner::ByRule(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  bool arrays = !HasDynamicShape(i);
  bool manual = IsManual(wanted);
  for (const Instruction operand : OperandsOf(i)) {
    arrays = arrays && operand.shape().IsArray();
    for (const Leaf& leaf : ValueOf(operand)) manual = manual || leaf.tiling->kind == ShardingKind::kManual;
  }
  if (manual) {
    // Code for one device.
    std::vector<InstructionId> operands;
    for (const Instruction operand : OperandsOf(i)) {
      std::vector<InstructionId> leaves;
      for (const Leaf& leaf : ValueOf(operand)) leaves.push_back(leaf.id);
      operands.push_back(Pack(operand.shape(), leaves));
    }
    Finish(i, Unpack(Clone(i, operands, i.shape()), i.shape(), wanted));
    return absl::OkStatus();
  }
  if (!arrays) {
    Whole(i);
    return absl::OkStatus();
  }
  if (absl::Status status = CheckManualGroups(i, wanted); !status.ok()) return status;
  if (IsFree(i) && IsMade(*wanted[0])) {
    SetValue(i, {{MakePart(i, wanted[0]), i.shape(), wanted[0], i}});
    return absl::OkStatus();
  }
  if (ReshapeByHalo(i, wanted[0])) return absl::OkStatus();
  const RuleHandler handler = HandlerOf(RuleClassOf(i));
  const auto operands = OperandsOf(i);
  // The ways of dividing it, of which the cheapest is taken.
  struct Way {
    ShardingRule rule;
    DividedOp op;
    FactorChoice choice;
  };
  std::vector<std::unique_ptr<Way>> ways;
  for (const auto divide : {handler.divide, handler.otherwise}) {
    if (divide == nullptr && !ways.empty()) continue;
    auto way = std::make_unique<Way>();
    way->rule = RuleOf(i);
    DividedOp& op = way->op;
    op.rule = &way->rule;
    op.result_shapes = Leaves(i.shape());
    op.results = wanted;
    op.exact.assign(way->rule.factors.size(), false);
    op.combined = op.gathered = op.exact;
    for (const Factor& factor : way->rule.factors) op.divisible.push_back(factor.kind == FactorKind::kParallel);
    op.sources.assign(operands.begin(), operands.end());
    if (divide != nullptr && !(this->*divide)(i, &op)) continue;
    for (const Instruction operand : op.sources) {
      Share(operand);
      const Leaf& leaf = LeafOf(operand);
      op.operand_shapes.push_back(leaf.shape);
      op.operands.push_back(leaf.tiling);
      op.free_operands.push_back(leaf.source.valid());
    }
    ways.push_back(std::move(way));
  }
  if (KeepsUnreduced(i, ways[0]->op)) {
    // The sum of partial results is a partial result of the sum, and likewise for what moves elements.
    std::vector<InstructionId> parts;
    for (const Instruction operand : operands) parts.push_back(LeafOf(operand).id);
    const InstructionId id = Clone(i, parts, LocalShapeOf(i.shape(), wanted));
    LocalizeAttributes(i, FactorChoice(), id);
    SetValue(i, {{id, i.shape(), wanted[0]}});
    return absl::OkStatus();
  }
  for (const std::unique_ptr<Way>& way : ways) way->choice = ChooseFactorAxes(&state_, way->op);
  Way& way = **std::min_element(ways.begin(), ways.end(),
                                [](const auto& a, const auto& b) { return a->choice.cost < b->choice.cost; });
  const ShardingRule& rule = way.rule;
  DividedOp& op = way.op;
  FactorChoice& choice = way.choice;
  LocalOp local{i, &rule, &choice, {}, {}, &op.windows, &op.sources};
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const TilingRef tiling = state_.tilings.Intern(TilingFor(rule, choice, rule.operands[k]));
    local.operands.push_back(Reshard(LeafOf(op.sources[k]), tiling));
  }
  for (const ArrayFactors& result : rule.results) {
    local.results.push_back(state_.tilings.Intern(TilingFor(rule, choice, result)));
  }
  scattered_rest_ = choice.partial;
  std::optional<Value> windowed = WindowedDot(op, &local);
  choice.partial = scattered_rest_;
  Value leaves = windowed ? *std::move(windowed) : (this->*handler.emit)(local);
  if (i.opcode() == Opcode::kReshape) NoteOrigin(i, local.operands[0], leaves[0]);
  if (!choice.partial.empty()) {
    for (size_t k = 0; k < leaves.size(); ++k) {
      Leaf& leaf = leaves[k];
      const auto combiner = [&] { return Combiner(i, leaf.shape.element_type()); };
      leaf.id = emitter_.CombineAndReshard(leaf.id, leaf.shape, choice.frame, DimsOf(*leaf.tiling, leaf.shape.rank()),
                                           choice.partial, combiner, wanted[k], op.combines);
      leaf.tiling = wanted[k];
    }
  }
  Finish(i, std::move(leaves));
  return absl::OkStatus();
}

}  // namespace hlokit::spmd
