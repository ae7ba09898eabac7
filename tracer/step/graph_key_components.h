// SPDX-License-Identifier: Apache-2.0
// Separates a graph from the effect of tracer options, so that a miss in the persistent compilation cache can be
// attributed to an option: numbers 0, 1 and -1 as constants or parameters, donated buffers, scopes and source lines.
#ifndef HLOKIT_TRACER_STEP_GRAPH_KEY_COMPONENTS_H_
#define HLOKIT_TRACER_STEP_GRAPH_KEY_COMPONENTS_H_

#include "io/cache/persistent_cache.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

// Returns the components of the subgraph's key: the canonical graph, and the options under the names of their
// variables. Subgraphs with the same canonical graph are equal if all components are.
runtime::GraphKeyComponents GraphKeyComponentsOf(DeviceState& device, const PendingSubgraph& slice,
                                                 const SubgraphOptions& options);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_GRAPH_KEY_COMPONENTS_H_
