// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/timing/compile.h"

#include <memory>

#include "passes/core/pipeline.h"

namespace hlokit::tpu {

PassContext PassContextFor(const SimulationOptions& options, const Module& module) {
  PassContext environment;
  environment.target = std::make_shared<const TpuTarget>(TargetOf(options, module));
  return environment;
}

absl::Status Compile(const SimulationOptions& options, std::string_view pipeline, Module* module) {
  if (pipeline.empty() || module->header().is_scheduled) return absl::OkStatus();
  absl::StatusOr<Pipeline> passes = Pipeline::Parse(pipeline);
  if (!passes.ok()) return passes.status();
  return passes->Run(*module, {.context = PassContextFor(options, *module)}).status();
}

}  // namespace hlokit::tpu
