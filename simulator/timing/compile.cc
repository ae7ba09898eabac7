// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/compile.h"

#include <memory>

#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/pipeline.h"
#include "passes/fusion/fuse.h"
#include "passes/layout/expand_bitcasts.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

PassContext PassContextFor(const SimulationOptions& options, const Module& module) {
  PassContext environment;
  environment.target = std::make_shared<const TpuTarget>(TargetOf(options, module));
  return environment;
}

bool IsCompiledForOtherDevice(const Module& module) {
  if (!module.header().is_scheduled) return false;
  bool arrays = false;
  const auto is_of_tpu = [&](Shape shape) {
    for (Shape leaf : Leaves(shape)) {
      if (!leaf.IsArray() || leaf.IsScalar()) continue;
      arrays = true;
      const int64_t space = MemorySpaceOf(leaf);
      if (HasTiles(leaf) || (space != kDefaultMemorySpace && space != kHostMemorySpace)) return true;
    }
    return false;
  };
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (is_of_tpu(i.shape())) return false;
    }
  }
  return arrays;
}

void WarnOfShardings(const Module& module, DiagnosticSink* warnings) {
  const Instruction sharded = FirstUnpartitioned(module);
  if (!sharded.valid() || module.header().num_partitions > 1) return;
  warnings->Warning(
      DiagnosticKind::kSharding, NameRange(sharded),
      StrCat("`", sharded.name(), "` is divided among devices, but the module is for one: it is simulated on one"),
      "--partitions=N partitions it for N devices, as num_partitions=N in its header does");
}

absl::Status RemoveCompilation(Module* module) {
  absl::StatusOr<Pipeline> before = Pipeline::Parse("hlo-descheduler,control-dep-remover");
  if (!before.ok()) return before.status();
  if (absl::Status s = before->Run(*module).status(); !s.ok()) return s;
  InlineFusions(*module);
  return ExpandBitcasts(*module).status();
}

absl::Status Compile(const SimulationOptions& options, std::string_view pipeline, Module* module,
                     const CompileObservers& observers) {
  if (pipeline.empty()) return absl::OkStatus();
  if (module->header().is_scheduled) {
    if (!IsCompiledForOtherDevice(*module)) return absl::OkStatus();
    if (absl::Status s = RemoveCompilation(module); !s.ok()) return s;
  }
  absl::StatusOr<Pipeline> passes = Pipeline::Parse(pipeline);
  if (!passes.ok()) return passes.status();
  PipelineOptions run = {.context = PassContextFor(options, *module)};
  run.context.diagnostics = observers.warnings;
  run.context.remarks = observers.remarks;
  return passes->Run(*module, run, observers.instruments).status();
}

}  // namespace hlokit::tpu
