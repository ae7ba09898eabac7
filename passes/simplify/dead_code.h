// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_DEAD_CODE_H_
#define HLOKIT_PASSES_SIMPLIFY_DEAD_CODE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/graph/module.h"
#include "ir/graph/potential_callers.h"
#include "ir/graph/side_effects.h"
#include "passes/simplify/instruction_key.h"

namespace hlokit {

// Side effects in a module that gains computations: new ones conservatively count as having side effects.
class ConservativeSideEffects {
 public:
  explicit ConservativeSideEffects(const Module& module) : effects_(module), bound_(module.computation_id_bound()) {}

  bool Of(Computation computation) const { return computation.id().value >= bound_ || effects_.Of(computation); }
  bool Of(Instruction instruction) const {
    bool unknown = false;
    instruction.ForEachCallee([&](Computation callee) { unknown |= callee.id().value >= bound_; });
    return unknown || effects_.Of(instruction);
  }

 private:
  SideEffects effects_;
  size_t bound_;
};

// Erases the computations that are unreachable from the entry. Returns their number. Linear in the module, or in the
// callers if they are known.
int64_t EraseUnreachable(Module& module);
int64_t EraseUnreachable(Module& module, const PotentialCallers& callers);

// Erases unused instructions of a computation that have no side effects and no control edges, except parameters.
// Returns their number. Linear in the computation.
int64_t EraseUnused(Module& module, Computation computation, const ConservativeSideEffects& effects);

// Partitions computations into classes that are equal instruction by instruction, ignoring names and metadata.
// Computations with control edges equal only themselves. Visits queried computations and their callees on demand.
class EqualComputationSet {
 public:
  explicit EqualComputationSet(const Module& module);

  // Returns the first visited computation that is equal to this one. Linear in the instructions it visits.
  ComputationId FirstEqual(ComputationId id);
  // Records that the computation equals no other.
  void Add(ComputationId id) { same_[id.value] = id.value; }

 private:
  uint32_t Find(Computation computation);

  const Module& module_;
  std::vector<uint32_t> same_;    // by ComputationId: FirstEqual; none if not visited
  std::vector<uint32_t> number_;  // by InstructionId: index in the current computation
  KeySet keys_;
};

// Returns for each computation, by id, the first one equal to it in an order with callees first.
std::vector<uint32_t> EqualComputations(const Module& module);

// Adds the metadata sources of `from` to the instructions of `to`, which is equal to it, and likewise for their
// callees. `carried` holds the pairs already done.
void MergeMetadataOfEqual(Module& module, ComputationId from, ComputationId to, absl::flat_hash_set<uint64_t>* carried);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DEAD_CODE_H_
