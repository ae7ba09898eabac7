// SPDX-License-Identifier: Apache-2.0
// How often a loop runs its body, where that can be read off the program: an integer of the state starts at a constant,
// the body adds a constant to it, and the condition compares it with a constant or with a part of the state that the
// body passes on unchanged. Scalars are followed through copies, bitcasts, reshapes and fusions. Loops that run until
// the integer wraps around are not counted.
#ifndef HLOKIT_PASSES_ANALYSIS_TRIP_COUNT_H_
#define HLOKIT_PASSES_ANALYSIS_TRIP_COUNT_H_

#include <cstdint>
#include <optional>

#include "ir/graph/module.h"

namespace hlokit {

// The value of a scalar integer or pred constant; nullopt for other instructions and elided constants.
std::optional<int64_t> ScalarInteger(Instruction constant);

struct CountedLoop {
  int64_t index;  // of the state tuple
  int64_t start;
  int64_t step;
  int64_t trips;
};

// nullopt if the instruction is no while loop or its trips cannot be counted so.
std::optional<CountedLoop> CountLoop(Instruction loop);

// The same, or what the compiler that wrote the module says in the backend_config, {"known_trip_count":{"n":"8"}}.
std::optional<int64_t> TripCount(Instruction loop);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_TRIP_COUNT_H_
