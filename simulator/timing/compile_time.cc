// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/compile_time.h"

namespace hlokit::tpu {

namespace {

constexpr double kBase = 4e-3;
constexpr double kPerInstruction = 0.44e-3;
constexpr double kPerKernel = 6.6e-3;

}  // namespace

CompileTime EstimateCompileTime(const Module& lowered, const KernelPlan& plan) {
  CompileTime time;
  for (const Computation c : lowered.computations()) {
    for ([[maybe_unused]] const Instruction i : c.instructions()) ++time.instructions;
  }
  for (const ComputationPlan& computation : plan.computations()) {
    for (const ScheduleUnit& unit : computation.steps) time.kernels += unit.kind == ScheduleUnitKind::kKernel ? 1 : 0;
  }
  time.seconds =
      kBase + kPerInstruction * static_cast<double>(time.instructions) + kPerKernel * static_cast<double>(time.kernels);
  return time;
}

}  // namespace hlokit::tpu
