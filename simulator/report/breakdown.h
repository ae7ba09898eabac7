// SPDX-License-Identifier: Apache-2.0
// Breakdown of the device time of a step: core work by kind and core stalls by cause. The parts add up to the device
// time.
#ifndef HLOKIT_SIMULATOR_REPORT_BREAKDOWN_H_
#define HLOKIT_SIMULATOR_REPORT_BREAKDOWN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

struct ReportInput;

// Returns the input of the step that ended last, the step itself if the core blocks on it while it runs off the core,
// or kNoStep.
uint32_t StallCause(const ComputationPlan& plan, const ComputationTime& time, uint32_t step);

// Core stall time, summed over all executions of the computation.
struct CoreStall {
  InstructionId waiting;                                  // the stalled instruction; none: the end of the computation
  InstructionId waited_for;                               // the operation that ended last
  ScheduleUnitKind kind = ScheduleUnitKind::kCollective;  // kind of `waited_for`
  const ScheduleUnit* unit = nullptr;                     // of `waited_for`, in the plan; null if there is none
  double runs = 0;
  double seconds = 0;
};
// Returns the core stalls, longest first.
std::vector<CoreStall> CoreStalls(const ReportInput& input, const KernelPlan& plan);

enum class TimeKind : uint8_t { kCompute, kMemory, kCommunication, kHost, kOverhead };
struct TimeShare {
  std::string name;  // "matmul", "waiting for all-reduce"
  TimeKind kind = TimeKind::kCompute;
  double seconds = 0;
};
// Returns the breakdown, longest first. The last may be "not attributed": time of loops and calls in excess of their
// parts.
std::vector<TimeShare> DeviceBreakdown(const ReportInput& input, const KernelPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_BREAKDOWN_H_
