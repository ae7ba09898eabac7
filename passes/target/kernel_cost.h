// SPDX-License-Identifier: Apache-2.0
// Demand of a kernel on each resource of a device, independent of when it runs and where its arrays are.
#ifndef HLOKIT_PASSES_TARGET_KERNEL_COST_H_
#define HLOKIT_PASSES_TARGET_KERNEL_COST_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/cost.h"
#include "passes/target/device_description.h"
#include "passes/target/matrix_cost.h"

namespace hlokit::tpu {

enum class Resource : uint8_t { kMxu, kVpu, kEup, kXlu, kVmem, kScalar, kHbm, kIci, kDcn, kHost, kOverhead };
inline constexpr size_t kResourceCount = static_cast<size_t>(Resource::kOverhead) + 1;
std::string_view ToString(Resource resource);
using ResourceTimes = std::array<double, kResourceCount>;  // in seconds

// An access of a kernel to an array.
struct MemoryAccess {
  InstructionId value;
  double bytes = 0;
  bool on_host = false;  // over the link to the host
};

struct KernelCost {
  ResourceTimes times{};  // without kHbm, which depends on where the arrays are
  std::vector<MemoryAccess> reads;
  std::vector<MemoryAccess> writes;
  double compute_seconds = 0;  // at least, where units of a hand-written kernel wait for each other
  double launch_seconds = 0;   // of a hand-written kernel, before it reads anything
  double refetched_bytes = 0;  // that a hand-written kernel reads from HBM again
  double grid_steps = 0;       // of a hand-written kernel: blocks that it reads, each while it computes the one before
  double vmem_bytes = 0;       // streamed through vector memory
  double tiles = 1;            // through which it streams its largest array
  double flops = 0;            // of the program, without repeated passes
  std::vector<MatmulShape> products;
  bool opaque = false;  // a custom call of unknown cost
  bool lane_reduce = false;
  bool has_manual_pipeline = false;  // a hand-written kernel whose transfers overlap with all of its work
};

// Returns the cost of an instruction that runs on the core.
KernelCost KernelCostOf(const DeviceDescription& machine, const CostAnalysis& costs, Instruction kernel);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_KERNEL_COST_H_
