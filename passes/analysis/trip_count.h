// SPDX-License-Identifier: Apache-2.0
// Trip counts of loops in which an integer of the state starts at a constant, the body adds a constant to it, and the
// condition compares it with a constant or with a loop-invariant element. Scalars are followed through copies,
// bitcasts, reshapes and fusions. Loops that rely on integer overflow are not counted.
#ifndef HLOKIT_PASSES_ANALYSIS_TRIP_COUNT_H_
#define HLOKIT_PASSES_ANALYSIS_TRIP_COUNT_H_

#include <cstdint>
#include <optional>

#include "ir/graph/module_fwd.h"

namespace hlokit {

// Returns the value of a scalar integer or pred constant; nullopt for other instructions and elided constants.
std::optional<int64_t> ScalarInteger(Instruction constant);

struct CountedLoop {
  int64_t index;  // of the state tuple
  int64_t start;
  int64_t step;
  int64_t trip_count;
};

// Returns nullopt if the instruction is not a while loop of this form.
std::optional<CountedLoop> CountLoop(Instruction loop);

// Returns the trip count by CountLoop, or else the one in backend_config, {"known_trip_count":{"n":"8"}}.
std::optional<int64_t> TripCount(Instruction loop);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_TRIP_COUNT_H_
