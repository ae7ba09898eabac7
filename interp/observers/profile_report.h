// SPDX-License-Identifier: Apache-2.0
// A profile of a run by instruction and by opcode, as text and as JSON.
#ifndef HLOKIT_INTERP_OBSERVERS_PROFILE_REPORT_H_
#define HLOKIT_INTERP_OBSERVERS_PROFILE_REPORT_H_

#include <cstdint>
#include <map>
#include <vector>

#include "interp/interface/engine.h"
#include "interp/observers/instruction_profiler.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

struct RunTimes {
  double compile_seconds = 0;
  std::vector<double> run_seconds;  // of each run
};

struct ProfileReport {
  const Module& module;
  const InstructionProfiler& profiler;  // of the last run
  const RunStatistics& statistics;      // as well
  // Of an engine whose loops have the name of their last instruction: members by the id of the last one.
  std::map<uint32_t, std::vector<InstructionId>> loops;
};

// Prints tables of the opcodes and instructions that took most time.
void PrintProfile(const ProfileReport& report, TextWriter* out);
// Writes an object with all of them.
void WriteProfileJson(const ProfileReport& report, const RunTimes& times, TextWriter* out);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_OBSERVERS_PROFILE_REPORT_H_
