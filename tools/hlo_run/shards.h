// SPDX-License-Identifier: Apache-2.0
// Whole arguments from the shards that an unoptimized snapshot has of them, one for each partition.
#ifndef HLOKIT_TOOLS_HLO_RUN_SHARDS_H_
#define HLOKIT_TOOLS_HLO_RUN_SHARDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::run {

// The leaves of the arguments of one partition, those of all parameters in order.
using ShardedArguments = std::vector<Literal>;

// Joins the arguments of a program that is not partitioned yet, by the shardings of its parameters; `wholes` are the
// leaves of its parameters. What is not divided must be the same in all partitions. Returns an error if the shards do
// not fit, or are divided though no sharding says how.
absl::StatusOr<std::vector<Literal>> JoinShards(absl::Span<const ShardedArguments> partitions,
                                                absl::Span<const Shape> wholes, const Module& module);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SHARDS_H_
