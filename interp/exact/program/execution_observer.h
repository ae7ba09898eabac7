// SPDX-License-Identifier: Apache-2.0
// Observes a run: profiles, value traces, searches for the first bad value.
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_EXECUTION_OBSERVER_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_EXECUTION_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Selects the values that a run shows. Instructions applied only to the elements of a reduce, sort, scatter, ... are
// never shown.
struct ObservationRequest {
  std::vector<bool> instructions;  // by instruction id; may be shorter than the module
  bool operands = false;           // also show operand values
  bool computed_only = false;      // omit results that are a view or part of earlier values
};

class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  // `instruction` (or an iteration of it, for a loop) is about to run; earlier instructions have ended.
  virtual void OnInstructionBegin(InstructionId /*instruction*/) {}
  // The program has ended, or a device waits for others.
  virtual void OnInstructionEnd() {}
  // `instruction` has run. `values`: array and token leaves of its value, tuples flattened, each dense and row-major as
  // in a Literal. `operands`: those of all its operands, if requested. An error ends the run.
  virtual absl::Status OnValue(InstructionId /*instruction*/, absl::Span<const std::byte* const> /*values*/,
                               absl::Span<const std::byte* const> /*operands*/) {
    return absl::OkStatus();
  }
};

// Progress of a run.
struct RunProgress {
  int64_t steps = 0;            // instructions run, including those of called computations
  int64_t loop_iterations = 0;  // of all loops
  int64_t bytes = 0;            // of live values
  double seconds = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_EXECUTION_OBSERVER_H_
