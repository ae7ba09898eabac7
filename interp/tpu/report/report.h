// SPDX-License-Identifier: Apache-2.0
// What a simulation says, as text and as JSON.
#ifndef HLOKIT_INTERP_TPU_REPORT_REPORT_H_
#define HLOKIT_INTERP_TPU_REPORT_REPORT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "interp/tpu/memory/memory_plan.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

struct ReportInput {
  const Module& module;
  const SimulationOptions& options;
  const Simulation& simulation;
  const MemoryPlan& memory;
  // What `module` was compiled from, and by which pipeline; null: it was simulated as it came.
  const Module* source = nullptr;
  std::string_view pipeline = {};
};

// Step time and its breakdown, memory, and the `top` longest rows. `memory_details`: what is alive at the peak also
// where the program fits.
void PrintReport(const ReportInput& input, size_t top, bool memory_details, TextWriter* out);
// One JSON object; all rows.
std::string ReportJson(const ReportInput& input);

// "fusion", "matmul", "all-reduce", ...: the kind of work a row stands for; of a fusion that of its product or
// reduction.
std::string_view CategoryOf(const Module& module, const OpRow& row);
// Scope and source line of an instruction; "" where the module does not say.
std::string_view ScopeOf(Instruction instruction);
std::string SourceOf(Instruction instruction);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_REPORT_H_
