// SPDX-License-Identifier: Apache-2.0
// Time of each instruction on a target, given where its arrays are: kernels on the core, collectives on the
// interconnect, copies on the DMA engines. Shared by the scheduler, memory-space assignment and the simulator.
#ifndef HLOKIT_PASSES_TARGET_COST_MODEL_H_
#define HLOKIT_PASSES_TARGET_COST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ir/graph/module.h"
#include "passes/analysis/cost.h"
#include "passes/core/pass.h"
#include "passes/target/fused_collectives.h"
#include "passes/target/kernel_cost.h"
#include "passes/target/tpu_target.h"

namespace hlokit::tpu {

// Link groups that collectives share: one for each axis of the mesh, and one between slices.
inline constexpr size_t kLinkGroups = 4;
inline constexpr size_t kDcnLinkGroup = 3;

// Returns the resource with the longest busy time; overhead only if it is most of the time.
Resource BoundOf(const ResourceTimes& times);
void AddTimes(const ResourceTimes& from, double scale, ResourceTimes* to);

struct OpTime {
  double duration = 0;  // in seconds
  ResourceTimes times{};
  Resource bound = Resource::kOverhead;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double ideal = 0;       // of a collective: at the nominal rates of all links it can use
  double link_time = 0;   // of a collective: the links' part of the duration; more only if it is in a fusion
  uint8_t link_mask = 0;  // of a collective: bit i for the links of axis i, kDcnLinkGroup for those between slices
};

// Returns true if the layout of an array puts it into memory on the chip: vector memory, or the common memory of chips
// that have one.
bool IsOnChip(const DeviceDescription& machine, Shape array);
// Returns the fraction, 0 to 1, of the array or of the arrays of a tuple that its layout puts into memory on the chip.
double FractionInVmem(const DeviceDescription& machine, Shape shape);

class CostModel {
 public:
  // `module` and `target` must outlive the model.
  CostModel(const Module& module, const TpuTarget& target);

  const TpuTarget& target() const { return target_; }
  const CostAnalysis& costs() const { return costs_; }
  const FusedCollectives& fused() const { return fused_; }

  // Returns the time of a kernel on each resource, independent of where its arrays are.
  KernelCost KernelCostOf(Instruction kernel) const { return tpu::KernelCostOf(target_.machine, costs_, kernel); }

  // Residency of the arrays of a kernel.
  struct Placement {
    absl::FunctionRef<double(InstructionId)> in_vmem;     // fraction of an array, 0 to 1
    absl::FunctionRef<bool(InstructionId)> prefetchable;  // the array is available long enough before the kernel
    double prefetched = 0;                                // bytes that can be prefetched before the kernel starts
    double contended = 0;                                 // bytes a second of HBM that others use meanwhile
  };
  // Sets `time` of a kernel. Returns the prefetched bytes that were its operands'.
  double Kernel(const KernelCost& work, const Placement& placement, OpTime* time) const;
  // Sets `time` of a collective, or of its asynchronous start, or of the collectives in a fusion.
  void Collective(Instruction i, OpTime* time) const;
  // Adds to `time` of the collectives in a fusion its `kernel`, which runs at the same time.
  static void AddKernel(const OpTime& kernel, OpTime* time);
  // Sets `time` of a copy between memories, infeed, outfeed, send or recv.
  void Copy(Instruction i, OpTime* time) const;

 private:
  const TpuTarget& target_;
  const double scale_;  // fraction of each array, and of the work on it, per device
  const CostAnalysis costs_;
  const FusedCollectives fused_;
};

// Returns the duration of each instruction with its callees, by InstructionId: loops times their trip count,
// conditionals with the longest branch. For schedulers: arrays without a memory space count as in HBM.
std::vector<Latency> EstimateLatencies(const Module& module, const TpuTarget& target);

// Returns the index of the branch computation for which `seconds` is largest, or -1 if there are none.
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
