// SPDX-License-Identifier: Apache-2.0
// A graph apart from what options of the tracer make of it, so that a program that is not in the folder can be seen to
// be missing because of an option: numbers 0, 1 and -1 as constants or parameters, donated buffers, scopes and source
// lines.
#ifndef HLOKIT_TRACER_STEP_GRAPH_KEY_COMPONENTS_H_
#define HLOKIT_TRACER_STEP_GRAPH_KEY_COMPONENTS_H_

#include "interp/runtime/cache/persistent_cache.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

// The form of the slice: the bare graph, and the options under the names of their variables. Two slices of one bare
// graph are equal where all parts are.
runtime::GraphKeyComponents GraphKeyComponentsOf(DeviceState& device, const PendingSubgraph& slice,
                                                 const SubgraphOptions& options);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_GRAPH_KEY_COMPONENTS_H_
