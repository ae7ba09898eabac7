// SPDX-License-Identifier: Apache-2.0
// Appends every executed graph to a file, like XLA_SAVE_TENSORS_FILE.
#ifndef HLOKIT_TRACER_OBSERVE_SAVE_GRAPHS_H_
#define HLOKIT_TRACER_OBSERVE_SAVE_GRAPHS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

// Appends `text` to a file; creates the file if necessary.
absl::Status AppendToFile(const std::string& path, std::string_view text);

// Appends one entry to `path`: frames, hashes of the roots, the graph in `format` (text, dot, hlo), its hash.
absl::Status SaveGraph(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options,
                       const std::string& path, const std::string& format);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OBSERVE_SAVE_GRAPHS_H_
