// SPDX-License-Identifier: Apache-2.0
// Copies where two values that must be different would share memory.
#ifndef HLOKIT_PASSES_SCHEDULE_COPY_INSERTION_H_
#define HLOKIT_PASSES_SCHEDULE_COPY_INSERTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

// Adds copies so that
//   - each array of a loop's state can stay in one place: what the loop starts with is read by nothing else, and its
//   body
//     gives back no array of another place, no constant, and none twice;
//   - what an update in place (dynamic-update-slice, scatter) writes over is read by nothing else and is no constant or
//     parameter;
//   - the results of the entry and of branches are no parameters or constants, and none is there twice. Entry
//   parameters
//     whose memory the header gives to that very result are.
// Conservative: other readers count even if they come first. States that hold tuples within tuples keep those as they
// are. Returns the number of copies; a second run adds none. Modules with a schedule are left alone.
absl::StatusOr<int64_t> InsertCopies(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_COPY_INSERTION_H_
