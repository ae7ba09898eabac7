// SPDX-License-Identifier: Apache-2.0
// SPMD partitioning: from a program for all devices, whose values have shardings, to the program that each device runs
// on its parts, with collectives where parts of others are needed. Each operation is divided along the factors of its
// sharding rule (sharding_rule.h); one that cannot be is computed whole on every device.
//
// Entry parameters and the root get the shape of a part: the size of a tiled dimension is divided by the number of
// tiles, rounded up; the last parts are padded at the end, with values that do not matter. Their sharding attributes
// stay.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_SPMD_PARTITIONER_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_SPMD_PARTITIONER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "passes/remarks/remark.h"

namespace hlokit::spmd {

struct PartitionOptions {
  int64_t partitions = 0;  // 0: as the module says
  // Collective matmul: a dot is a loop over the parts of an operand (or result) of at least so many MiB, or if both
  // operands together have at least so many bytes (-1: that is not asked), in at most so many iterations; not if
  // another dot uses the operand too, unless that is not checked.
  int64_t threshold_for_windowed_einsum_mib = 256;
  int64_t total_bytes_windowed_einsum_threshold = -1;
  int64_t max_windowed_einsum_iteration = 32;
  bool skip_checking_windowed_einsum_users = false;
  // An operand that several dots use travels in the loop of the first only, and is gathered for the others.
  bool disable_ag_rewrite_for_multiple_consumers = false;
  // Gets a warning for each array that every device gathers whole only to take another part of it, and for operations
  // that no device divides although their operands are. Null: there are none.
  DiagnosticSink* diagnostics = nullptr;
  // Gets a remark for each collective. Null: nobody.
  RemarkCollector* remarks = nullptr;
};

struct PartitionCounts {
  int64_t computations = 0;
  int64_t collectives = 0;
  int64_t imported = 0;  // attributes and custom-calls of Shardy (shardy_import.h)
};

// Partitions the module. Does nothing if it is partitioned already (unpartitioned.h). Returns an error for shardings
// that cannot be calculated with, or that do not fit the number of partitions.
absl::StatusOr<PartitionCounts> PartitionModule(Module& module, const PartitionOptions& options);

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_SPMD_PARTITIONER_H_
