// SPDX-License-Identifier: Apache-2.0
// Slices of JSON traces as Perfetto takes them: it counts in nanoseconds and drops a slice that begins within another
// of its track and ends after it.
#ifndef HLOKIT_RUNTIME_OBSERVE_TRACE_LANES_H_
#define HLOKIT_RUNTIME_OBSERVE_TRACE_LANES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hlokit::runtime {

// A slice of a track, in nanoseconds.
struct TraceSlice {
  int64_t start = 0;
  int64_t end = 0;
  size_t event = 0;  // its number on the line
  size_t lane = 0;
};

// Returns the nanosecond that contains a time in picoseconds. Ends are rounded like starts, so that slices which follow
// or contain each other still do.
int64_t NanosecondOf(int64_t picoseconds);

// Returns the microseconds that readers turn into `nanoseconds`, whether they round or truncate a thousandfold.
double TraceMicroseconds(int64_t nanoseconds);

// Sorts the slices of a line by their starts, outer ones first, and gives each the first lane on which it follows or is
// contained in all others; beyond a thousand lanes, the last one. Returns the number of lanes, at least 1.
size_t AssignLanes(std::vector<TraceSlice>* slices);

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_OBSERVE_TRACE_LANES_H_
