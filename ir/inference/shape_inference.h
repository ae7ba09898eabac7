// SPDX-License-Identifier: Apache-2.0
// The shape of an instruction's result, from its opcode, operand shapes, attributes and called computations. The rules
// are XLA's: what InferShape gives is what XLA's parser takes when the text leaves a shape out, and what CheckShape
// accepts is what XLA's verifier accepts (layouts aside).
//
// Rules are selected by ShapeRule (opcode.h) and live in the sources beside, one file a kind.
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
  const Module* module;  // whose computations and lists the attributes name
  Opcode opcode;
  absl::Span<const Shape> operands;
  absl::Span<const AttrValue> attrs;
  Shape declared;  // the result shape in the text; Shape() when the text leaves it out
};

// The result shape, with the layout that XLA gives an instruction whose text leaves the shape out: that of the operand
// where the operation keeps the order of elements, permuted by a transpose, the default one for most others.
//
// Where operands and attributes do not determine the result (the element type of a convert, the dimensions of a
// reshape), the declared shape supplies what is missing and the rest is checked. An error says what is wrong, naming
// operands by number. May add shapes to the context of the module.
absl::StatusOr<Shape> InferShape(const InferenceRequest& request);

// Whether `request.declared` agrees with the rule. Layouts are ignored. As in XLA's verifier, a dynamic dimension
// agrees with a static one of the same size and an unbounded one with any, and with `mixed_precision` the float types
// of operands and result may differ where data is computed, though not where it is passed on. When operands are in
// order and the result is not, the message ends with the shape that inference gives. Adds nothing to the context when
// it returns OK, except for collectives over several operands.
absl::Status CheckShape(const InferenceRequest& request, bool mixed_precision = true);

// The request for an instruction of a module. `operands` is scratch space that the request points into.
InferenceRequest RequestFor(Instruction instruction, std::vector<Shape>* operands);

// Shapes that XLA calls compatible: equal but for layouts and dynamic dimensions, where an unbounded dimension fits
// any. (Compatible of shape.h is the stricter comparison of one pointer.)
bool CompatibleIgnoringDynamism(Shape a, Shape b);
// The same where different float types match.
bool CompatibleIgnoringFpPrecision(Shape a, Shape b);

// The type that an operation over both gives: complex before float before integer, then the wider range, then the finer
// precision, then more bits, then signed.
ElementType HigherPrecision(ElementType a, ElementType b);

}  // namespace hlokit

#endif  // HLOKIT_IR_INFERENCE_SHAPE_INFERENCE_H_
