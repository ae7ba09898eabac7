// SPDX-License-Identifier: Apache-2.0
// Recognizes programs that are annotated with shardings but not partitioned.
#ifndef HLOKIT_IR_SHARDING_UNPARTITIONED_H_
#define HLOKIT_IR_SHARDING_UNPARTITIONED_H_

#include <string_view>

#include "ir/graph/module.h"

namespace hlokit {

// Frontend attribute of modules that SPMD partitioning has written for one device.
inline constexpr std::string_view kPartitionedAttribute = "spmd_partitioned";
bool IsMarkedPartitioned(const Module& module);

// Returns true if the sharding of `instruction`, or the one that Shardy left in its frontend attributes, divides some
// array among devices.
bool HasTiledSharding(Instruction instruction);

// Returns the first instruction with a tiled sharding, if the module has no collective and is not marked as
// partitioned: its shapes are those of the whole program, which SPMD partitioning would divide. Invalid otherwise.
Instruction FirstUnpartitioned(const Module& module);

// Returns true if there is such an instruction, and the header says that the module is for several partitions.
bool AwaitsPartitioning(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_UNPARTITIONED_H_
