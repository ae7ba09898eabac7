// SPDX-License-Identifier: Apache-2.0
// Values made of nested shapes bottom up, with an explicit stack.
#ifndef HLOKIT_IR_TYPES_FOLD_SHAPE_H_
#define HLOKIT_IR_TYPES_FOLD_SHAPE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/types/shape.h"

namespace hlokit {

// Calls `leaf(Shape)` for each shape that is no tuple, in order, and `tuple(std::vector)` with what was made of the
// elements of each tuple. Returns what was made of `shape`.
template <typename Leaf, typename Tuple>
auto FoldShape(Shape shape, const Leaf& leaf, const Tuple& tuple) {
  using Made = decltype(leaf(shape));
  if (!shape.IsTuple()) return leaf(shape);
  struct Frame {
    Shape shape;
    std::vector<Made> made;
  };
  std::vector<Frame> open = {{shape, {}}};
  for (;;) {
    Frame& top = open.back();
    const auto next = static_cast<int64_t>(top.made.size());
    if (next == top.shape.tuple_size()) {
      Made made = tuple(top.made);
      open.pop_back();
      if (open.empty()) return made;
      open.back().made.push_back(std::move(made));
    } else if (const Shape element = top.shape.element(next); element.IsTuple()) {
      open.push_back({element, {}});
    } else {
      top.made.push_back(leaf(element));
    }
  }
}

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_FOLD_SHAPE_H_
