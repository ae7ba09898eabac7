// SPDX-License-Identifier: Apache-2.0
// Thunks shared by several kinds of instructions.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_EMIT_H_
#define HLOKIT_INTERP_EXACT_BUILDER_EMIT_H_

#include <optional>

#include "absl/types/span.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/view.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode.h"

namespace hlokit::interp {

// Emits opcode(operands), elementwise, with result `shape`. Operands are scalars or have the dimensions of `shape`.
// Returns nullopt after an error report.
std::optional<View> EmitElementwise(CompiledComputationBuilder& builder, Opcode opcode, const AttrReader& attrs,
                                    absl::Span<const View> operands, Shape shape);

// Emits the dot of two arrays with result `shape`. Returns nullopt after an error report.
std::optional<View> EmitDotTo(CompiledComputationBuilder& builder, const View& lhs, const View& rhs,
                              const DotDims& dims, Shape shape);

// Emits the dot of two arrays as the result of the instruction.
void EmitDot(CompiledComputationBuilder& builder, const View& lhs, const View& rhs, const DotDims& dims);

// Emits the k largest (smallest) elements along the last dimension of operand 0, and their indices, as the result.
void EmitTopK(CompiledComputationBuilder& builder, int64_t k, bool largest);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_EMIT_H_
