// SPDX-License-Identifier: Apache-2.0
// Ends a run at the first instruction that makes a NaN or an infinity: one whose result holds a NaN while none of its
// operands does, or an infinity while its operands hold neither. Parameters and constants do not make what they hold,
// and select, slices and the like only pass it on.
#ifndef HLOKIT_INTERP_EXACT_OBSERVERS_NONFINITE_CHECK_H_
#define HLOKIT_INTERP_EXACT_OBSERVERS_NONFINITE_CHECK_H_

#include <string>
#include <vector>

#include "interp/exact/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class NonfiniteCheck : public ExecutionObserver {
 public:
  // The instructions it has to be shown, with their operands.
  static std::vector<bool> InstructionsOf(const Module& module);

  explicit NonfiniteCheck(const Module& module) : module_(module), shown_(InstructionsOf(module)) {}

  // The error says which element is what, and what the operands hold.
  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;

 private:
  const Module& module_;
  const std::vector<bool> shown_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_OBSERVERS_NONFINITE_CHECK_H_
