// SPDX-License-Identifier: Apache-2.0
#include "interp/observers/instruction_profiler.h"

#include <algorithm>
#include <array>

namespace hlokit::interp {
namespace {

void SortByTime(std::vector<InstructionProfiler::Entry>* entries) {
  std::stable_sort(entries->begin(), entries->end(),
                   [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; });
}

}  // namespace

std::vector<InstructionProfiler::Entry> InstructionProfiler::ByInstruction() const {
  std::vector<Entry> entries;
  for (size_t i = 0; i < times_.size(); ++i) {
    if (times_[i].runs == 0) continue;
    const InstructionId id(static_cast<uint32_t>(i));
    const double ms = std::chrono::duration<double, std::milli>(times_[i].time).count();
    entries.push_back({id, module_.instruction(id).name(), times_[i].runs, 1, ms});
  }
  SortByTime(&entries);
  return entries;
}

std::vector<InstructionProfiler::Entry> InstructionProfiler::ByOpcode() const {
  std::vector<Entry> entries;
  std::array<size_t, kOpcodeCount> entry_of{};  // plus one
  for (const Entry& e : ByInstruction()) {
    const Instruction instruction = module_.instruction(e.instruction);
    size_t& at = entry_of[static_cast<size_t>(instruction.opcode())];
    if (at == 0) {
      entries.push_back({e.instruction, instruction.opcode_text(), 0, 0, 0});
      at = entries.size();
    }
    Entry& sum = entries[at - 1];
    sum.runs += e.runs;
    ++sum.instructions;
    sum.milliseconds += e.milliseconds;
  }
  SortByTime(&entries);
  return entries;
}

double InstructionProfiler::total_milliseconds() const {
  Clock::duration sum{0};
  for (const Time& t : times_) sum += t.time;
  return std::chrono::duration<double, std::milli>(sum).count();
}

}  // namespace hlokit::interp
