// SPDX-License-Identifier: Apache-2.0
// Dynamic dimensions of a program's parameters and results. Arrays of a run have the sizes of their bounds; the size of
// each dynamic dimension is an argument or a result of its own, an s32 behind the others, which buffers carry along.
#ifndef HLOKIT_INTERP_DYNAMIC_EXPLICIT_SIZES_H_
#define HLOKIT_INTERP_DYNAMIC_EXPLICIT_SIZES_H_

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Gives the entry, for each dynamic dimension of each leaf of its parameters in turn, a parameter with its size, and
// for each of its result's leaves an element of a tuple, and makes all arrays of the module static. Fusions with
// dynamic arrays are dissolved, and with them all others. Returns false, and leaves the module, if no array is dynamic.
// An error names what cannot be made static; its payload is that of dynamic-padder.
absl::StatusOr<bool> MakeSizesExplicit(Module* module);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_DYNAMIC_EXPLICIT_SIZES_H_
