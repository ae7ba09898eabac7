// SPDX-License-Identifier: Apache-2.0
#include "interp/equivalence/partitioned_program.h"

#include <string>
#include <utility>

#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "passes/core/pipeline.h"

namespace hlokit::interp {
namespace {

absl::Status RunPasses(const std::string& text, Module* module) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
  if (!pipeline.ok()) return pipeline.status();
  return pipeline->Run(*module, {.context = EvaluatingContext()}).status();
}

}  // namespace

absl::StatusOr<PartitionedProgram> PartitionProgram(const Module& whole, const EvaluatorOptions& options) {
  const int64_t partitions = options.num_partitions;
  PartitionedProgram program{std::make_unique<Module>(whole.Clone()), {}, {}};
  Module& module = *program.module;
  module.header().num_partitions = partitions;
  if (options.fill_elided) {
    uint64_t seed = options.seed;
    const absl::Status filled = FillElidedConstants(*options.fill_elided, options.limits.max_bytes, &seed, &module);
    if (!filled.ok()) return filled;
  }
  if (absl::Status status = RunPasses("sharding-propagation{is-spmd=true}", &module); !status.ok()) return status;
  absl::StatusOr<ShardedArrays> parameters = ShardedArrays::OfParameters(module, partitions);
  if (!parameters.ok()) return parameters.status();
  absl::StatusOr<ShardedArrays> result = ShardedArrays::OfResult(module, partitions);
  if (!result.ok()) return result.status();
  program.parameters = *std::move(parameters);
  program.result = *std::move(result);
  const absl::Status status = RunPasses(StrCat("spmd-partitioner{partitions=", partitions, "}"), &module);
  if (!status.ok()) return status;
  return program;
}

}  // namespace hlokit::interp
