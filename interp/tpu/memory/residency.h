// SPDX-License-Identifier: Apache-2.0
// Which arrays of a computation stay in vector memory: those that its layouts put there, S(1), or where no memory-space
// assignment has run, those that fit until their last use.
#ifndef HLOKIT_INTERP_TPU_MEMORY_RESIDENCY_H_
#define HLOKIT_INTERP_TPU_MEMORY_RESIDENCY_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "interp/tpu/cost/kernel_cost.h"
#include "interp/tpu/cost/kernel_plan.h"
#include "interp/tpu/devices/machine.h"

namespace hlokit::tpu {

// An array in vector memory from the step that makes it to its last use; of loops' state, all the time.
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

// A layout of the module puts an array into vector memory: what does not say so is elsewhere.
bool HasAssignment(const Module& module);

// By ComputationId: vector memory that arrays of its callers take while it runs, as the module's own assignment has it.
std::vector<double> HeldByCallers(const Machine& machine, const Module& module, double scale);

// `works`: by step, empty for steps that are no kernels. `loop_body`: the computation is one, and its state may stay.
// `called`: by step, the vector memory that what it calls needs for arrays; `outside`: what its callers hold meanwhile.
// `assigned`: HasAssignment of the module.
// All together never take more than there is but for the tiles of kernels, unless the module's own assignment does.
Residency PlaceArrays(const Machine& machine, const Module& module, const ComputationPlan& plan,
                      const std::vector<KernelWork>& works, bool loop_body, const std::vector<double>& called,
                      double outside, bool assigned, double scale);

// Of a loop body: elements of the state that it passes on as they are.
absl::flat_hash_set<int64_t> InvariantElements(Computation body);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_MEMORY_RESIDENCY_H_
