// SPDX-License-Identifier: Apache-2.0
// Compiles a program for simulated devices.
#ifndef HLOKIT_INTERP_TPU_TIMING_COMPILE_H_
#define HLOKIT_INTERP_TPU_TIMING_COMPILE_H_

#include <string_view>

#include "absl/status/status.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module_fwd.h"
#include "passes/core/pass.h"
#include "passes/target/tpu_target.h"

namespace hlokit::tpu {

// Returns the pass context that describes the devices on which `module` is simulated.
PassContext PassContextFor(const SimulationOptions& options, const Module& module);

// Runs the pipeline, e.g. "tpu", over a module that has no schedule. Leaves a scheduled module unchanged.
absl::Status Compile(const SimulationOptions& options, std::string_view pipeline, Module* module);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_COMPILE_H_
