// SPDX-License-Identifier: Apache-2.0
// What a kernel asks of each resource of a device, before anything is known of when it runs and where its arrays are.
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
using ResourceTimes = std::array<double, kResourceCount>;  // seconds

// An array that a kernel reads or writes.
struct MemoryAccess {
  InstructionId value;
  double bytes = 0;
  bool is_full_array = true;  // all of the array, not a slice
};

struct KernelCost {
  ResourceTimes times{};  // kHbm is left to who knows where the arrays are
  std::vector<MemoryAccess> reads;
  std::vector<MemoryAccess> writes;
  double vmem_bytes = 0;  // through vector memory
  double flops = 0;       // of the program, not of the passes it takes
  std::vector<MatmulShape> products;
  bool opaque = false;  // a custom call whose work is unknown
  bool lane_reduce = false;
  bool has_manual_pipeline = false;  // a hand-written kernel that streams at attention_hbm_efficiency and hides it all
};

// Of an instruction that runs on the core.
KernelCost KernelCostOf(const DeviceDescription& machine, const CostAnalysis& costs, Instruction kernel);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_KERNEL_COST_H_
