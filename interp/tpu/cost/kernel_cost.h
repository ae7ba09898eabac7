// SPDX-License-Identifier: Apache-2.0
// What a step of the plan asks of each resource of a device, before anything is known of when it runs.
#ifndef HLOKIT_INTERP_TPU_COST_KERNEL_COST_H_
#define HLOKIT_INTERP_TPU_COST_KERNEL_COST_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "interp/tpu/cost/kernel_plan.h"
#include "interp/tpu/cost/matrix_cost.h"
#include "interp/tpu/devices/machine.h"
#include "ir/graph/module.h"
#include "passes/analysis/cost.h"

namespace hlokit::tpu {

enum class Resource : uint8_t { kMxu, kVpu, kEup, kXlu, kVmem, kScalar, kHbm, kIci, kDcn, kHost, kOverhead };
inline constexpr size_t kResourceCount = static_cast<size_t>(Resource::kOverhead) + 1;
std::string_view NameOf(Resource resource);
using ResourceTimes = std::array<double, kResourceCount>;  // seconds

// An array that a step reads or writes.
struct Access {
  InstructionId value;
  double bytes = 0;
  bool whole = true;  // all of the array, not a slice
};

struct KernelWork {
  ResourceTimes times{};  // kHbm is left to who knows where the arrays are
  std::vector<Access> reads;
  std::vector<Access> writes;
  double vmem_bytes = 0;  // through vector memory
  double flops = 0;       // of the program, not of the passes it takes
  std::vector<Product> products;
  bool opaque = false;  // a custom call whose work is unknown
  bool lane_reduce = false;
  bool own_pipeline = false;  // a hand-written kernel that streams at attention_hbm_efficiency and hides it all
};

// Of a step whose kind is kKernel.
KernelWork WorkOf(const Machine& machine, const CostAnalysis& costs, const Module& module, const Step& step);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_COST_KERNEL_COST_H_
