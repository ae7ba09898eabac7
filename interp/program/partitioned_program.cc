// SPDX-License-Identifier: Apache-2.0
#include "interp/program/partitioned_program.h"

#include <string>
#include <utility>

#include "interp/program/program_passes.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "ir/graph/source_line.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::interp {

absl::StatusOr<PartitionedProgram> PartitionProgram(const Module& whole, const EvaluatorOptions& options,
                                                    DiagnosticSink* warnings) {
  PartitionedProgram program{std::make_unique<Module>(whole.Clone()), {}};
  Module& module = *program.module;
  module.header().num_partitions = options.num_partitions;
  // Replicas that the options add communicate among themselves only.
  if (options.num_replicas > 1) module.header().replica_count = options.num_replicas;
  if (options.fill_elided) {
    uint64_t seed = options.seed;
    const absl::Status filled = FillElidedConstants(*options.fill_elided, options.limits.max_bytes, &seed, &module);
    if (!filled.ok()) return filled;
  }
  const absl::Status status = PartitionInPlace(options.num_partitions, warnings, &module, &program.arrays);
  if (!status.ok()) return status;
  return program;
}

absl::Status PartitionInPlace(int64_t partitions, DiagnosticSink* warnings, Module* module, ArrayDivision* arrays) {
  if (absl::Status status = RunPasses("spmd-propagation", warnings, module); !status.ok()) return status;
  if (arrays != nullptr) {
    absl::StatusOr<ShardedArrays> parameters = ShardedArrays::OfParameters(*module, partitions);
    if (!parameters.ok()) return parameters.status();
    absl::StatusOr<ShardedArrays> result = ShardedArrays::OfResult(*module, partitions);
    if (!result.ok()) return result.status();
    *arrays = {*std::move(parameters), *std::move(result)};
  }
  return RunPasses(StrCat("spmd-partitioner{partitions=", partitions, "}"), warnings, module);
}

void ReportPartitionError(const Module& whole, const absl::Status& status, std::string hint, DiagnosticSink* sink) {
  const Instruction sharded = FirstUnpartitioned(whole);
  if (!sharded.valid()) return;
  sink->Error(DiagnosticKind::kSharding, NameRangeOf(sharded),
              StrCat("the program with the sharding of `", sharded.name(),
                     "` cannot be partitioned: ", std::string(status.message())),
              std::move(hint));
}

}  // namespace hlokit::interp
