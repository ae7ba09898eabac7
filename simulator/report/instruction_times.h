// SPDX-License-Identifier: Apache-2.0
// The simulated times of the instructions of a module.
#ifndef HLOKIT_SIMULATOR_REPORT_INSTRUCTION_TIMES_H_
#define HLOKIT_SIMULATOR_REPORT_INSTRUCTION_TIMES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/remarks/remark.h"
#include "simulator/report/device_report.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

struct InstructionTime {
  Instruction instruction;  // of the compiled module
  double seconds = 0;
  double runs = 1;     // in an execution of the module
  double exposed = 0;  // seconds that the core waits for it, of a collective
};

struct InstructionTimes {
  std::unique_ptr<Module> compiled;
  double device_seconds = 0;
  DeviceUse use;
  std::vector<InstructionTime> rows;  // as the simulator orders them, the largest first

  // Returns the seconds of each instruction of `compiled`, as SecondsByInstruction does.
  std::vector<double> ByInstruction() const;
};

// Compiles a copy of the module for the device (simulator/timing/compile.h) and simulates it.
// `remarks`: gets those of the passes; null: nobody.
absl::StatusOr<InstructionTimes> TimeInstructions(const SimulationOptions& options, const Module& module,
                                                  RemarkCollector* remarks = nullptr);

// Returns the seconds of each instruction over one execution, by InstructionId. Loops and calls have none of their own.
std::vector<double> SecondsByInstruction(const Module& module, const Simulation& simulation);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_INSTRUCTION_TIMES_H_
