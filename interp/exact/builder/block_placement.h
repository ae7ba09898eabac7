// SPDX-License-Identifier: Apache-2.0
// Plans where the large values of a computation lie in the arena of its program, from their lives.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_BLOCK_PLACEMENT_H_
#define HLOKIT_INTERP_EXACT_BUILDER_BLOCK_PLACEMENT_H_

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

// A value outside of the arena, from step `begin` to the end: a result of the program.
struct OutsideValue {
  int64_t bytes = 0;
  uint32_t begin = 0;
};

// How much the values take.
struct Placement {
  int64_t live_bytes = 0;       // the most that are live at one time
  int64_t planned_bytes = 0;    // the most memory that the arena and the values outside of it take
  bool releases = false;        // the arena gives back what later steps do not need where a value outside begins
  std::vector<int64_t> needed;  // then, by step: the end of what this and later ones need
};

// Places values whose lives overlap side by side, in the order, of several, that takes the least memory: each in the
// smallest gap between those of its time that it fits in. `steps`: of the program. Bytes beyond 2^40 are set to that.
Placement PlaceValues(std::vector<PlacedValue>* values, std::vector<OutsideValue> outside, uint32_t steps);

// Sets the memory of a computation and, if it runs once and is to be placed, the offsets of its slots. Values that
// calls, loops and collectives hold have none: they may live longer than their last use. Requires: the memory of the
// computations that it calls is set.
void AssignMemory(CompiledComputation* computation, bool is_placed);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_BLOCK_PLACEMENT_H_
