// SPDX-License-Identifier: Apache-2.0
// Observes a run: profiles, value traces, searches for the first bad value.
#ifndef HLOKIT_INTERP_INTERFACE_EXECUTION_OBSERVER_H_
#define HLOKIT_INTERP_INTERFACE_EXECUTION_OBSERVER_H_

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
  // Instructions that are shown in the same way unless they run in a group (kernel_provider.h): then the group is.
  std::vector<bool> grouped;
  bool operands = false;       // also show operand values
  bool computed_only = false;  // omit results that are a view or part of earlier values

  // Returns true for an instruction that is shown, by itself or with its group.
  bool Shows(InstructionId id) const { return IsSet(instructions, id) || IsSet(grouped, id); }
  static bool IsSet(const std::vector<bool>& set, InstructionId id) { return id.value < set.size() && set[id.value]; }
};

// Instructions that run as one kernel, and only leave the values that others read.
struct ObservedGroup {
  std::vector<Instruction> members;   // operands before users
  std::vector<Instruction> results;   // those of them that have values
  std::vector<Instruction> operands;  // instructions that are not members, whose values members read
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
  // Asked before OnValue: `elements` are those of the same leaves, in any order. False: the values, which may take
  // copies, are not needed.
  virtual bool NeedsValue(InstructionId /*instruction*/, absl::Span<const std::byte* const> /*elements*/) {
    return true;
  }

  // The same for a group: `values` are the leaves of its results, `operands` those of its operands. `at`, a member, may
  // be set to where the error is; it is the last one.
  virtual absl::Status OnGroup(const ObservedGroup& /*group*/, absl::Span<const std::byte* const> /*values*/,
                               absl::Span<const std::byte* const> /*operands*/, InstructionId* /*at*/) {
    return absl::OkStatus();
  }
  virtual bool NeedsGroup(const ObservedGroup& /*group*/, absl::Span<const std::byte* const> /*elements*/) {
    return true;
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

#endif  // HLOKIT_INTERP_INTERFACE_EXECUTION_OBSERVER_H_
