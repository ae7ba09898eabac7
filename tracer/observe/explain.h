// SPDX-License-Identifier: Apache-2.0
// Explains compilations: the nearest known program and the first difference, with source lines.
#ifndef HLOKIT_TRACER_OBSERVE_EXPLAIN_H_
#define HLOKIT_TRACER_OBSERVE_EXPLAIN_H_

#include <string>

#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

struct Explanation {
  std::string text;        // "compiling graph ...: nearest is ..., first difference: ..."
  std::string difference;  // the last part; "" for the first graph
};

// Stores in `compiled` the data for later explanations, and explains how the graph differs from those in the cache.
// Requires: `compiled` is not yet in the cache. `other_setting`: the settings that differ if the persistent compilation
// cache has this graph under others.
Explanation ExplainCompilation(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options,
                               const std::string& other_setting, CompiledGraph* compiled);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OBSERVE_EXPLAIN_H_
