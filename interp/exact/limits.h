// SPDX-License-Identifier: Apache-2.0
// Resource limits of a run. Exceeding a limit is an error that names it, never an abort.
#ifndef HLOKIT_INTERP_EXACT_LIMITS_H_
#define HLOKIT_INTERP_EXACT_LIMITS_H_

#include <cstdint>
#include <limits>

namespace hlokit::interp {

struct Limits {
  int64_t max_bytes = int64_t{16} << 30;                    // of arguments and live values, without constants
  int64_t max_steps = std::numeric_limits<int64_t>::max();  // instructions, including those of called computations
  int64_t max_loop_iterations = std::numeric_limits<int64_t>::max();  // of one while loop
  double max_seconds = std::numeric_limits<double>::infinity();
  int64_t max_call_depth = 1 << 20;  // nesting of calls, loops and conditionals
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_LIMITS_H_
