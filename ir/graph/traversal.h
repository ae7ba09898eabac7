// SPDX-License-Identifier: Apache-2.0
// Traversal orders of modules and computations. All iterative and deterministic.
#ifndef HLOKIT_IR_GRAPH_TRAVERSAL_H_
#define HLOKIT_IR_GRAPH_TRAVERSAL_H_

#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/graph/potential_callers.h"

namespace hlokit {

// Returns XLA's post-order: operands before users, control predecessors before successors. From each instruction
// without users, in the order of the computation, a depth-first traversal that visits control predecessors last to
// first, then operands first to last. Instructions on a cycle, which only invalid modules have, are visited once.
std::vector<InstructionId> PostOrder(Computation computation);

// Returns callees before callers. Computations on a call-graph cycle, which only invalid modules have, are visited
// once.
std::vector<ComputationId> ComputationPostOrder(const Module& module);
std::vector<ComputationId> ComputationPostOrder(const Module& module, const PotentialCallers& callers);

// Returns the computations reachable from `roots`, these included, callees before callers.
std::vector<ComputationId> ReachableComputations(const Module& module, absl::Span<const ComputationId> roots);

// Returns the order in which XLA prints computations. XLA's traversal can put a caller before its callee, and such text
// does not parse: this function puts callees first. XLA's order may also depend on the order in which computations were
// parsed, so that it changes in a round trip; with `stable_computation_order` it does not.
std::vector<ComputationId> ComputationTextOrder(const Module& module, bool stable_computation_order);
// The order in which the module lists them, that of the file it was read from, if callees come first in it; otherwise
// ComputationTextOrder.
std::vector<ComputationId> ComputationListedOrder(const Module& module);

// The computations that are bodies of fusions, and of async-starts.
struct ComputationRoles {
  std::vector<uint8_t> fusion;  // by ComputationId
  std::vector<uint8_t> async;
};
ComputationRoles RolesOf(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_TRAVERSAL_H_
