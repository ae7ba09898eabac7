// SPDX-License-Identifier: Apache-2.0
// Determines which arrays of a computation are in vector memory while it runs: those whose layouts have memory space 1,
// or 3, the common memory of chips that have one, which counts as vector memory.
#ifndef HLOKIT_SIMULATOR_MEMORY_RESIDENCY_H_
#define HLOKIT_SIMULATOR_MEMORY_RESIDENCY_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/target/cost_model.h"
#include "simulator/program/kernel_plan.h"

namespace hlokit::tpu {

// An array that is in vector memory from the step that produces it to its last use.
struct Resident {
  InstructionId value;
  double bytes = 0;
  uint32_t from = 0;
  uint32_t to = 0;
};

struct Residency {
  absl::flat_hash_map<uint32_t, double> part;  // by value: fraction in vector memory, from 0 to 1; absent means 0
  std::vector<double> free_bytes;              // by step: vector memory without arrays
  std::vector<Resident> residents;
  std::vector<double> used_bytes;  // by step: vector memory occupied by arrays
  double PartOf(InstructionId value) const {
    const auto found = part.find(value.value);
    return found == part.end() ? 0 : found->second;
  }
};

// Returns, by ComputationId, the vector memory that arrays of its callers occupy while it runs.
std::vector<double> ReservedByCallers(const Module& module, const TpuTarget& target);

// Computes the residency of one computation. `works`: kernel costs by step, empty for other steps. `called`: by step,
// vector memory that arrays of its callees occupy. `outside`: vector memory that arrays of its callers occupy.
Residency FindResidency(const Module& module, const TpuTarget& target, const ComputationPlan& plan,
                        const std::vector<KernelCost>& works, const std::vector<double>& called, double outside);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_MEMORY_RESIDENCY_H_
