// SPDX-License-Identifier: Apache-2.0
// Collectives of a loop's body that can be issued a trip ahead, or a trip later (forward_collective_pipeliner.h).
//
// A loop over the layers of a model gathers the weights of a layer in that layer's trip, and its first product waits
// for them. What depends only on what the loop passes on unchanged and on the number of the trip can be had a trip
// before: the state of the loop gets a place for the result, the first is made in front of the loop, and each trip
// makes the one of the next while it works with the one it was given (after XLA's collective pipeliner, in its backward
// direction). The last trip makes one that nobody reads. What it is computed from is made twice in one trip of them
// all: only what costs little beside a collective may be.
#ifndef HLOKIT_PASSES_SCHEDULE_COLLECTIVE_PIPELINER_H_
#define HLOKIT_PASSES_SCHEDULE_COLLECTIVE_PIPELINER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

// Backward: an iteration ahead, for loop-invariant operands. Forward: an iteration later, for results that are only
// stored. XLA's names.
enum class PipelineDirection : uint8_t { kBoth, kBackward, kForward };

struct PipelinedCounts {
  int64_t backward = 0;
  int64_t forward = 0;
};

// Gives the number of collectives that are issued in other trips from now on: those of loops whose trips are known and
// at least two, as long as the program's peak then stays below `memory_bytes` (zero: no limit). Those that already are
// stay as they are, and so does a module with a schedule. Linear in the module.
absl::StatusOr<PipelinedCounts> PipelineCollectives(Module& module, int64_t memory_bytes,
                                                    PipelineDirection direction = PipelineDirection::kBoth);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_COLLECTIVE_PIPELINER_H_
