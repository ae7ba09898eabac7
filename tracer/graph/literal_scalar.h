// SPDX-License-Identifier: Apache-2.0
// Numbers as elements of literals and back.
#ifndef HLOKIT_TRACER_GRAPH_LITERAL_SCALAR_H_
#define HLOKIT_TRACER_GRAPH_LITERAL_SCALAR_H_

#include <cstddef>

#include "ir/types/literal.h"
#include "ir/types/shape.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

// `value` converted to `type` at `to`: floats rounded, integers wrapped, bool whether not 0.
void StoreScalar(ElementType type, Scalar value, std::byte* to);
Scalar LoadScalar(ElementType type, const std::byte* from);
// An array of `shape` with every element `value`.
Literal FilledLiteral(Shape shape, Scalar value);
// The same array in the type of `shape`, which has its dimensions; elements as StoreScalar converts them.
Literal Converted(const Literal& value, Shape shape);
// The largest (smallest) value, infinity where there is one.
Scalar LargestOf(ElementType type);
Scalar SmallestOf(ElementType type);
// The largest finite value of a float type.
double LargestFiniteOf(ElementType type);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_LITERAL_SCALAR_H_
