// SPDX-License-Identifier: Apache-2.0
// Sees a run as it goes: profiles, traces, searches for the first bad value.
#ifndef HLOKIT_INTERP_EXACT_EXECUTION_OBSERVER_H_
#define HLOKIT_INTERP_EXACT_EXECUTION_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Which values a run shows, and how. Instructions that only the elements of a reduce, sort, scatter, ... go through are
// never shown.
struct ObservationRequest {
  std::vector<bool> instructions;  // by instruction id; may be shorter than the module
  bool operands = false;           // show their operands' values too
  bool computed_only = false;      // leave out results that are nothing but a view or a part of values shown before
};

class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  // `instruction` (or a trip of it, for a loop) is about to run; what ran before it has ended.
  virtual void OnInstructionBegin(InstructionId /*instruction*/) {}
  // The program has ended, or a device of several waits for others.
  virtual void OnInstructionEnd() {}
  // `instruction` has run. `values` are the array and token leaves of its value, tuples flattened, each dense and
  // row-major as in a Literal; `operands` those of all its operands in turn, if the ObservationRequest asks for them.
  // An error ends the run.
  virtual absl::Status OnValue(InstructionId /*instruction*/, absl::Span<const std::byte* const> /*values*/,
                               absl::Span<const std::byte* const> /*operands*/) {
    return absl::OkStatus();
  }
};

// How far a run is.
struct RunProgress {
  int64_t steps = 0;       // instructions run, those of called computations included
  int64_t loop_trips = 0;  // of all loops
  int64_t bytes = 0;       // of values alive
  double seconds = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_EXECUTION_OBSERVER_H_
