// SPDX-License-Identifier: Apache-2.0
// Several observers of one run.
#ifndef HLOKIT_INTERP_EXACT_OBSERVERS_OBSERVER_LIST_H_
#define HLOKIT_INTERP_EXACT_OBSERVERS_OBSERVER_LIST_H_

#include <vector>

#include "interp/exact/step_observer.h"

namespace hlokit::interp {

class ObserverList : public StepObserver {
 public:
  // Borrowed. They see events in the order in which they were added; an error of one is not shown to those after it.
  void Add(StepObserver* observer) { observers_.push_back(observer); }
  bool empty() const { return observers_.empty(); }

  void Begin(InstructionId instruction) override {
    for (StepObserver* o : observers_) o->Begin(instruction);
  }
  void End() override {
    for (StepObserver* o : observers_) o->End();
  }
  absl::Status Show(InstructionId instruction, absl::Span<const std::byte* const> values,
                    absl::Span<const std::byte* const> operands) override {
    for (StepObserver* o : observers_) {
      if (absl::Status status = o->Show(instruction, values, operands); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<StepObserver*> observers_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_OBSERVERS_OBSERVER_LIST_H_
