// SPDX-License-Identifier: Apache-2.0
// Loops, conditionals, calls and tuples: values that are the same on both sides of an edge have the same tilings there.
// The computations are written later, for these tilings, one for each combination.
#include <algorithm>
#include <utility>

#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {

void ComputationPartitioner::Tuple(Instruction i) {
  Value leaves;
  for (const Instruction operand : OperandsOf(i)) {
    const Value& value = ValueOf(operand);
    leaves.insert(leaves.end(), value.begin(), value.end());
  }
  // Without a sharding of its own a tuple leaves its elements as they are.
  if (i.has(Attr::kSharding)) {
    Finish(i, std::move(leaves));
  } else {
    SetValue(i, std::move(leaves));
  }
}

void ComputationPartitioner::GetTupleElement(Instruction i) {
  const Instruction tuple = i.operand(0);
  const int64_t index = i.int_attr(Attr::kIndex);
  int64_t first = 0;
  const auto leaves_of = [](Shape shape) {
    return shape.IsTuple() ? static_cast<int64_t>(Leaves(shape).size()) : int64_t{1};
  };
  for (int64_t e = 0; e < index; ++e) first += leaves_of(tuple.shape().element(e));
  const int64_t count = leaves_of(i.shape());
  const Value& value = ValueOf(tuple);
  Value leaves(value.begin() + first, value.begin() + first + count);
  if (i.has(Attr::kSharding)) {
    Finish(i, std::move(leaves));
  } else {
    SetValue(i, std::move(leaves));
  }
}

void ComputationPartitioner::Barrier(Instruction i) {
  const Value value = ValueOf(i.operand(0));
  LeafTilings tilings;
  for (const Leaf& leaf : value) tilings.push_back(leaf.tiling);
  const InstructionId operand = PackResharded(value, i.operand(0).shape(), tilings);
  const InstructionId id = Clone(i, {operand}, builder().shape_of(operand));
  Value leaves = Unpack(id, i.shape(), tilings);
  if (i.has(Attr::kSharding)) {
    Finish(i, std::move(leaves));
  } else {
    SetValue(i, std::move(leaves));
  }
}

void ComputationPartitioner::While(Instruction i) {
  const Value init = ValueOf(i.operand(0));
  const LeafTilings state = WantedTilings(i);
  const InstructionId operand = PackResharded(init, i.shape(), state);
  const InstructionId id = Clone(i, {operand}, builder().shape_of(operand));
  const TilingRef context = state.empty() ? state_.tilings.Replicated() : state[0];
  const ComputationId body = owner_.Variant(i.computation_attr(Attr::kBody).id(), {state}, state);
  const ComputationId condition =
      owner_.Variant(i.computation_attr(Attr::kCondition).id(), {state}, {Unsharded(context, 0)});
  module_.SetAttr(id, Attr::kBody, body.value);
  module_.SetAttr(id, Attr::kCondition, condition.value);
  SetValue(i, Unpack(id, i.shape(), state));
}

void ComputationPartitioner::Conditional(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  const TilingRef context = wanted.empty() ? state_.tilings.Replicated() : wanted[0];
  std::vector<InstructionId> operands = {Reshard(LeafOf(i.operand(0)), Unsharded(context, 0))};
  const std::vector<Computation> branches = i.called_computations();
  std::vector<ComputationId> variants;
  for (size_t b = 0; b < branches.size(); ++b) {
    const Instruction argument = i.operand(static_cast<int64_t>(b) + 1);
    const Value& value = ValueOf(argument);
    LeafTilings tilings;
    const std::optional<LeafTilings> given = owner_.GivenTilings(branches[b].parameter(0));
    const size_t given_count = given ? given->size() : 0;
    for (size_t k = 0; k < value.size(); ++k) tilings.push_back(k < given_count ? (*given)[k] : value[k].tiling);
    operands.push_back(PackResharded(value, argument.shape(), tilings));
    variants.push_back(owner_.Variant(branches[b].id(), {tilings}, wanted));
  }
  const InstructionId id = Clone(i, operands, LocalShapeOf(i.shape(), wanted));
  size_t next = 0;
  module_.ReplaceCallees(id, [&](ComputationId) { return variants[next++]; });
  SetValue(i, Unpack(id, i.shape(), wanted));
}

void ComputationPartitioner::Call(Instruction i) {
  const Computation callee = i.computation_attr(Attr::kToApply);
  std::vector<InstructionId> operands;
  std::vector<LeafTilings> parameters;
  for (int64_t p = 0; p < i.operand_count(); ++p) {
    const Value& value = ValueOf(i.operand(p));
    LeafTilings& tilings = parameters.emplace_back();
    const std::optional<LeafTilings> given = owner_.GivenTilings(callee.parameter(p));
    const size_t given_count = given ? given->size() : 0;
    for (size_t k = 0; k < value.size(); ++k) tilings.push_back(k < given_count ? (*given)[k] : value[k].tiling);
    operands.push_back(PackResharded(value, i.operand(p).shape(), tilings));
  }
  const LeafTilings wanted = WantedTilings(i);
  const InstructionId id = Clone(i, operands, LocalShapeOf(i.shape(), wanted));
  module_.SetAttr(id, Attr::kToApply, owner_.Variant(callee.id(), std::move(parameters), wanted).value);
  SetValue(i, Unpack(id, i.shape(), wanted));
}

}  // namespace hlokit::spmd
