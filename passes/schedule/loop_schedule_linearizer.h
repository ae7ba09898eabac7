// SPDX-License-Identifier: Apache-2.0
// Control edges in loop bodies that save copies of the state.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_SCHEDULE_LINEARIZER_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_SCHEDULE_LINEARIZER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

// Lets the instructions of a loop body that read an array of the state run before the one that computes its value for
// the next iteration, by control edges, so that the new value can take the buffer of the old one. Where these orders
// contradict each other, some edges are left out. Bodies with asynchronous transfers between devices stay, since the
// edges would serialize them. Returns the number of edges.
absl::StatusOr<int64_t> LinearizeLoops(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_SCHEDULE_LINEARIZER_H_
