// SPDX-License-Identifier: Apache-2.0
// Where the time of a run goes: the time from the beginning of a step to that of the next one belongs to the
// instruction of the first. So a loop, call or conditional has the time of its own bookkeeping only, and an instruction
// that applies a computation to elements has that of the computation.
#ifndef HLOKIT_INTERP_EXACT_OBSERVERS_INSTRUCTION_PROFILER_H_
#define HLOKIT_INTERP_EXACT_OBSERVERS_INSTRUCTION_PROFILER_H_

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "interp/exact/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class InstructionProfiler : public ExecutionObserver {
 public:
  struct Entry {
    InstructionId instruction;  // by opcode: one of them
    std::string_view name;      // of the instruction, or the opcode
    int64_t runs = 0;           // steps: one for each time it ran, and for each trip of a loop
    int64_t instructions = 1;   // how many of them the entry stands for
    double milliseconds = 0;
  };

  explicit InstructionProfiler(const Module& module) : module_(module), times_(module.instruction_id_bound()) {}

  void OnInstructionBegin(InstructionId instruction) override {
    const Clock::time_point now = Clock::now();
    Add(now);
    current_ = instruction;
    begin_ = now;
  }
  // What observers after this one do with a value is not the step's time.
  absl::Status OnValue(InstructionId /*instruction*/, absl::Span<const std::byte* const> /*values*/,
                       absl::Span<const std::byte* const> /*operands*/) override {
    OnInstructionEnd();
    return absl::OkStatus();
  }
  void OnInstructionEnd() override {
    Add(Clock::now());
    current_ = InstructionId();
  }

  double total_milliseconds() const;
  // Longest first; what took no measurable time stands in the order of the module.
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

#endif  // HLOKIT_INTERP_EXACT_OBSERVERS_INSTRUCTION_PROFILER_H_
