// SPDX-License-Identifier: Apache-2.0
// Shapes without dynamic dimensions, and the shapes that computations pass in their place.
#ifndef HLOKIT_PASSES_SIMPLIFY_DYNAMIC_STATIC_SHAPES_H_
#define HLOKIT_PASSES_SIMPLIFY_DYNAMIC_STATIC_SHAPES_H_

#include <vector>

#include "ir/types/shape.h"

namespace hlokit {

class StaticShapes {
 public:
  // Covers the shapes that `table` has now.
  explicit StaticShapes(ShapeTable* table);

  // Returns the shape with every dimension at its bound.
  Shape Of(Shape shape) const;
  // Returns a tuple of the elements of a tuple, or of the array, followed by a scalar s32 for each dynamic dimension,
  // in the order of Leaves(shape). Returns a shape without dynamic dimensions unchanged.
  Shape WithSizes(Shape shape) const;

 private:
  ShapeTable& table_;
  std::vector<Shape> static_;  // by ShapeId
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DYNAMIC_STATIC_SHAPES_H_
