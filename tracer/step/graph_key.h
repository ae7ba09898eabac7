// SPDX-License-Identifier: Apache-2.0
// Keys of graphs: in the memory of a process, in the persistent compilation cache, and as a digest for users.
#ifndef HLOKIT_TRACER_STEP_GRAPH_KEY_H_
#define HLOKIT_TRACER_STEP_GRAPH_KEY_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "io/cache/persistent_cache.h"
#include "ir/digest/digest.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

// Returns the key in memory: the graph as words, in device.key_words(). Scopes and source lines are not part of it: a
// program keeps those of the graph that it was compiled from.
absl::Span<const uint32_t> KeyOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options);
// Returns the subgraph as bytes that do not depend on the process; the function below returns their digest.
std::string ContentsOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options);
Digest HashOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options);
// Returns the key in the persistent compilation cache: the contents, in debug mode with scopes and source lines, and
// each setting of compilation under the name of its variable or flag.
runtime::CompilationCacheKey CompilationCacheKeyOf(DeviceState& device, const PendingSubgraph& slice,
                                                   const SubgraphOptions& options);
}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_GRAPH_KEY_H_
