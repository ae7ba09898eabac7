// SPDX-License-Identifier: Apache-2.0
#include "simulator/program/kernel_plan.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/target/aliases.h"
#include "passes/target/op_class.h"

namespace hlokit::tpu {

namespace {

ScheduleUnitKind KindOf(Instruction i, CollectiveRole role) {
  switch (role) {
    case CollectiveRole::kWhole:
    case CollectiveRole::kStart:
      return ScheduleUnitKind::kCollective;
    case CollectiveRole::kDone:
      return ScheduleUnitKind::kDone;
    case CollectiveRole::kNone:
    case CollectiveRole::kCarrier:
      break;
  }
  switch (ClassOf(AsyncWrappedInstruction(i).opcode())) {
    case OpClass::kCollective:
      return ScheduleUnitKind::kCollective;
    case OpClass::kAsyncCopy:
      return ScheduleUnitKind::kCopy;
    case OpClass::kHost:
      return ScheduleUnitKind::kHost;
    case OpClass::kDone:
      return ScheduleUnitKind::kDone;
    case OpClass::kCall:
      return ScheduleUnitKind::kCall;
    case OpClass::kLoop:
      return ScheduleUnitKind::kLoop;
    case OpClass::kNoWork:
    case OpClass::kAlias:
    case OpClass::kTuple:
    case OpClass::kGetTupleElement:
    case OpClass::kElementwise:
    case OpClass::kMovement:
    case OpClass::kUpdate:
    case OpClass::kReduce:
    case OpClass::kProduct:
    case OpClass::kStandalone:
    case OpClass::kScalar:
      break;
  }
  return ScheduleUnitKind::kKernel;
}

}  // namespace

KernelPlan::KernelPlan(const Module& module)
    : plan_of_(module.computation_id_bound(), -1), step_of_(module.instruction_id_bound(), ComputationPlan::kNoStep) {
  const CallGraph calls(module);
  const FusedCollectives fused(module);
  for (ComputationId id : calls.PostOrder()) {
    const Computation computation = module.computation(id);
    if (calls.IsLive(computation) && calls.IsSequential(computation)) Plan(computation, fused);
  }
}

void KernelPlan::Plan(Computation computation, const FusedCollectives& fused) {
  ComputationPlan plan;
  plan.computation = computation.id();
  std::vector<Instruction> open;
  absl::flat_hash_set<uint32_t> inputs, tuples;
  for (Instruction i : computation.instructions()) {
    if (!GeneratesCode(i)) continue;
    const uint32_t s = static_cast<uint32_t>(plan.steps.size());
    inputs.clear();
    tuples.clear();
    for (Instruction operand : i.operands()) open.push_back(operand);
    for (Instruction before : i.control_predecessors()) open.push_back(before);
    while (!open.empty()) {
      const Instruction value = ValueOf(open.back());
      open.pop_back();
      const bool forwards = ClassOf(value.opcode()) == OpClass::kTuple || value.opcode() == Opcode::kGetTupleElement;
      if (forwards || IsConcatBitcast(value)) {
        if (!tuples.insert(value.id().value).second) continue;
        for (Instruction operand : value.operands()) open.push_back(operand);
        continue;
      }
      if (const uint32_t source = step_of_[value.id().value]; source != ComputationPlan::kNoStep) inputs.insert(source);
    }
    const FusedCollective& role = fused.Of(i);
    if (role.start.valid()) {
      // What runs while a collective is in flight does not wait for it; its end does.
      const uint32_t start = step_of_[role.start.value];
      inputs.erase(start);
      if (role.role == CollectiveRole::kDone && start != ComputationPlan::kNoStep) inputs.insert(start);
    }
    step_of_[i.id().value] = s;
    ScheduleUnit& step = plan.steps.emplace_back(
        ScheduleUnit{.kind = KindOf(i, role.role), .root = i.id(), .inputs = {inputs.begin(), inputs.end()}});
    std::sort(step.inputs.begin(), step.inputs.end());
    step.starts = HasTrait(i.opcode(), kStartsAsync) || role.role == CollectiveRole::kStart;
    step.scatters = role.scatters;
    if (step.kind == ScheduleUnitKind::kCollective) {
      step.collective = role.collectives.empty() ? AsyncWrappedInstruction(i).id() : role.collectives[0];
    }
  }
  plan_of_[computation.id().value] = static_cast<int64_t>(computations_.size());
  computations_.push_back(std::move(plan));
}

}  // namespace hlokit::tpu
