// SPDX-License-Identifier: Apache-2.0
// What a device runs of a module, in the order in which it runs it.
//
// The module is taken as it stands: each instruction that generates code is one kernel, transfer or call, and they run
// in the order of the text. What a compiler decides (fusion, layouts, memory spaces, the order) has been decided
// before.
#ifndef HLOKIT_INTERP_TPU_PROGRAM_KERNEL_PLAN_H_
#define HLOKIT_INTERP_TPU_PROGRAM_KERNEL_PLAN_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit::tpu {

enum class ScheduleUnitKind : uint8_t {
  kKernel,      // runs on the core
  kCollective,  // runs on the interconnect
  kCopy,        // an asynchronous copy
  kHost,        // infeed, outfeed, send, recv
  kDone,        // waits for what its operand started
  kCall,        // call, conditional, async-start of a computation: the callee runs
  kLoop,
};

// An instruction that takes time.
struct ScheduleUnit {
  ScheduleUnitKind kind = ScheduleUnitKind::kKernel;
  InstructionId name;            // the instruction
  std::vector<uint32_t> inputs;  // steps of the plan that it waits for, each once, ascending
};

struct ComputationPlan {
  ComputationId computation;
  std::vector<ScheduleUnit> steps;  // in the order of the text
  static constexpr uint32_t kNoStep = 0xffffffffu;
};

class KernelPlan {
 public:
  explicit KernelPlan(const Module& module);

  // Of computations that the entry reaches in sequence, callees before callers.
  const std::vector<ComputationPlan>& computations() const { return computations_; }
  // Index into computations(), or -1.
  int64_t PlanOf(ComputationId id) const { return plan_of_[id.value]; }
  // Step (of the plan of its computation) that is the instruction; ComputationPlan::kNoStep for those that take no
  // time: parameters, constants, tuples, aliases.
  uint32_t StepOf(InstructionId id) const { return step_of_[id.value]; }

 private:
  void Plan(Computation computation);

  std::vector<ComputationPlan> computations_;
  std::vector<int64_t> plan_of_;
  std::vector<uint32_t> step_of_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_PROGRAM_KERNEL_PLAN_H_
