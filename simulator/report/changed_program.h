// SPDX-License-Identifier: Apache-2.0
// Compiles and simulates variants of the program of a report.
#ifndef HLOKIT_SIMULATOR_REPORT_CHANGED_PROGRAM_H_
#define HLOKIT_SIMULATOR_REPORT_CHANGED_PROGRAM_H_

#include "simulator/report/report.h"

namespace hlokit::tpu {

struct ChangedProgram {
  Simulation simulation;
  MemoryPlan memory;
};

// Returns the program before compilation if it is known, else the simulated one.
inline const Module& SourceModuleOf(const ReportInput& input) {
  return input.source != nullptr ? *input.source : input.module;
}

// Compiles the changed program with the pipeline of the report, and simulates it.
ChangedProgram CompileAndSimulate(const ReportInput& input, Module changed, const SimulationOptions& options);

// Returns true if the verifier accepts the module.
bool IsValid(const Module& module);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_CHANGED_PROGRAM_H_
