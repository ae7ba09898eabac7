// SPDX-License-Identifier: Apache-2.0
// Text of shapes and layouts, as XLA prints them.
#ifndef HLOKIT_IR_TEXT_SHAPE_TEXT_H_
#define HLOKIT_IR_TEXT_SHAPE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/arena.h"
#include "ir/core/text_writer.h"
#include "ir/types/shape.h"

namespace hlokit {

// Prints `/*index=5*/` before every fifth element of a tuple.
void PrintShape(TextWriter& out, Shape shape, bool with_layout = true);
// Prints `{1,0:T(8,128)}`. `physical` resolves the id of a physical shape.
void PrintLayout(TextWriter& out, const LayoutRecord& layout);

// Texts of the shapes of one table, computed once each.
class ShapeTextCache {
 public:
  std::string_view Get(Shape shape, bool with_layout) {
    const uint32_t id = shape.id().value;
    if (id < texts_.size() && texts_[id].data() != nullptr) return texts_[id];
    return Make(shape, with_layout);
  }

 private:
  std::string_view Make(Shape shape, bool with_layout);

  std::vector<std::string_view> texts_;  // by ShapeId
  Arena arena_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_SHAPE_TEXT_H_
