// SPDX-License-Identifier: Apache-2.0
// Programs with shardings, which hlo-run partitions before it runs them.
#ifndef HLOKIT_TOOLS_HLO_RUN_PARTITIONING_H_
#define HLOKIT_TOOLS_HLO_RUN_PARTITIONING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "interp/equivalence/sharded_arrays.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// The program of one device, and how the arrays of the whole program are divided.
struct PartitionedProgram {
  std::unique_ptr<Module> module;
  interp::ShardedArrays parameters, result;
};

// Propagates the shardings of `whole`, fills elided constants as the flags say, and partitions it for
// flags.options.num_partitions devices. `warnings`: gets those of the passes.
absl::StatusOr<PartitionedProgram> PartitionProgram(const Flags& flags, const Module& whole, DiagnosticSink* warnings);

// Reports that a program cannot be partitioned, at the first instruction with a tiled sharding.
void ReportPartitionError(const Module& whole, const absl::Status& status, std::string hint, DiagnosticSink* sink);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_PARTITIONING_H_
