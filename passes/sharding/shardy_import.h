// SPDX-License-Identifier: Apache-2.0
// Reads what Shardy's export leaves in HLO, and writes it as XLA's propagation and partitioner expect it.
//
//   xla.sdy.GlobalToLocalShape    for each operand a custom-call Sharding and an SPMDFullToShardShape
//   call of the body              stays; everything in a body that is manual over all axes is manual
//   xla.sdy.LocalToGlobalShape    for each operand a custom-call Sharding and an SPMDShardToFullShape
//   xla.sdy.FuncResultSharding    the sharding of the entry's root; elsewhere a custom-call Sharding
//   xla.sdy.ShardingGroup         shard_as on its operand
//   xla.sdy.PropagationBarrier    ShardBarrierFrom, ShardBarrierTo
//   xla.sdy.sharding              the attribute `sharding`; open dimensions of a constraint are unspecified_dims
//
// Shardings within a manual computation do not name its manual axes, nor those of computations around it; here they do.
#ifndef HLOKIT_PASSES_SHARDING_SHARDY_IMPORT_H_
#define HLOKIT_PASSES_SHARDING_SHARDY_IMPORT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit::sharding {

// Returns the number of attributes and custom-calls that were replaced; an error for a sharding that cannot be read.
absl::StatusOr<int64_t> ImportShardy(Module& module);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_SHARDY_IMPORT_H_
