// SPDX-License-Identifier: Apache-2.0
// Transformations of collectives. None of them changes modules with a schedule.
#ifndef HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_
#define HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

struct CombineLimits {
  int64_t max_bytes;  // operands of the merged collective
  int64_t max_count;  // number of merged collectives
};
struct CombineCounts {
  int64_t merged = 0;
  int64_t made = 0;
};

// Merges independent all-reduces (all-gathers, reduce-scatters) with the same groups into one with several operands.
// All-reduces and reduce-scatters must have the same reduction.
absl::StatusOr<CombineCounts> CombineCollectives(Module& module, Opcode opcode, const CombineLimits& limits);

// Rewrites all-reduce(all-reduce(x, groups a), groups b) into one all-reduce if each group of the result has each
// device once. Returns the number of rewrites.
absl::StatusOr<int64_t> FoldAllReduces(Module& module);

// Rewrites add(all-reduce(x), all-reduce(y)) into all-reduce(add(x, y)), where add is the reduction. Floats only if
// `reassociate`, since the order of additions changes. Returns the number of rewrites.
absl::StatusOr<int64_t> ReassociateAllReduces(Module& module, bool reassociate);

// Splits collectives into start and done: all-reduce, all-gather and collective-permute into their own opcodes, others
// into async-start and async-done. Returns their number.
absl::StatusOr<int64_t> MakeCollectivesAsync(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_
