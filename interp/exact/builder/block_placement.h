// SPDX-License-Identifier: Apache-2.0
// Plans where the large values of a computation lie in the arena of its program, from their lives.
#ifndef HLOKIT_INTERP_EXACT_BLOCK_PLACEMENT_H_
#define HLOKIT_INTERP_EXACT_BLOCK_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "interp/exact/program/program.h"

namespace hlokit::interp {

// A value that takes `bytes` bytes from step `begin` to step `end`, both included.
struct PlacedValue {
  int64_t bytes = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  int64_t offset = 0;  // set by PlaceValues
};

// Places values whose lives overlap side by side: the largest first, each in the smallest gap between those of its time
// that it fits in. Returns the end of the last one.
int64_t PlaceValues(std::vector<PlacedValue>* values);

// Sets the offsets of the slots of a computation that runs once. Values that calls, loops and collectives hold have
// none: they may live longer than their last use.
void PlanPlacement(CompiledComputation* computation);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BLOCK_PLACEMENT_H_
