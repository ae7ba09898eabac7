// SPDX-License-Identifier: Apache-2.0
// Profiles a run by instruction: the time between the starts of two consecutive instructions is attributed to the
// first. Loops, calls and conditionals have only the time of their own bookkeeping; an instruction that applies a
// computation to elements includes it.
#ifndef HLOKIT_INTERP_OBSERVERS_INSTRUCTION_PROFILER_H_
#define HLOKIT_INTERP_OBSERVERS_INSTRUCTION_PROFILER_H_

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class InstructionProfiler : public ExecutionObserver {
 public:
  struct Entry {
    InstructionId instruction;  // by opcode: one of them
    std::string_view name;      // of the instruction, or the opcode
    int64_t runs = 0;           // executions, including each iteration of a loop
    int64_t instructions = 1;   // number of instructions in the entry
    double milliseconds = 0;
  };

  explicit InstructionProfiler(const Module& module) : module_(module), times_(module.instruction_id_bound()) {}

  void OnInstructionBegin(InstructionId instruction) override {
    const Clock::time_point now = Clock::now();
    Add(now);
    current_ = instruction;
    begin_ = now;
  }
  // Excludes the time of later observers.
  absl::Status OnValue(InstructionId /*instruction*/, absl::Span<const std::byte* const> /*values*/,
                       absl::Span<const std::byte* const> /*operands*/) override {
    OnInstructionEnd();
    return absl::OkStatus();
  }
  bool NeedsValue(InstructionId /*instruction*/, absl::Span<const std::byte* const> /*elements*/) override {
    OnInstructionEnd();
    return false;
  }
  bool NeedsGroup(const ObservedGroup& /*group*/, absl::Span<const std::byte* const> /*elements*/) override {
    OnInstructionEnd();
    return false;
  }
  void OnInstructionEnd() override {
    Add(Clock::now());
    current_ = InstructionId();
  }

  // Forgets earlier runs.
  void Clear() { times_.assign(times_.size(), Time()); }

  double total_milliseconds() const;
  // Returns the entries, longest first; those without measurable time in module order.
  std::vector<Entry> ByInstruction() const;
  std::vector<Entry> ByOpcode() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Time {
    int64_t runs = 0;
    Clock::duration time{0};
  };

  void Add(Clock::time_point now) {
    if (!current_.valid()) return;
    ++times_[current_.value].runs;
    times_[current_.value].time += now - begin_;
  }

  const Module& module_;
  std::vector<Time> times_;  // by instruction id
  InstructionId current_;
  Clock::time_point begin_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_OBSERVERS_INSTRUCTION_PROFILER_H_
