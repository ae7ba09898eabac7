// SPDX-License-Identifier: Apache-2.0
// Memory in the reports: live arrays at the peak by operation, scope and source line, heap fragmentation, vector
// memory, operations, and changes that lower the peak.
#ifndef HLOKIT_SIMULATOR_REPORT_MEMORY_REPORT_H_
#define HLOKIT_SIMULATOR_REPORT_MEMORY_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/core/text_writer.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/report/report.h"

namespace hlokit::tpu {

// Bytes at the peak that share a scope or source line.
struct LiveBytesGroup {
  std::string name;  // "" for arrays without one
  int64_t bytes = 0;
  int64_t arrays = 0;
};
std::vector<LiveBytesGroup> LiveByScope(const Module& module, const MemoryPlan& memory);
std::vector<LiveBytesGroup> LiveBySource(const Module& module, const MemoryPlan& memory);

// Prints the memory section. `details`: lists live arrays at the peak also if the program fits, and changes that lower
// the peak, which takes a simulation each.
void PrintMemory(const ReportInput& input, bool details, TextWriter* out);
// Returns the value of the key `memory`.
nlohmann::ordered_json MemoryJson(const ReportInput& input);
// Returns the value of the key `memory.ways_to_fit`: the changes of MemoryAdvices.
nlohmann::ordered_json WaysToFitJson(const ReportInput& input);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_MEMORY_REPORT_H_
