// SPDX-License-Identifier: Apache-2.0
// Parameters, constants, tuples, calls, loops and conditionals. Only the last three have run-time cost.
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/small_loop.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

bool Matches(const CompiledComputation* callee, size_t arguments, size_t results) {
  return callee != nullptr && callee->parameters.size() == arguments && callee->results.size() == results;
}

size_t ResultLeaves(CompiledComputationBuilder& b) { return static_cast<size_t>(b.program().LeafCount(b.shape())); }

}  // namespace

void PrepareParameter(CompiledComputationBuilder& b) { b.PrepareParameter(); }
void PrepareConstant(CompiledComputationBuilder& b) { b.PrepareConstant(); }

void PrepareFirstOperand(CompiledComputationBuilder& b) { b.SetResults(b.leaves(b.instruction().operand(0))); }

void PrepareToken(CompiledComputationBuilder& b) {
  View token;
  token = b.Constant(b.shape(), nullptr);
  b.SetResult(token);
}

void PrepareTuple(CompiledComputationBuilder& b) {
  std::vector<View> views;
  for (Instruction operand : b.instruction().operands()) {
    const absl::Span<const View> leaves = b.leaves(operand);
    views.insert(views.end(), leaves.begin(), leaves.end());
  }
  b.SetResults(views);
}

void PrepareGetTupleElement(CompiledComputationBuilder& b) {
  const Instruction tuple = b.instruction().operand(0);
  const int64_t index = b.instruction().int_attr(Attr::kIndex);
  if (!tuple.shape().IsTuple() || index < 0 || index >= tuple.shape().tuple_size()) {
    b.FailMismatch("an index of an element of the tuple");
    return;
  }
  b.AliasResult(tuple, index);
}

void PrepareCall(CompiledComputationBuilder& b) {
  const std::vector<Computation> called = b.instruction().called_computations();
  auto params = std::make_unique<CallParams>();
  params->callee = called.size() == 1 ? b.program().CompiledComputationOf(called[0]) : nullptr;
  std::vector<View> views;
  for (Instruction operand : b.instruction().operands()) b.AppendDense(operand, &views);
  if (!Matches(params->callee, views.size(), ResultLeaves(b))) {
    b.FailMismatch("operands and a result of the shapes of the called computation");
    return;
  }
  b.EmitControl(ThunkKind::kCall, std::move(params), views);
}

void PrepareWhile(CompiledComputationBuilder& b) {
  auto params = std::make_unique<WhileParams>();
  params->condition = b.program().CompiledComputationOf(b.instruction().computation_attr(Attr::kCondition));
  params->body = b.program().CompiledComputationOf(b.instruction().computation_attr(Attr::kBody));
  std::vector<View> views;
  b.AppendDense(b.instruction().operand(0), &views);
  const size_t moved_count = params->body == nullptr ? 0 : params->body->moved.size();
  if (!Matches(params->condition, views.size(), 1) ||
      !Matches(params->body, views.size() + moved_count, ResultLeaves(b) + moved_count) ||
      views.size() != ResultLeaves(b)) {
    b.FailMismatch("condition and body of the loop with its state as parameter");
    return;
  }
  // What left the body runs before the loop.
  std::vector<Shape> more;
  for (const MovedThunk& moved : params->body->moved) {
    views.push_back(b.EmitMoved(moved, views[moved.leaf]));
    more.push_back(views.back().shape);
    params->condition->parameters.push_back(kNoSlot);
  }
  std::vector<int64_t> state_bytes;
  for (const View& view : views) state_bytes.push_back(BytesOfLeaf(view.shape));
  params->small = SmallLoop::Create(*params, b.instruction().id(), state_bytes);
  b.EmitControl(ThunkKind::kWhile, std::move(params), views, more);
}

void PrepareConditional(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const std::vector<Computation> branches = instruction.called_computations();
  auto params = std::make_unique<ConditionalParams>();
  std::vector<View> views = {b.operand(0)};
  const ElementType index_type = views[0].type();
  params->predicate = index_type == ElementType::kPred;
  if (branches.empty() || static_cast<size_t>(instruction.operand_count()) != branches.size() + 1 ||
      (params->predicate ? branches.size() != 2 : index_type != ElementType::kS32)) {
    b.FailMismatch("an operand for each branch after a pred[] or s32[] branch index");
    return;
  }
  for (size_t i = 0; i < branches.size(); ++i) {
    params->operand_begins.push_back(static_cast<uint32_t>(views.size()));
    b.AppendDense(instruction.operand(static_cast<int64_t>(i) + 1), &views);
    params->branches.push_back(b.program().CompiledComputationOf(branches[i]));
    if (!Matches(params->branches[i], views.size() - params->operand_begins[i], ResultLeaves(b))) {
      b.FailMismatch(StrCat("operand ", i + 1, " of the shape of the parameter of branch ", i));
      return;
    }
  }
  params->operand_begins.push_back(static_cast<uint32_t>(views.size()));
  b.EmitControl(ThunkKind::kConditional, std::move(params), views);
}

}  // namespace hlokit::interp
