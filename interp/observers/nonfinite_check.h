// SPDX-License-Identifier: Apache-2.0
// Ends a run at the first instruction that produces a NaN or an infinity: its result contains a NaN and no operand
// does, or an infinity and no operand contains either. Parameters, constants, select, slices and the like do not
// produce values.
//
// Of instructions that run in a group only the results are looked at. If one contains a NaN or an infinity, the
// instructions of the group run once more, one by one on the exact engine, on the same values.
#ifndef HLOKIT_INTERP_OBSERVERS_NONFINITE_CHECK_H_
#define HLOKIT_INTERP_OBSERVERS_NONFINITE_CHECK_H_

#include <string>
#include <vector>

#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class NonfiniteCheck : public ExecutionObserver {
 public:
  // Adds the instructions to observe, with their operands.
  static void AddTo(const Module& module, ObservationRequest* request);

  explicit NonfiniteCheck(const Module& module);

  // The error names the element and the operand values.
  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;
  absl::Status OnGroup(const ObservedGroup& group, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands, InstructionId* at) override;
  bool NeedsValue(InstructionId instruction, absl::Span<const std::byte* const> elements) override;
  bool NeedsGroup(const ObservedGroup& group, absl::Span<const std::byte* const> elements) override;

 private:
  const Module& module_;
  const std::vector<bool> shown_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_OBSERVERS_NONFINITE_CHECK_H_
