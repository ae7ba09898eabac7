// SPDX-License-Identifier: Apache-2.0
// Why a graph was compiled: the known program that is nearest to it and the first difference, with source lines.
#ifndef HLOKIT_TRACER_OBSERVE_EXPLAIN_H_
#define HLOKIT_TRACER_OBSERVE_EXPLAIN_H_

#include <string>

#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

// Notes in `compiled` what later explanations need, and tells the tracer how the graph differs from those in the cache,
// of which `compiled` is not yet one. `other_setting`: if the folder of programs has this graph under other settings,
// those that differ.
void ExplainCompilation(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options,
                        const std::string& other_setting, CompiledGraph* compiled);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OBSERVE_EXPLAIN_H_
