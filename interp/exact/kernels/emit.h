// SPDX-License-Identifier: Apache-2.0
// Steps that more than one kind of instruction is made of.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_EMIT_H_
#define HLOKIT_INTERP_EXACT_KERNELS_EMIT_H_

#include <optional>

#include "absl/types/span.h"
#include "interp/exact/compiled_computation_builder.h"
#include "interp/exact/view.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode.h"

namespace hlokit::interp {

// opcode(operands), elementwise, as an array of `shape`. Operands are scalars or have the dimensions of `shape`.
// Nullopt after an error report.
std::optional<View> EmitElementwise(CompiledComputationBuilder& builder, Opcode opcode, const AttrReader& attrs,
                                    absl::Span<const View> operands, Shape shape);

// The product of two arrays as an array of `shape`. Nullopt after an error report.
std::optional<View> EmitDotTo(CompiledComputationBuilder& builder, const View& lhs, const View& rhs,
                              const DotDims& dims, Shape shape);

// The same as the result of the instruction, of its shape.
void EmitDot(CompiledComputationBuilder& builder, const View& lhs, const View& rhs, const DotDims& dims);

// The k largest (smallest) elements along the last dimension of operand 0, and where they are, as the result.
void EmitTopK(CompiledComputationBuilder& builder, int64_t k, bool largest);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_EMIT_H_
