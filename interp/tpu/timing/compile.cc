// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/timing/compile.h"

#include <memory>

#include "passes/core/pipeline.h"

namespace hlokit::tpu {

PassEnvironment EnvironmentFor(const SimulationOptions& options, const Module& module) {
  PassEnvironment environment;
  environment.target = std::make_shared<const TpuTarget>(TargetOf(options, module));
  return environment;
}

absl::Status Compile(const SimulationOptions& options, std::string_view pipeline, Module* module) {
  if (pipeline.empty() || module->header().is_scheduled) return absl::OkStatus();
  absl::StatusOr<Pipeline> passes = Pipeline::Parse(pipeline);
  if (!passes.ok()) return passes.status();
  return passes->Run(*module, {.environment = EnvironmentFor(options, *module)}).status();
}

}  // namespace hlokit::tpu
