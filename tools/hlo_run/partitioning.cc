// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/partitioning.h"

#include <string>
#include <utility>

#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "passes/core/pipeline.h"

namespace hlokit::run {
namespace {

absl::Status RunPasses(const std::string& text, Module* module) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
  if (!pipeline.ok()) return pipeline.status();
  return pipeline->Run(*module, {.context = interp::EvaluatingContext()}).status();
}

}  // namespace

absl::StatusOr<PartitionedProgram> PartitionProgram(const Flags& flags, const Module& whole) {
  const int64_t partitions = flags.options.num_partitions;
  PartitionedProgram program{std::make_unique<Module>(whole.Clone()), {}, {}};
  Module& module = *program.module;
  module.header().num_partitions = partitions;
  if (flags.options.fill_elided) {
    uint64_t seed = flags.options.seed;
    const absl::Status filled =
        FillElidedConstants(*flags.options.fill_elided, flags.options.limits.max_bytes, &seed, &module);
    if (!filled.ok()) return filled;
  }
  if (absl::Status status = RunPasses("sharding-propagation{is-spmd=true}", &module); !status.ok()) return status;
  absl::StatusOr<interp::ShardedArrays> parameters = interp::ShardedArrays::OfParameters(module, partitions);
  if (!parameters.ok()) return parameters.status();
  absl::StatusOr<interp::ShardedArrays> result = interp::ShardedArrays::OfResult(module, partitions);
  if (!result.ok()) return result.status();
  program.parameters = *std::move(parameters);
  program.result = *std::move(result);
  const absl::Status status = RunPasses(StrCat("spmd-partitioner{partitions=", partitions, "}"), &module);
  if (!status.ok()) return status;
  return program;
}

}  // namespace hlokit::run
