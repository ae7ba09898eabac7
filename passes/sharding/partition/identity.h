// SPDX-License-Identifier: Apache-2.0
// Identities of the binary operations that reductions apply.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_IDENTITY_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_IDENTITY_H_

#include <optional>

#include "ir/sharding/sharding.h"
#include "passes/sharding/partition/emitter.h"

namespace hlokit::spmd {

// Returns true for the operations that MakeIdentity knows.
bool HasIdentity(Opcode opcode, ElementType type);
// Returns the scalar that leaves the other operand as it is: for a float sum -0, which keeps the sign of a zero.
InstructionId MakeIdentity(Emitter* emitter, Opcode opcode, ElementType type);
// The operation by which the parts of an unreduced value combine; of booleans a sum is an or.
Opcode OpcodeOf(ReductionOp reduction, ElementType type);
// Returns the reduction that the operation is; nullopt if parts of a value cannot wait for it.
std::optional<ReductionOp> ReductionOf(Opcode opcode, ElementType type);
// Returns true if op(x, x) is x.
bool IsIdempotent(Opcode opcode);
// Returns true if the instruction is a constant that is the identity; of sums any zero.
bool IsIdentity(Instruction scalar, Opcode opcode);

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_IDENTITY_H_
