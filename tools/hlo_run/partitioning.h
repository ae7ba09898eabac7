// SPDX-License-Identifier: Apache-2.0
// Programs with shardings, which hlo-run partitions before it runs them.
#ifndef HLOKIT_TOOLS_HLO_RUN_PARTITIONING_H_
#define HLOKIT_TOOLS_HLO_RUN_PARTITIONING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "interp/equivalence/sharded_arrays.h"
#include "ir/graph/module.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// The program of one device, and how the arrays of the whole program are divided.
struct PartitionedProgram {
  std::unique_ptr<Module> module;
  interp::ShardedArrays parameters, result;
};

// Propagates the shardings of `whole`, fills elided constants as the flags say, and partitions it for
// flags.options.num_partitions devices.
absl::StatusOr<PartitionedProgram> PartitionProgram(const Flags& flags, const Module& whole);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_PARTITIONING_H_
