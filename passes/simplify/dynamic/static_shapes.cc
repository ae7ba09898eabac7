// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/dynamic/static_shapes.h"

namespace hlokit {

StaticShapes::StaticShapes(ShapeTable* table) : table_(*table) {
  // Components of a shape were interned before it.
  const size_t count = table_.size();
  static_.reserve(count);
  for (uint32_t id = 0; id < count; ++id) {
    const Shape shape = table_[ShapeId(id)];
    if (!shape.has_dynamic_dims()) {
      static_.push_back(shape);
    } else if (shape.IsArray()) {
      static_.push_back(table_.Array(shape.element_type(), shape.dims(), {}, shape.layout()));
    } else {
      std::vector<Shape> elements;
      for (Shape element : shape.elements()) elements.push_back(static_[element.id().value]);
      static_.push_back(shape.IsTuple() ? table_.Tuple(elements) : table_.Buffer(elements[0]));
    }
  }
}

Shape StaticShapes::Of(Shape shape) const { return shape.has_dynamic_dims() ? static_[shape.id().value] : shape; }

Shape StaticShapes::WithSizes(Shape shape) const {
  if (!shape.has_dynamic_dims()) return shape;
  std::vector<Shape> elements;
  if (shape.IsTuple()) {
    for (Shape element : shape.elements()) elements.push_back(Of(element));
  } else {
    elements.push_back(Of(shape));
  }
  for (Shape leaf : Leaves(shape)) {
    for (int64_t d = 0; d < leaf.rank(); ++d) {
      if (leaf.is_dynamic(d)) elements.push_back(table_.Scalar(ElementType::kS32));
    }
  }
  return table_.Tuple(elements);
}

}  // namespace hlokit
