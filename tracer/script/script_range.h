// SPDX-License-Identifier: Apache-2.0
// The numbers of a loop of a script.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_RANGE_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_RANGE_H_

#include <cstdint>
#include <limits>
#include <utility>

#include "tracer/script/script_value.h"

namespace hlokit::lazy::script {

// first, first + step, ... before stop, as Python's range. Requires: step is not 0.
class Range : public Object {
 public:
  Range(int64_t first, int64_t stop, int64_t step) : Object("a range"), first(first), stop(stop), step(step) {}

  const int64_t first, stop, step;
};

// The position of a loop in a range or a list.
class LoopPosition : public Object {
 public:
  explicit LoopPosition(Value of) : Object("a loop"), of_(std::move(of)) {
    if (const auto range = of_.object<Range>()) next_ = range->first;
  }

  // Returns false at the end, or sets `value` to the next member.
  bool Next(Value* value) {
    if (const List* list = of_.list()) {
      if (next_ >= static_cast<int64_t>(list->values.size())) return false;
      *value = list->values[static_cast<size_t>(next_++)];
      return true;
    }
    const auto range = of_.object<Range>();
    if (done_ || (range->step > 0 ? next_ >= range->stop : next_ <= range->stop)) return false;
    *value = Value(next_);
    done_ = __builtin_add_overflow(next_, range->step, &next_);
    return true;
  }

 private:
  const Value of_;
  int64_t next_ = 0;
  bool done_ = false;
};

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_RANGE_H_
