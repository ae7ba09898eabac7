// SPDX-License-Identifier: Apache-2.0
// Inference of an instruction's result shape from its opcode, operand shapes, attributes and called computations. The
// rules are XLA's: InferShape returns the shape that XLA's parser assumes if the text omits it, and CheckShape accepts
// the shapes that XLA's verifier accepts (ignoring layouts).
//
// Rules are selected by ShapeRule (opcode.h) and implemented in the sources of this directory, one file per kind.
#ifndef HLOKIT_IR_INFERENCE_SHAPE_INFERENCE_H_
#define HLOKIT_IR_INFERENCE_SHAPE_INFERENCE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/ops/attribute.h"
#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"
#include "ir/types/shape.h"

namespace hlokit {

struct InferenceRequest {
  const Module* module;  // owns the computations and lists that the attributes name
  Opcode opcode;
  absl::Span<const Shape> operands;
  absl::Span<const AttrValue> attrs;
  Shape declared;  // the result shape in the text; Shape() if the text omits it
};

// Returns the result shape, with the layout that XLA assigns if the text omits the shape: that of the operand if the
// operation preserves the order of elements, permuted by a transpose, the default one for most others.
//
// If operands and attributes do not determine the result (the element type of a convert, the dimensions of a reshape),
// the declared shape supplies the missing parts and the rest is checked. Errors refer to operands by number. May add
// shapes to the context of the module.
absl::StatusOr<Shape> InferShape(const InferenceRequest& request);

// Returns an error unless `request.declared` agrees with the rule. Layouts are ignored. As in XLA's verifier, a dynamic
// dimension agrees with a static one of the same size and an unbounded one with any, and with `mixed_precision` the
// float types of operands and result may differ for operations that compute, though not for those that forward data. If
// the operands are valid and the result is not, the message ends with the inferred shape. Adds nothing to the context
// when it returns OK, except for collectives over several operands.
absl::Status CheckShape(const InferenceRequest& request, bool mixed_precision = true);

// Returns the request for an instruction of a module. `operands` is scratch space that the request points into.
InferenceRequest RequestFor(Instruction instruction, std::vector<Shape>* operands);

// Returns true for shapes that XLA calls compatible: equal ignoring layouts and dynamic dimensions, where an unbounded
// dimension matches any. (Compatible of shape.h is the stricter comparison of one pointer.)
bool CompatibleIgnoringDynamism(Shape a, Shape b);
// As CompatibleIgnoringDynamism, but any two float types match.
bool CompatibleIgnoringFpPrecision(Shape a, Shape b);

// Returns the result type of an operation over both: complex before float before integer, then the wider range, then
// the higher precision, then more bits, then signed.
ElementType HigherPrecision(ElementType a, ElementType b);

}  // namespace hlokit

#endif  // HLOKIT_IR_INFERENCE_SHAPE_INFERENCE_H_
