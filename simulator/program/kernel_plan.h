// SPDX-License-Identifier: Apache-2.0
// Execution plan of a module on one device: its kernels, transfers and calls in order.
//
// The plan follows the module as given: each instruction that generates code becomes one kernel, transfer or call, in
// text order. Compiler decisions (fusion, layouts, memory spaces, schedule) have been made before.
#ifndef HLOKIT_SIMULATOR_PROGRAM_KERNEL_PLAN_H_
#define HLOKIT_SIMULATOR_PROGRAM_KERNEL_PLAN_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/fused_collectives.h"

namespace hlokit::tpu {

enum class ScheduleUnitKind : uint8_t {
  kKernel,      // runs on the core
  kCollective,  // runs on the interconnect; a fusion with a collective also on the core, at the same time
  kCopy,        // asynchronous copy
  kHost,        // infeed, outfeed, send, recv
  kDone,        // waits for the operation that its operand started
  kCall,        // call, conditional, async-start of a computation: runs the callee
  kLoop,
};

// An instruction that takes time on the device.
struct ScheduleUnit {
  ScheduleUnitKind kind = ScheduleUnitKind::kKernel;
  InstructionId root;             // the kernel, which may be a fusion, or the start of a transfer or loop
  std::vector<uint32_t> inputs;   // the steps it depends on, without duplicates, ascending
  InstructionId collective = {};  // of a collective: the first one, which may be in the fusion `root`
  bool starts = false;            // only starts an asynchronous operation
  bool scatters = false;          // the collective is an all-reduce that is run as a reduce-scatter
};

struct ComputationPlan {
  ComputationId computation;
  std::vector<ScheduleUnit> steps;  // in text order
  static constexpr uint32_t kNoStep = 0xffffffffu;
};

class KernelPlan {
 public:
  explicit KernelPlan(const Module& module);

  // Returns the plans of the computations that the entry executes sequentially, callees before callers.
  const std::vector<ComputationPlan>& computations() const { return computations_; }
  // Returns the index of `id` in computations(), or -1.
  int64_t PlanOf(ComputationId id) const { return plan_of_[id.value]; }
  // Returns the index of the instruction in the plan of its computation, or ComputationPlan::kNoStep for instructions
  // that take no time: parameters, constants, tuples, aliases.
  uint32_t StepOf(InstructionId id) const { return step_of_[id.value]; }

 private:
  void Plan(Computation computation, const FusedCollectives& fused);

  std::vector<ComputationPlan> computations_;
  std::vector<int64_t> plan_of_;
  std::vector<uint32_t> step_of_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_PROGRAM_KERNEL_PLAN_H_
