// SPDX-License-Identifier: Apache-2.0
// Which arrays of a computation are in vector memory while it runs: those that its layouts put there, S(1).
#ifndef HLOKIT_INTERP_TPU_MEMORY_RESIDENCY_H_
#define HLOKIT_INTERP_TPU_MEMORY_RESIDENCY_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/tpu/program/kernel_plan.h"
#include "passes/target/cost_model.h"

namespace hlokit::tpu {

// An array in vector memory from the step that makes it to its last use.
struct Resident {
  InstructionId value;
  double bytes = 0;
  uint32_t from = 0;
  uint32_t to = 0;
};

struct Residency {
  absl::flat_hash_map<uint32_t, double> part;  // by value: of its bytes, from 0 to 1; absent: none
  std::vector<double> free_bytes;              // by step: vector memory that holds no array
  std::vector<Resident> residents;
  std::vector<double> used_bytes;  // by step: vector memory that holds arrays
  double PartOf(InstructionId value) const {
    const auto found = part.find(value.value);
    return found == part.end() ? 0 : found->second;
  }
};

// By ComputationId: vector memory that arrays of its callers take while it runs.
std::vector<double> HeldByCallers(const Module& module, const TpuTarget& target);

// `works`: by step, empty for steps that are no kernels. `loop_body`: the computation is one: of the arrays that it
// only reads, a part of the bytes is still there from the iteration before (`vmem_loop_fraction`). `called`: by step,
// the vector memory that what it calls needs for arrays; `outside`: what its callers hold meanwhile.
Residency FindResidency(const Module& module, const TpuTarget& target, const ComputationPlan& plan,
                        const std::vector<KernelCost>& works, bool loop_body, const std::vector<double>& called,
                        double outside);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_MEMORY_RESIDENCY_H_
