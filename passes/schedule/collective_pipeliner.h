// SPDX-License-Identifier: Apache-2.0
// Software pipelining of loop collectives: issues them one iteration earlier or later (forward_collective_pipeliner.h).
//
// A loop over the layers of a model gathers the weights of a layer in that layer's iteration, and its first matmul
// waits for them. A collective whose operands depend only on loop-invariant state and the induction variable can be
// computed one iteration ahead: the loop state gets an element for its result, the first result is computed before the
// loop, and each iteration computes the result of the next while it uses its own (XLA's collective pipeliner, backward
// direction). The result of the last iteration is unused. The computation of the operands is duplicated for the first
// iteration, so only operations that are cheap compared with a collective may move.
#ifndef HLOKIT_PASSES_SCHEDULE_COLLECTIVE_PIPELINER_H_
#define HLOKIT_PASSES_SCHEDULE_COLLECTIVE_PIPELINER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// Backward: one iteration earlier, for loop-invariant operands. Forward: one iteration later, for results that are only
// stored. XLA's names.
enum class PipelineDirection : uint8_t { kBoth, kBackward, kForward };

struct PipelinedCounts {
  int64_t backward = 0;
  int64_t forward = 0;
};

// Returns the number of collectives that were pipelined. A loop qualifies if its trip count is known and at least 2,
// and if the peak memory of the program then stays below `memory_bytes` (0: no limit). Collectives that are pipelined
// already and modules with a schedule do not change. Linear in the module.
absl::StatusOr<PipelinedCounts> PipelineCollectives(Module& module, int64_t memory_bytes,
                                                    PipelineDirection direction = PipelineDirection::kBoth);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_COLLECTIVE_PIPELINER_H_
