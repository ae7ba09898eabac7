// SPDX-License-Identifier: Apache-2.0
// The function that prepares instructions of each opcode; it is a column of ir/ops/opcodes.def.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_H_

#include "ir/ops/opcode.h"

namespace hlokit::interp {

class CompiledComputationBuilder;

// Looks at builder.instruction() and gives it a result (a view, or a step), or reports why it cannot.
using PrepareFn = void (*)(CompiledComputationBuilder& builder);

// Null for Opcode::kUnknown.
PrepareFn PrepareFnOf(Opcode opcode);

#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, ...) \
  void Prepare##kernel(CompiledComputationBuilder& builder);
#include "ir/ops/opcode_columns.inc"

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_H_
