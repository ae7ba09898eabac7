// SPDX-License-Identifier: Apache-2.0
// How much a run may use. Passing a limit is an error that says which one, never an abort.
#ifndef HLOKIT_INTERP_EXACT_LIMITS_H_
#define HLOKIT_INTERP_EXACT_LIMITS_H_

#include <cstdint>
#include <limits>

namespace hlokit::interp {

struct Limits {
  int64_t max_bytes = int64_t{16} << 30;  // of values alive at one time, arguments and constants not counted
  int64_t max_steps = std::numeric_limits<int64_t>::max();  // instructions, those of called computations included
  int64_t max_loop_iterations = std::numeric_limits<int64_t>::max();  // of one while loop
  double max_seconds = std::numeric_limits<double>::infinity();
  int64_t max_call_depth = 1 << 20;  // of calls, loops and conditionals inside each other
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_LIMITS_H_
