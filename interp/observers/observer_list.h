// SPDX-License-Identifier: Apache-2.0
// Forwards events to several observers of one run.
#ifndef HLOKIT_INTERP_OBSERVERS_OBSERVER_LIST_H_
#define HLOKIT_INTERP_OBSERVERS_OBSERVER_LIST_H_

#include <vector>

#include "interp/interface/execution_observer.h"

namespace hlokit::interp {

class ObserverList : public ExecutionObserver {
 public:
  // Adds an observer, which is borrowed. Observers receive events in this order; later ones do not see an event that
  // failed.
  void Add(ExecutionObserver* observer) { observers_.push_back(observer); }
  bool empty() const { return observers_.empty(); }

  void OnInstructionBegin(InstructionId instruction) override {
    for (ExecutionObserver* o : observers_) o->OnInstructionBegin(instruction);
  }
  void OnInstructionEnd() override {
    for (ExecutionObserver* o : observers_) o->OnInstructionEnd();
  }
  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override {
    for (ExecutionObserver* o : observers_) {
      if (absl::Status status = o->OnValue(instruction, values, operands); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  bool NeedsValue(InstructionId instruction, absl::Span<const std::byte* const> elements) override {
    bool needed = false;
    for (ExecutionObserver* o : observers_) needed = o->NeedsValue(instruction, elements) || needed;
    return needed;
  }
  absl::Status OnGroup(const ObservedGroup& group, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands, InstructionId* at) override {
    for (ExecutionObserver* o : observers_) {
      if (absl::Status status = o->OnGroup(group, values, operands, at); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  bool NeedsGroup(const ObservedGroup& group, absl::Span<const std::byte* const> elements) override {
    bool needed = false;
    for (ExecutionObserver* o : observers_) needed = o->NeedsGroup(group, elements) || needed;
    return needed;
  }

 private:
  std::vector<ExecutionObserver*> observers_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_OBSERVERS_OBSERVER_LIST_H_
