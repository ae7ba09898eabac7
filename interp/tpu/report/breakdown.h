// SPDX-License-Identifier: Apache-2.0
// Where the device time of a step goes: the core's work by kind, and its waits by what it waits for. The parts add up
// to the device time.
#ifndef HLOKIT_INTERP_TPU_REPORT_BREAKDOWN_H_
#define HLOKIT_INTERP_TPU_REPORT_BREAKDOWN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

struct ReportInput;

// Of the steps that a step of the plan waited for, the one that ended last; the step itself where it holds the core
// while it runs beside it. kNoStep: none.
uint32_t StallCause(const ComputationPlan& plan, const ComputationTime& time, uint32_t step);

// The core standing still, all runs of the computation together.
struct CoreStall {
  InstructionId waiting;                                  // what could not start; none: the end of the computation
  InstructionId waited_for;                               // what ended last
  ScheduleUnitKind kind = ScheduleUnitKind::kCollective;  // of what was waited for
  double runs = 0;
  double seconds = 0;
};
// Longest first.
std::vector<CoreStall> CoreStalls(const ReportInput& input, const KernelPlan& plan);

enum class TimeKind : uint8_t { kCompute, kMemory, kCommunication, kHost, kOverhead };
struct TimeShare {
  std::string name;  // "matmul", "waiting for all-reduce"
  TimeKind kind = TimeKind::kCompute;
  double seconds = 0;
};
// Longest first. The last may be "not attributed": what loops and calls take beyond their parts.
std::vector<TimeShare> DeviceBreakdown(const ReportInput& input, const KernelPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_BREAKDOWN_H_
