// SPDX-License-Identifier: Apache-2.0
// Shows an observer of a program the run of the same program with other instructions among its own (SizedProgram).
#ifndef HLOKIT_INTERP_DYNAMIC_ORIGINAL_OBSERVER_H_
#define HLOKIT_INTERP_DYNAMIC_ORIGINAL_OBSERVER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Requests the values of groups alone: members of groups are not known to the observer.
ObservationRequest WithoutGroups(ObservationRequest request);

class OriginalObserver : public ExecutionObserver {
 public:
  // The modules and the observer must outlive it. Instructions of `run` whose ids `original` has are its own, with
  // further leaves at the end of their values, or with other operands.
  OriginalObserver(const Module& original, const Module& run, ExecutionObserver* observer)
      : original_(original), run_(run), observer_(*observer) {}

  void OnInstructionBegin(InstructionId instruction) override;
  void OnInstructionEnd() override { observer_.OnInstructionEnd(); }
  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;
  bool NeedsValue(InstructionId instruction, absl::Span<const std::byte* const> elements) override;

 private:
  bool IsKnown(InstructionId id) const {
    return id.value < original_.instruction_id_bound() && original_.record(id).parent.valid();
  }
  // Returns true if the observer takes these values for those of the instruction.
  bool Shows(InstructionId id, size_t values) const;
  size_t OwnLeaves(InstructionId id) const { return LeafCount(original_.instruction(id).shape()); }
  static size_t LeafCount(Shape shape);
  static size_t OperandLeaves(Instruction instruction);

  const Module& original_;
  const Module& run_;
  ExecutionObserver& observer_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_DYNAMIC_ORIGINAL_OBSERVER_H_
