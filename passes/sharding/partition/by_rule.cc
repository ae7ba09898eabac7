// SPDX-License-Identifier: Apache-2.0
// Operations that are divided along the factors of their sharding rule.
#include <algorithm>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {

namespace {

// A reduction of one array by an operation with an identity.
bool IsKnownReduction(Instruction reduce) {
  if (reduce.operand_count() != 2) return false;
  const std::optional<Opcode> opcode = BinaryOpcodeOf(reduce.computation_attr(Attr::kToApply));
  return opcode && HasIdentity(*opcode, reduce.operand(0).shape().element_type());
}

}  // namespace

uint32_t ComputationPartitioner::DivisibleKinds(Instruction i) const {
  const uint32_t parallel = KindBit(FactorKind::kParallel);
  const uint32_t reduced = parallel | KindBit(FactorKind::kReduced);
  switch (RuleClassOf(i)) {
    case RuleClass::kDot:
      return i.opcode() == Opcode::kScaledDot ? parallel : reduced;
    case RuleClass::kConvolution:
      return reduced;
    case RuleClass::kReduce:
      return IsKnownReduction(i) ? reduced : parallel;
    case RuleClass::kElementwise:
    case RuleClass::kForwarding:
    case RuleClass::kNothing:
    case RuleClass::kSource:
    case RuleClass::kWhole:
    case RuleClass::kDeviceDimension:
    case RuleClass::kBatchNorm:
    case RuleClass::kBitcastConvert:
    case RuleClass::kBroadcast:
    case RuleClass::kConcatenate:
    case RuleClass::kCustomCall:
    case RuleClass::kDynamicSlice:
    case RuleClass::kDynamicUpdateSlice:
    case RuleClass::kFft:
    case RuleClass::kGather:
    case RuleClass::kMatrixWhole:
    case RuleClass::kPad:
    case RuleClass::kRaggedDot:
    case RuleClass::kReduceWindow:
    case RuleClass::kReshape:
    case RuleClass::kReverse:
    case RuleClass::kRngBitGenerator:
    case RuleClass::kScan:
    case RuleClass::kScatter:
    case RuleClass::kSelectAndScatter:
    case RuleClass::kSlice:
    case RuleClass::kSort:
    case RuleClass::kTopK:
    case RuleClass::kTranspose:
    case RuleClass::kTriangularSolve:
      return parallel;
  }
  return parallel;
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
  const ShardingRule rule = RuleOf(i);
  DividedOp op;
  op.rule = &rule;
  op.result_shapes = Leaves(i.shape());
  op.results = wanted;
  op.kinds = DivisibleKinds(i);
  op.contraction = RuleClassOf(i) == RuleClass::kDot || RuleClassOf(i) == RuleClass::kConvolution;
  for (const Instruction operand : OperandsOf(i)) {
    const Leaf& leaf = LeafOf(operand);
    op.operand_shapes.push_back(leaf.shape);
    op.operands.push_back(leaf.tiling);
    op.free_operands.push_back(leaf.free);
  }
  const FactorChoice choice = ChooseFactorAxes(&state_, op);

  std::vector<InstructionId> operands;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const TilingRef tiling = state_.tilings.Intern(TilingFor(rule, choice, rule.operands[k]));
    operands.push_back(Reshard(LeafOf(i.operand(static_cast<int64_t>(k))), tiling));
  }
  MaskOperands(i, rule, choice, &operands);
  LeafTilings tilings;
  for (const ArrayFactors& result : rule.results) {
    tilings.push_back(state_.tilings.Intern(TilingFor(rule, choice, result)));
  }
  const InstructionId local = Clone(i, operands, LocalShapeOf(i.shape(), tilings));
  LocalizeAttributes(i, choice, local);
  Value leaves = Unpack(local, i.shape(), tilings);
  const AxisList partial = choice.Partial(rule);
  if (!partial.empty()) {
    for (size_t k = 0; k < leaves.size(); ++k) {
      Leaf& leaf = leaves[k];
      leaf.id = emitter_.CombineAndReshard(leaf.id, leaf.shape, choice.frame, DimsOf(*leaf.tiling, leaf.shape.rank()),
                                           partial, Combiner(i, leaf.shape.element_type()), wanted[k]);
      leaf.tiling = wanted[k];
    }
  }
  Finish(i, std::move(leaves));
  return absl::OkStatus();
}

}  // namespace hlokit::spmd
