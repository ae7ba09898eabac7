// SPDX-License-Identifier: Apache-2.0
// What a program would take on a simulated TPU (docs/tpu.md).
#ifndef HLOKIT_PJRT_CLIENT_PROGRAM_SIMULATION_H_
#define HLOKIT_PJRT_CLIENT_PROGRAM_SIMULATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit::pjrt {

struct ProgramSimulation {
  std::string text;      // the report that hlo-run --device prints
  std::string json;      // the same as JSON
  std::string document;  // the data of the report's page, as JSON; "" unless asked for
  double step_seconds = 0;
};

enum class SimulationDocument { kWithout, kWith };

// Compiles a copy of a program for one device, before optimization, and simulates it on `device`, "v5p:4x4x4". Returns
// an error for a device that does not exist or has fewer chips than the program is for, and for a program that does not
// compile for a TPU.
absl::StatusOr<ProgramSimulation> SimulateProgram(const std::string& device, const Module& original,
                                                  SimulationDocument document = SimulationDocument::kWithout);

// What callers ask about a program on a simulated TPU.
struct SimulatedCosts {
  std::unique_ptr<Module> compiled;  // for the TPU
  double step_seconds = 0;
  // HBM of a device, with the padding of tiles. Arguments that results take over count as both.
  int64_t argument_bytes = 0;
  int64_t result_bytes = 0;
  int64_t aliased_bytes = 0;
  int64_t peak_bytes = 0;
};

// Returns the errors of SimulateProgram.
absl::StatusOr<SimulatedCosts> SimulateCosts(const std::string& device, const Module& original);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_PROGRAM_SIMULATION_H_
