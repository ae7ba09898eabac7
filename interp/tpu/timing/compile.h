// SPDX-License-Identifier: Apache-2.0
// The passes that compile a program for a machine.
#ifndef HLOKIT_INTERP_TPU_TIMING_COMPILE_H_
#define HLOKIT_INTERP_TPU_TIMING_COMPILE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "interp/tpu/devices/machine.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"
#include "passes/core/pass.h"
#include "passes/core/pipeline.h"

namespace hlokit::tpu {

// Among how many devices the work is divided: a module with shardings but without collectives has not been partitioned,
// its shapes are those of all devices.
double PartsOf(const Module& module);

// The pipeline that a text names; where it does not say otherwise, its passes take the machine's figures (memory,
// rates) instead of their defaults. `parts`: so many devices share the program's work and memory (PartsOf).
absl::StatusOr<Pipeline> PipelineFor(const Machine& machine, std::string_view pipeline, double parts = 1);

// What passes may ask about a machine and its devices: the scheduler, how long instructions take.
PassEnvironment EnvironmentFor(const SimulationOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_COMPILE_H_
