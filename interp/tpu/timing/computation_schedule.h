// SPDX-License-Identifier: Apache-2.0
// One computation on one device: when its steps run on the core, on the links and on the DMA engines, once.
#ifndef HLOKIT_INTERP_TPU_TIMING_COMPUTATION_SCHEDULE_H_
#define HLOKIT_INTERP_TPU_TIMING_COMPUTATION_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// What all computations of a module are simulated with.
struct ScheduleContext {
  const Module& module;
  const KernelPlan& plan;
  const SimulationOptions& options;
  const CostModel& model;
  const std::vector<double>& held_by_callers;         // by ComputationId: HeldByCallers of the module
  const std::vector<InstructionId>& loop_of_body;     // by ComputationId; of bodies of loops
  const std::vector<ComputationTime>& done;           // of the plan's computations before this one: all that it calls
  std::map<std::string, int64_t>* missing = nullptr;  // what the estimate lacks
};

// Steps whose operands and results pass by the core: collectives, copies, transfers, asynchronous calls.
bool IsOffCore(const ScheduleUnit& step, Instruction name);

ComputationTime ScheduleComputation(const ScheduleContext& context, const ComputationPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_COMPUTATION_SCHEDULE_H_
