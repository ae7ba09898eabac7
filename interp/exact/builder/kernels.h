// SPDX-License-Identifier: Apache-2.0
// Functions that prepare the instructions of each opcode, a column of ir/ops/opcodes.def.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_KERNELS_H_
#define HLOKIT_INTERP_EXACT_BUILDER_KERNELS_H_

#include "interp/exact/program/exact_fwd.h"
#include "ir/ops/opcode.h"

namespace hlokit::interp {

// Prepares builder.instruction(): sets its result (a view, or a thunk) or reports an error.
using PrepareFn = void (*)(CompiledComputationBuilder& builder);

// Returns null for Opcode::kUnknown.
PrepareFn PrepareFnOf(Opcode opcode);

#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, ...) \
  void Prepare##kernel(CompiledComputationBuilder& builder);
#include "ir/ops/opcode_columns.inc"

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_KERNELS_H_
