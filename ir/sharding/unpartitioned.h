// SPDX-License-Identifier: Apache-2.0
// Recognizes programs that are annotated with shardings but not partitioned.
#ifndef HLOKIT_IR_SHARDING_UNPARTITIONED_H_
#define HLOKIT_IR_SHARDING_UNPARTITIONED_H_

#include <cstdint>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

// Frontend attribute of modules that SPMD partitioning has written for one device.
inline constexpr std::string_view kPartitionedAttribute = "spmd_partitioned";
bool IsMarkedPartitioned(const Module& module);

// Returns true for the targets of custom-calls between a value of the whole program and the part of one device:
// SPMDFullToShardShape, SPMDShardToFullShape, xla.sdy.GlobalToLocalShape, xla.sdy.LocalToGlobalShape.
bool IsPartConversion(std::string_view target);

// Returns true if the sharding of `instruction`, or the one that Shardy left in its frontend attributes, divides some
// array among devices.
bool HasTiledSharding(Instruction instruction);

// Returns the first instruction that has a tiled sharding, or converts between the program and code for one device, if
// the module is not partitioned: its shapes are those of the whole program, which SPMD partitioning would divide. A
// module is partitioned if it is marked so, or if it has collectives and none of the custom-calls that partitioning
// removes (Sharding, SPMDFullToShardShape, xla.sdy.GlobalToLocalShape, ...). Invalid otherwise.
Instruction FirstUnpartitioned(const Module& module);

// Returns true if there is such an instruction, and the header says that the module is for several partitions.
bool AwaitsPartitioning(const Module& module);

// Returns the number of devices that the shardings of the module, or the meshes of Shardy in its header, are for; 1 if
// they do not say, or do not agree.
int64_t PartitionsOfShardings(const Module& module);

// Returns the number of devices whose arrays the module has, as one program: 1 if it is partitioned.
int64_t DevicesOfWholeProgram(const Module& module);

// Sets num_partitions in the header of an unpartitioned module that has none there, as text without the configuration
// of the compiler and protos do, with a warning. Returns true if that changed the module. `warnings` may be null.
bool TakePartitionsOfShardings(Module* module, DiagnosticSink* warnings);

// Warns with the reason, if there is one to name, that partitioning divides nothing of a module that does not await it.
// `asked`: that it is partitioned already, or for one device, is a reason too. `warnings` may be null.
void WarnOfUndivided(const Module& module, bool asked, DiagnosticSink* warnings);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_UNPARTITIONED_H_
