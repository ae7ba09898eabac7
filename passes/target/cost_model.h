// SPDX-License-Identifier: Apache-2.0
// How long each instruction takes on a target, once it is known where its arrays are: kernels on the core, collectives
// on the interconnect, copies on the DMA engines. The scheduler, memory-space assignment and the simulator price with
// it.
#ifndef HLOKIT_PASSES_TARGET_COST_MODEL_H_
#define HLOKIT_PASSES_TARGET_COST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ir/graph/module.h"
#include "passes/analysis/cost.h"
#include "passes/core/pass.h"
#include "passes/target/kernel_cost.h"
#include "passes/target/tpu_target.h"

namespace hlokit::tpu {

// Memory spaces of layouts, S(n).
inline constexpr int64_t kVectorMemorySpace = 1;
inline constexpr int64_t kHostMemorySpace = 5;

// Links that collectives share: those of each axis of the mesh, and those between slices.
inline constexpr size_t kLinkGroups = 4;
inline constexpr size_t kDcnLinkGroup = 3;

// Returns the resource that is busy longest; overhead only where it is most of the time.
Resource BoundOf(const ResourceTimes& times);
void AddTimes(const ResourceTimes& from, double scale, ResourceTimes* to);

struct OpTime {
  double duration = 0;  // seconds
  ResourceTimes times{};
  Resource bound = Resource::kOverhead;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double ideal = 0;       // of a collective: at the nominal rates of all links it can use
  uint8_t link_mask = 0;  // of a collective: bit i for the links of axis i, kDcnLinkGroup for those between slices
};

// The part of the array, or of the arrays of a tuple, that its layout puts into vector memory: 0 to 1.
double FractionInVmem(const DeviceDescription& machine, Shape shape);

class CostModel {
 public:
  // `module` and `target` must outlive the model.
  CostModel(const Module& module, const TpuTarget& target);

  const TpuTarget& target() const { return target_; }
  const CostAnalysis& costs() const { return costs_; }

  // What a kernel needs of each resource, wherever its arrays are.
  KernelCost KernelCostOf(Instruction kernel) const { return tpu::KernelCostOf(target_.machine, costs_, kernel); }

  // Where the arrays of a kernel are.
  struct Placement {
    absl::FunctionRef<double(InstructionId)> in_vmem;     // the part of an array, 0 to 1
    absl::FunctionRef<bool(InstructionId)> prefetchable;  // it was there long enough before the kernel
    double prefetched = 0;                                // bytes that may have been brought in before the kernel began
  };
  // Returns how many of the prefetched bytes were its operands'.
  double Kernel(const KernelCost& work, const Placement& placement, OpTime* time) const;
  // A collective, or the asynchronous start of one.
  void Collective(Instruction i, OpTime* time) const;
  // A copy between memories, infeed, outfeed, send, recv.
  void Copy(Instruction i, OpTime* time) const;

 private:
  const TpuTarget& target_;
  const double scale_;  // part of each array, and of the work on it, that a device has
  const CostAnalysis costs_;
};

// How long each instruction of the module takes by itself, with what it calls: loops by their trips, of conditionals
// the longest branch. By InstructionId. For a scheduler: whatever has no memory space is taken to be in HBM.
std::vector<Latency> EstimateLatencies(const Module& module, const TpuTarget& target);

// Of the computations that a conditional may run, the index of the one for which `seconds` is largest; -1: none.
template <typename Seconds>
int64_t LongestBranch(const std::vector<Computation>& branches, const Seconds& seconds) {
  int64_t longest = -1;
  double most = -1;
  for (size_t b = 0; b < branches.size(); ++b) {
    const double s = seconds(branches[b]);
    if (s > most) {
      most = s;
      longest = static_cast<int64_t>(b);
    }
  }
  return longest;
}

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_COST_MODEL_H_
