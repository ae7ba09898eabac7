// The function that prepares instructions of each opcode; kernels.def has the table.
#ifndef HLOKIT_INTERP_REFERENCE_KERNELS_H_
#define HLOKIT_INTERP_REFERENCE_KERNELS_H_

#include "ir/opcode.h"

namespace hlokit::interp {

class RoutineBuilder;

// Looks at builder.instruction() and gives it a result (a view, or a step), or reports why it cannot.
using PrepareFn = void (*)(RoutineBuilder& builder);

// Null for Opcode::kUnknown.
PrepareFn PrepareFnOf(Opcode opcode);

#define KERNEL(opcode, function) void function(RoutineBuilder& builder);
#include "interp/reference/kernels.def"

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_REFERENCE_KERNELS_H_
