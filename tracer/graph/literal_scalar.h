// SPDX-License-Identifier: Apache-2.0
// Converts numbers to and from elements of literals.
#ifndef HLOKIT_TRACER_GRAPH_LITERAL_SCALAR_H_
#define HLOKIT_TRACER_GRAPH_LITERAL_SCALAR_H_

#include <cstddef>

#include "ir/types/literal.h"
#include "ir/types/shape.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

// Stores `value` converted to `type` at `to`: floats are rounded, integers wrapped, bool is true if not 0.
void StoreScalar(ElementType type, Scalar value, std::byte* to);
Scalar LoadScalar(ElementType type, const std::byte* from);
// Returns an array of `shape` with every element `value`.
Literal FilledLiteral(Shape shape, Scalar value);
// Returns the array in the type of `shape`, which has the same dimensions; converts like StoreScalar.
Literal Converted(const Literal& value, Shape shape);
// Returns the largest (smallest) value, infinity if the type has it.
Scalar LargestOf(ElementType type);
Scalar SmallestOf(ElementType type);
// Returns the largest finite value of a float type.
double LargestFiniteOf(ElementType type);
// Returns the distance from 1 to the next larger number of a float type.
double EpsilonOf(ElementType type);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_LITERAL_SCALAR_H_
