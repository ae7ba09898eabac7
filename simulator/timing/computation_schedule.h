// SPDX-License-Identifier: Apache-2.0
// Simulates one run of a computation on one device: start times on the core, the links and the DMA engines.
#ifndef HLOKIT_SIMULATOR_TIMING_COMPUTATION_SCHEDULE_H_
#define HLOKIT_SIMULATOR_TIMING_COMPUTATION_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/timing/hbm_budget.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// Inputs that all computations of a module share.
struct ScheduleContext {
  const Module& module;
  const KernelPlan& plan;
  const SimulationOptions& options;
  const CostModel& model;
  const std::vector<double>& reserved_by_callers;     // by ComputationId: ReservedByCallers of the module
  const std::vector<ComputationTime>& done;           // earlier computations of the plan, which include all callees
  std::map<std::string, int64_t>* missing = nullptr;  // properties that the estimate does not model
  HbmBudget hbm{};                                    // of each computation, at most
  double initial_hbm = 0;                             // bytes of it at the begin of the program
  const std::vector<double>* runs = nullptr;          // by computation of the plan: runs, if `hbm` is limited
  bool first_run = false;                             // no run before has started cross-program prefetches
};

// Returns true for copies of the entry that compilers start at the end of a run for the next one. Only the first run
// waits for them.
bool IsCrossProgramPrefetch(Instruction copy);

// Returns true for steps that run concurrently with the core: collectives, copies, transfers, asynchronous calls.
bool IsOffCore(const ScheduleUnit& step, Instruction name);

ComputationTime ScheduleComputation(const ScheduleContext& context, const ComputationPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_COMPUTATION_SCHEDULE_H_
