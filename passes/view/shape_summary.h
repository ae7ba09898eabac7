// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_VIEW_SHAPE_SUMMARY_H_
#define HLOKIT_PASSES_VIEW_SHAPE_SUMMARY_H_

#include <cstdint>
#include <string>

#include "ir/core/str_cat.h"
#include "ir/types/shape.h"

namespace hlokit {

// Elements of tuples may be shared, so that a short module can have shapes with very many arrays.
inline constexpr int64_t kMaxShownLeaves = 10000;

// Returns the text of the shape, or how many arrays it has if these are too many.
inline std::string ShapeSummary(Shape shape) {
  if (shape.leaf_count() > kMaxShownLeaves) return StrCat("(", shape.leaf_count(), " arrays)");
  return ToString(shape);
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_SHAPE_SUMMARY_H_
