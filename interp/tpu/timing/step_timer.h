// SPDX-License-Identifier: Apache-2.0
// How long each step of a plan takes on a device once it is known where its arrays are: kernels on the core,
// collectives on the interconnect, copies on the DMA engines.
#ifndef HLOKIT_INTERP_TPU_TIMING_STEP_TIMER_H_
#define HLOKIT_INTERP_TPU_TIMING_STEP_TIMER_H_

#include "interp/tpu/cost/kernel_cost.h"
#include "interp/tpu/cost/kernel_plan.h"
#include "interp/tpu/memory/residency.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Largest of the resources; overhead only where it is most of the time.
Resource BoundOf(const ResourceTimes& times);
void AddTimes(const ResourceTimes& from, double scale, ResourceTimes* to);

// Steps whose operands and results pass by the core: collectives, copies, transfers, asynchronous calls.
bool IsOffCore(const Step& step, Instruction name);

class StepTimer {
 public:
  // `scale`: part of each array and of its work that a device has; 1 but for modules that have not been partitioned.
  StepTimer(const Module& module, const KernelPlan& plan, const SimulationOptions& options, double scale)
      : module_(module), plan_(plan), options_(options), machine_(options.machine), scale_(scale) {}

  // `prefetched`: bytes that may have been brought in before the step began. Gives how many of them were its operands'.
  double Kernel(const KernelWork& work, const Step& step, const Residency& residency, double prefetched,
                StepTime* time) const;
  void Collective(Instruction i, StepTime* time) const;
  void Copy(Instruction i, StepTime* time) const;

  double HbmRate() const { return machine_.HbmRate() * machine_.hbm_efficiency; }

 private:
  bool IsEarly(InstructionId value, const Step& step) const;

  const Module& module_;
  const KernelPlan& plan_;
  const SimulationOptions& options_;
  const Machine& machine_;
  const double scale_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_STEP_TIMER_H_
