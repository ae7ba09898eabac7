// SPDX-License-Identifier: Apache-2.0
// Orders in which modules and computations are walked. All iterative; all deterministic.
#ifndef HLOKIT_IR_GRAPH_TRAVERSAL_H_
#define HLOKIT_IR_GRAPH_TRAVERSAL_H_

#include <vector>

#include "ir/graph/module.h"
#include "ir/graph/potential_callers.h"

namespace hlokit {

// Operands before users, control predecessors before successors: XLA's order. From each instruction without users, in
// the order of the computation, a depth-first walk that visits control predecessors last to first, then operands first
// to last. Instructions on a cycle (only in modules that do not verify) are visited once all the same.
std::vector<InstructionId> PostOrder(Computation computation);

// Callees before callers. Computations that call in a circle (only in modules that do not verify) come once all the
// same.
std::vector<ComputationId> ComputationPostOrder(const Module& module);
std::vector<ComputationId> ComputationPostOrder(const Module& module, const PotentialCallers& callers);

// The order in which XLA prints computations. XLA's walk can put a caller before what it calls, and such text cannot be
// read: there, callees come first all the same. It may also depend on the order in which computations were read, so
// that XLA prints its own text back in another order; `stable_computation_order` gives one that is printed back as it
// is.
std::vector<ComputationId> ComputationTextOrder(const Module& module, bool stable_computation_order);

// True if the computation is the body of a fusion; of an async-start.
struct ComputationRoles {
  std::vector<uint8_t> fusion;  // by ComputationId
  std::vector<uint8_t> async;
};
ComputationRoles RolesOf(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_TRAVERSAL_H_
