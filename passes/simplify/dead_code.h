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

// Side effects in a module that gains computations: of new ones nothing is known, so they count as having some.
class ConservativeSideEffects {
 public:
  explicit ConservativeSideEffects(const Module& module) : effects_(module), bound_(module.computation_id_bound()) {}

  bool Of(Computation computation) const { return computation.id().value >= bound_ || effects_.Of(computation); }
  bool Of(Instruction instruction) const {
    for (Computation callee : instruction.called_computations()) {
      if (callee.id().value >= bound_) return true;
    }
    return effects_.Of(instruction);
  }

 private:
  SideEffects effects_;
  size_t bound_;
};

// Erases the computations that cannot be reached from the entry; their number. Linear in the module, or in the callers
// where they are known.
int64_t EraseUnreachable(Module& module);
int64_t EraseUnreachable(Module& module, const PotentialCallers& callers);

// Erases the instructions of a computation that nothing uses, that have no effect and no control edges, parameters
// excepted; their number. Linear in the computation.
int64_t EraseUnused(Module& module, Computation computation, const ConservativeSideEffects& effects);

// Tells computations apart that are not equal instruction by instruction, names and metadata left out. Those with
// control edges are equal to none but themselves. Looks at what is asked for, and at what that calls.
class EqualComputationSet {
 public:
  explicit EqualComputationSet(const Module& module);

  // The first computation asked for, or called by one, that is equal to this one. Linear in what it looks at.
  ComputationId FirstEqual(ComputationId id);
  // It is known to be like no other.
  void Add(ComputationId id) { same_[id.value] = id.value; }

 private:
  uint32_t Find(Computation computation);

  const Module& module_;
  std::vector<uint32_t> same_;    // by ComputationId: FirstEqual, none yet
  std::vector<uint32_t> number_;  // by InstructionId: place in the computation at hand
  KeySet keys_;
};

// For each computation, by id, the first one equal to it, in an order in which callees come first.
std::vector<uint32_t> EqualComputations(const Module& module);

// The instructions of `to` stand for those of `from`, which is equal to it, too; so do those that they call. `carried`:
// pairs done before.
void MergeMetadataOfEqual(Module& module, ComputationId from, ComputationId to, absl::flat_hash_set<uint64_t>* carried);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DEAD_CODE_H_
