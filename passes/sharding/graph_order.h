// SPDX-License-Identifier: Apache-2.0
// An order of computations and instructions that depends on the graph and on names, never on the order of the text.
#ifndef HLOKIT_PASSES_SHARDING_GRAPH_ORDER_H_
#define HLOKIT_PASSES_SHARDING_GRAPH_ORDER_H_

#include <vector>

#include "ir/graph/module.h"

namespace hlokit::sharding {

struct GraphOrder {
  std::vector<Computation> computations;               // callees first, from the entry; then those not reached, by name
  std::vector<std::vector<InstructionId>> post_order;  // by computation: operands first, from the root
  std::vector<uint32_t> position;                      // by instruction, over all computations
};
GraphOrder GraphOrderOf(const Module& module);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_GRAPH_ORDER_H_
