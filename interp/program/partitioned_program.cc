// SPDX-License-Identifier: Apache-2.0
#include "interp/program/partitioned_program.h"

#include <string>
#include <utility>

#include "interp/program/program_passes.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::interp {

absl::StatusOr<PartitionedProgram> PartitionProgram(const Module& whole, const EvaluatorOptions& options,
                                                    DiagnosticSink* warnings) {
  const int64_t partitions = options.num_partitions;
  PartitionedProgram program{std::make_unique<Module>(whole.Clone()), {}, {}};
  Module& module = *program.module;
  module.header().num_partitions = partitions;
  // Replicas that the options add communicate among themselves only.
  if (options.num_replicas > 1) module.header().replica_count = options.num_replicas;
  if (options.fill_elided) {
    uint64_t seed = options.seed;
    const absl::Status filled = FillElidedConstants(*options.fill_elided, options.limits.max_bytes, &seed, &module);
    if (!filled.ok()) return filled;
  }
  if (absl::Status status = RunPasses("spmd-propagation", warnings, &module); !status.ok()) return status;
  absl::StatusOr<ShardedArrays> parameters = ShardedArrays::OfParameters(module, partitions);
  if (!parameters.ok()) return parameters.status();
  absl::StatusOr<ShardedArrays> result = ShardedArrays::OfResult(module, partitions);
  if (!result.ok()) return result.status();
  program.parameters = *std::move(parameters);
  program.result = *std::move(result);
  const absl::Status status = RunPasses(StrCat("spmd-partitioner{partitions=", partitions, "}"), warnings, &module);
  if (!status.ok()) return status;
  return program;
}

void ReportPartitionError(const Module& whole, const absl::Status& status, std::string hint, DiagnosticSink* sink) {
  const Instruction sharded = FirstUnpartitioned(whole);
  if (!sharded.valid()) return;
  SourceRange range;
  const uint32_t offset = sharded.record().source_offset;
  if (offset != InstructionRecord::kNoSourceOffset) range = {offset, static_cast<uint32_t>(sharded.name().size())};
  sink->Error(DiagnosticKind::kSharding, range,
              StrCat("the program with the sharding of `", sharded.name(),
                     "` cannot be partitioned: ", std::string(status.message())),
              std::move(hint));
}

}  // namespace hlokit::interp
