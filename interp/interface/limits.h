// SPDX-License-Identifier: Apache-2.0
// Resource limits of a run. Exceeding a limit is an error that names it, never an abort.
#ifndef HLOKIT_INTERP_INTERFACE_LIMITS_H_
#define HLOKIT_INTERP_INTERFACE_LIMITS_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

struct Limits {
  int64_t max_bytes = int64_t{16} << 30;                    // of arguments and live values, without constants
  std::string_view max_bytes_flag = "--max-bytes";          // that sets it, for messages
  int64_t max_steps = std::numeric_limits<int64_t>::max();  // instructions, including those of called computations
  int64_t max_loop_iterations = std::numeric_limits<int64_t>::max();  // of one while loop
  double max_seconds = std::numeric_limits<double>::infinity();       // of the run, or since `begin`
  std::string_view max_seconds_flag = "--max-seconds";                // that sets it, for messages
  std::optional<std::chrono::steady_clock::time_point> begin;         // of work before the run that counts too
  int64_t max_call_depth = 1 << 20;                                   // nesting of calls, loops and conditionals

  // Returns true if a run that began at `start` is out of time.
  bool IsOutOfTime(std::chrono::steady_clock::time_point start) const {
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - begin.value_or(start);
    return used.count() > max_seconds;
  }
  // Returns "the limit is 17179869184 bytes (--max-bytes)".
  std::string BytesText() const { return StrCat("the limit is ", max_bytes, " bytes (", max_bytes_flag, ")"); }
  // Returns the error of `work`, "the run", that is out of time.
  std::string OutOfTimeMessage(std::string_view work) const {
    return StrCat(work, " exceeded the time limit of ", FormatDouble(max_seconds, 6), " s (", max_seconds_flag, ")");
  }
};

// What the values of a program take, arguments apart, as far as that is known before a run: exactly, where no loop or
// call holds values.
struct PlannedMemory {
  int64_t live_bytes = 0;     // the most that are live at one time
  int64_t planned_bytes = 0;  // the most that their places take
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_INTERFACE_LIMITS_H_
