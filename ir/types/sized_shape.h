// SPDX-License-Identifier: Apache-2.0
// Values of dynamic shapes. A literal has the sizes of its value and a static shape: of f32[<=8], for example, f32[5].
#ifndef HLOKIT_IR_TYPES_SIZED_SHAPE_H_
#define HLOKIT_IR_TYPES_SIZED_SHAPE_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlokit {

// Returns true if an array of these dimensions is a value of `declared`: at most as large where that is dynamic.
bool FitsWithin(absl::Span<const int64_t> dims, Shape declared);
// Returns true if a literal of this shape is a value of `declared`. Layouts do not matter. A literal of a dynamic shape
// has the sizes of its bounds.
bool FitsWithin(Shape value, Shape declared);

// Returns the shape of literals of `declared` with these dimensions: `declared` itself if it is static.
Shape SizedShape(ShapeTable* table, Shape declared, absl::Span<const int64_t> dims);

// Returns the shape of a value as XLA prints it before the elements: "f32[<=8](5)", for a static shape "f32[8]".
std::string SizedShapeText(Shape declared, absl::Span<const int64_t> dims);

// Copies the elements at the same indices of two arrays of one type, as far as both have them.
void CopyCommonElements(const Literal& from, Literal* to);

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_SIZED_SHAPE_H_
