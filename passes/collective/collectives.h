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

// Merges independent all-reduces (all-gathers, reduce-scatters, collective-permutes) with the same groups or pairs into
// one with several operands. All-reduces and reduce-scatters must have the same reduction.
absl::StatusOr<CombineCounts> CombineCollectives(Module& module, Opcode opcode, const CombineLimits& limits);

// Rewrites all-reduce(all-reduce(x, groups a), groups b) into one all-reduce if each group of the result has each
// device once. Returns the number of rewrites.
absl::StatusOr<int64_t> FoldAllReduces(Module& module);

// Rewrites add(all-reduce(x), all-reduce(y)) into all-reduce(add(x, y)), where add is the reduction. Floats only if
// `reassociate`, since the order of additions changes. Returns the number of rewrites.
absl::StatusOr<int64_t> ReassociateAllReduces(Module& module, bool reassociate);

// The same for reduce-scatters of the same dimension.
absl::StatusOr<int64_t> ReassociateReduceScatters(Module& module, bool reassociate);

struct AllReduceSimplifierCounts {
  int64_t alone = 0;    // collectives of groups of one device
  int64_t uniform = 0;  // all-reduces of values that are equal on all devices of a group
};

// Replaces collectives in groups of one device by their operands, and all-reduces of equal values by the operand or its
// product with the size of the group.
absl::StatusOr<AllReduceSimplifierCounts> SimplifyAllReduces(Module& module);

// Merges all-gathers that do the same with equal values: the same, or behind optimization barriers, tuples and the same
// conversions. Returns the number of those removed.
absl::StatusOr<int64_t> MergeAllGathers(Module& module);

// Replaces collective-permutes of at least `min_bytes` in loop bodies by recv and send, unless their pairs have a
// cycle. Returns their number.
absl::StatusOr<int64_t> DecomposeCollectivePermutes(Module& module, int64_t min_bytes);

// Moves all-reduces whose results a loop only adds up behind the loop. The order of additions changes. Returns their
// number.
absl::StatusOr<int64_t> MoveAllReducesOutOfLoops(Module& module);

// Lets all-gathers, all-to-alls, collective-broadcasts and collective-permutes move data in the narrower of the types
// before and after a conversion, with or without a scale. Returns the number of rewrites.
absl::StatusOr<int64_t> QuantizeCollectives(Module& module);

struct WindowedEinsumOptions {
  int64_t min_bytes;       // of the gathered operand or the scattered result
  int64_t max_group_size;  // devices, and steps
};
struct WindowedEinsumCounts {
  int64_t gathered = 0;
  int64_t scattered = 0;
};

// Divides dots of all-gathers and reduce-scatters of dots into one step for each device of a group, between which
// shards are passed on. The order of additions changes.
absl::StatusOr<WindowedEinsumCounts> MakeWindowedEinsums(Module& module, const WindowedEinsumOptions& options);

// Splits collectives into start and done: all-reduce, all-gather and collective-permute into their own opcodes, others
// into async-start and async-done. Returns their number. `reduce_scatters`: reduce-scatters too.
absl::StatusOr<int64_t> MakeCollectivesAsync(Module& module, bool reduce_scatters);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_
