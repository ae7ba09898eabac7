// SPDX-License-Identifier: Apache-2.0
// Transformations of collectives. Modules with a schedule are left alone by all of them.
#ifndef HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_
#define HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

struct CombineLimits {
  int64_t max_bytes;  // operands of the one that is made
  int64_t max_count;  // how many they are
};
struct CombineCounts {
  int64_t merged = 0;
  int64_t made = 0;
};

// Merges all-reduces (all-gathers, reduce-scatters) that do the same among the same devices and do not need one another
// into one with several operands. Reducers are the same if they are the same operation.
absl::StatusOr<CombineCounts> CombineCollectives(Module& module, Opcode opcode, const CombineLimits& limits);

// all-reduce(all-reduce(x, groups a), groups b) becomes one all-reduce if each group of the result meets each device
// once. The number of those.
absl::StatusOr<int64_t> FoldAllReduces(Module& module);

// add(all-reduce(x), all-reduce(y)) becomes all-reduce(add(x, y)), for the operation that the reducer is. Of floats
// only if `reassociate`: the sum is then added up in another order.
absl::StatusOr<int64_t> ReassociateAllReduces(Module& module, bool reassociate);

// Splits collectives into a start and a done: all-reduce, all-gather and collective-permute into their own, the others
// into async-start and async-done.
absl::StatusOr<int64_t> MakeCollectivesAsync(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_COLLECTIVES_H_
