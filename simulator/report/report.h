// SPDX-License-Identifier: Apache-2.0
// Results of a simulation as text and as JSON.
#ifndef HLOKIT_SIMULATOR_REPORT_REPORT_H_
#define HLOKIT_SIMULATOR_REPORT_REPORT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"
#include "ir/graph/module_fwd.h"
#include "passes/remarks/remark.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

struct ReportInput {
  const Module& module;
  const SimulationOptions& options;
  const Simulation& simulation;
  const MemoryPlan& memory;
  // The module before compilation, and the pipeline; null: it was simulated as given.
  const Module* source = nullptr;
  std::string_view pipeline = {};
  // Remarks of the passes that compiled it; null: nobody asked for them.
  const RemarkCollector* remarks = nullptr;
};

// Returns a note on a program that was compiled for another device and has been compiled again, or "".
std::string_view NoteOfCompilation(const ReportInput& input);

// Prints the step time and its breakdown, memory, and the `top` longest rows. `memory_details`: lists live arrays at
// the peak also if the program fits, and changes that lower it.
void PrintReport(const ReportInput& input, size_t top, bool memory_details, TextWriter* out);
// Returns one JSON object with all rows. `memory_details`: with changes that lower the peak of memory, simulated.
std::string ReportJson(const ReportInput& input, bool memory_details = false);

// Returns the row as the kernel that the core runs of it: of a fusion with a collective, the fusion.
OpRow CorePartOf(const OpRow& row);
// Returns the kind of work of a row: "fusion", "matmul", "all-reduce", ... Fusions with a matmul or reduction have its
// category.
std::string_view CategoryOf(const Module& module, const OpRow& row);
std::string_view CategoryOf(const Module& module, const ScheduleUnit& unit);
// Returns the scope of an instruction, or "".
std::string_view ScopeOf(Instruction instruction);
std::string SourceOf(Instruction instruction);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_REPORT_H_
