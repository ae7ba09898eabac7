// SPDX-License-Identifier: Apache-2.0
// Memory as the reports show it: what is alive at the peak by operation, scope and source
// line, how much of the heap is lost between blocks, vector memory, and what to change where it does not fit.
#ifndef HLOKIT_INTERP_TPU_REPORT_MEMORY_REPORT_H_
#define HLOKIT_INTERP_TPU_REPORT_MEMORY_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "interp/tpu/memory/memory_plan.h"
#include "interp/tpu/report/report.h"
#include "ir/core/text_writer.h"

namespace hlokit::tpu {

// Bytes at the peak of what shares a scope or source line; largest first.
struct LiveBytesGroup {
  std::string name;  // "" for what has none
  int64_t bytes = 0;
  int64_t arrays = 0;
};
std::vector<LiveBytesGroup> LiveByScope(const Module& module, const MemoryPlan& memory);
std::vector<LiveBytesGroup> LiveBySource(const Module& module, const MemoryPlan& memory);

// What would make a program fit that does not, each with its figures. Empty if it fits.
std::vector<std::string> OutOfMemorySuggestions(const ReportInput& input);

// `details`: what is alive at the peak also where the program fits.
void PrintMemory(const ReportInput& input, bool details, TextWriter* out);
// The value of the key `memory`.
nlohmann::ordered_json MemoryJson(const ReportInput& input);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_MEMORY_REPORT_H_
