// SPDX-License-Identifier: Apache-2.0
// Operations that are divided along the factors of their sharding rule.
#include <algorithm>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {

// The handlers of the classes of rules. Factors are parallel unless Restrict allows more.
ComputationPartitioner::RuleHandler ComputationPartitioner::HandlerOf(RuleClass rule) {
  using Self = ComputationPartitioner;
  constexpr RuleHandler kSame = {nullptr, &Self::EmitClone};
  switch (rule) {
    case RuleClass::kDot:
    case RuleClass::kCustomCall:
    case RuleClass::kStated:
      return {&Self::DivideContraction, &Self::EmitClone};
    case RuleClass::kConvolution:
      return {&Self::DivideConvolution, &Self::EmitConvolution};
    case RuleClass::kSlice:
      return {&Self::DivideSlice, &Self::EmitSlice};
    case RuleClass::kPad:
      return {&Self::DividePad, &Self::EmitPad};
    case RuleClass::kReduceWindow:
      return {&Self::DivideReduceWindow, &Self::EmitReduceWindow};
    case RuleClass::kReverse:
      return {&Self::DivideReverse, &Self::EmitReverse};
    case RuleClass::kConcatenate:
      return {&Self::DivideConcatenate, &Self::EmitConcatenate};
    case RuleClass::kReduce:
      return {&Self::DivideReduce, &Self::EmitClone};
    case RuleClass::kDynamicSlice:
      return {&Self::DivideDynamicSlice, &Self::EmitDynamicSlice};
    case RuleClass::kDynamicUpdateSlice:
      return {&Self::DivideDynamicUpdateSlice, &Self::EmitDynamicUpdateSlice};
    case RuleClass::kGather:
      return {&Self::DivideGather, &Self::EmitGather};
    case RuleClass::kScatter:
      return {&Self::DivideScatter, &Self::EmitScatter};
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
    case RuleClass::kRaggedDot:
    case RuleClass::kReshape:
    case RuleClass::kRngBitGenerator:
    case RuleClass::kScan:
    case RuleClass::kSelectAndScatter:
    case RuleClass::kSort:
    case RuleClass::kTopK:
    case RuleClass::kTranspose:
    case RuleClass::kTriangularSolve:
      return kSame;
  }
  return kSame;
}

void ComputationPartitioner::DivideContraction(Instruction i, DividedOp* op) {
  op->contraction = true;
  for (size_t f = 0; f < op->rule->factors.size(); ++f) {
    if (op->rule->factors[f].kind != FactorKind::kReduced || i.opcode() == Opcode::kScaledDot) continue;
    op->divisible[f] = op->combined[f] = true;
  }
  // What a kernel makes of padding is not known.
  if (RuleClassOf(i) == RuleClass::kStated) op->exact.assign(op->exact.size(), true);
  // Groups of convolutions stay whole. The factors in the order of the rule: batch groups, batch, feature groups.
  const int64_t batch_groups = i.int_attr(Attr::kBatchGroupCount, 1);
  if (batch_groups > 1) op->exact[0] = true;
  if (i.int_attr(Attr::kFeatureGroupCount, 1) > 1) op->exact[batch_groups > 1 ? 2 : 1] = true;
}

void ComputationPartitioner::DivideReduce(Instruction i, DividedOp* op) {
  // A reduction of one array by an operation with an identity.
  if (i.operand_count() != 2) return;
  const std::optional<Opcode> opcode = BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
  if (!opcode || !HasIdentity(*opcode, i.operand(0).shape().element_type())) return;
  for (size_t f = 0; f < op->rule->factors.size(); ++f) {
    if (op->rule->factors[f].kind == FactorKind::kReduced) op->divisible[f] = op->combined[f] = true;
  }
}

bool ComputationPartitioner::KeepsUnreduced(Instruction i, const DividedOp& op) const {
  if (op.results.size() != 1) return false;
  const TilingRef wanted = op.results[0];
  if (wanted->kind != ShardingKind::kUnreduced && wanted->unreduced.empty()) return false;
  if (std::any_of(op.operands.begin(), op.operands.end(), [&](TilingRef t) { return t != wanted; })) return false;
  constexpr Opcode kLinear[] = {Opcode::kAdd, Opcode::kSubtract, Opcode::kNegate};
  const bool linear = std::find(std::begin(kLinear), std::end(kLinear), i.opcode()) != std::end(kLinear);
  const bool moves =
      i.opcode() == Opcode::kCustomCall && i.operand_count() == 1 && RuleClassOf(i) == RuleClass::kElementwise;
  return moves || (linear && wanted->reduction == ReductionOp::kSum);
}

Value ComputationPartitioner::EmitClone(const LocalOp& op) {
  std::vector<InstructionId> operands = op.operands;
  MaskOperands(op.whole, *op.rule, *op.choice, &operands);
  const InstructionId local = Clone(op.whole, operands, LocalShapeOf(op.whole.shape(), op.results));
  LocalizeAttributes(op.whole, *op.choice, local);
  return Unpack(local, op.whole.shape(), op.results);
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
  if (IsFree(i) && IsMade(*wanted[0])) {
    SetValue(i, {{MakePart(i, wanted[0]), i.shape(), wanted[0], i}});
    return absl::OkStatus();
  }
  const ShardingRule rule = RuleOf(i);
  const RuleHandler handler = HandlerOf(RuleClassOf(i));
  DividedOp op;
  op.rule = &rule;
  op.result_shapes = Leaves(i.shape());
  op.results = wanted;
  op.exact.assign(rule.factors.size(), false);
  op.combined = op.exact;
  for (const Factor& factor : rule.factors) op.divisible.push_back(factor.kind == FactorKind::kParallel);
  const auto operands = OperandsOf(i);
  op.sources.assign(operands.begin(), operands.end());
  if (handler.divide != nullptr) (this->*handler.divide)(i, &op);
  for (const Instruction operand : op.sources) {
    const Leaf& leaf = LeafOf(operand);
    op.operand_shapes.push_back(leaf.shape);
    op.operands.push_back(leaf.tiling);
    op.free_operands.push_back(leaf.source.valid());
  }

  if (KeepsUnreduced(i, op)) {
    // Sums of partial results are partial results of the sum.
    std::vector<InstructionId> parts;
    for (const Instruction operand : operands) parts.push_back(LeafOf(operand).id);
    const InstructionId id = Clone(i, parts, LocalShapeOf(i.shape(), wanted));
    LocalizeAttributes(i, FactorChoice(), id);
    SetValue(i, {{id, i.shape(), wanted[0]}});
    return absl::OkStatus();
  }
  FactorChoice choice = ChooseFactorAxes(&state_, op);
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
  if (!choice.partial.empty()) {
    for (size_t k = 0; k < leaves.size(); ++k) {
      Leaf& leaf = leaves[k];
      leaf.id = emitter_.CombineAndReshard(leaf.id, leaf.shape, choice.frame, DimsOf(*leaf.tiling, leaf.shape.rank()),
                                           choice.partial, Combiner(i, leaf.shape.element_type()), wanted[k]);
      leaf.tiling = wanted[k];
    }
  }
  Finish(i, std::move(leaves));
  return absl::OkStatus();
}

}  // namespace hlokit::spmd
