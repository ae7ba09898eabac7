// SPDX-License-Identifier: Apache-2.0
#include "ir/types/sized_shape.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {

bool FitsWithin(absl::Span<const int64_t> dims, Shape declared) {
  if (!declared.IsArray() || static_cast<int64_t>(dims.size()) != declared.rank()) return false;
  for (int64_t d = 0; d < declared.rank(); ++d) {
    const int64_t size = dims[static_cast<size_t>(d)];
    if (declared.is_dynamic(d) ? size > declared.dim(d) : size != declared.dim(d)) return false;
  }
  return true;
}

bool FitsWithin(Shape value, Shape declared) {
  if (!declared.IsArray() || !declared.has_dynamic_dims() || !value.IsArray() || value.has_dynamic_dims()) {
    return SameShape(value, declared, /*ignore_layout=*/true);
  }
  return value.element_type() == declared.element_type() && FitsWithin(value.dims(), declared);
}

Shape SizedShape(ShapeTable* table, Shape declared, absl::Span<const int64_t> dims) {
  if (!declared.IsArray() || !declared.has_dynamic_dims()) return declared;
  return table->Array(declared.element_type(), dims);
}

std::string SizedShapeText(Shape declared, absl::Span<const int64_t> dims) {
  std::string text = ToString(declared, /*with_layout=*/false);
  if (!declared.IsArray() || !declared.has_dynamic_dims()) return text;
  for (size_t d = 0; d < dims.size(); ++d) StrAppend(&text, d == 0 ? "(" : ",", dims[d]);
  return text + ")";
}

void CopyCommonElements(const Literal& from, Literal* to) {
  const absl::Span<const int64_t> source = from.shape().dims(), target = to->shape().dims();
  if (from.element_count() == 0 || to->element_count() == 0) return;
  const size_t bytes = from.size_bytes() / static_cast<size_t>(from.element_count());
  const size_t rank = source.size();
  if (rank == 0) {
    std::memcpy(to->data(), from.data(), bytes);
    return;
  }
  const int64_t row = std::min(source[rank - 1], target[rank - 1]);
  std::vector<int64_t> index(rank, 0);
  for (;;) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < rank; ++d) {
      a = a * source[d] + index[d];
      b = b * target[d] + index[d];
    }
    std::memcpy(to->data() + static_cast<size_t>(b) * bytes, from.data() + static_cast<size_t>(a) * bytes,
                static_cast<size_t>(row) * bytes);
    size_t d = rank - 1;
    for (; d-- > 0;) {
      if (++index[d] < std::min(source[d], target[d])) break;
      index[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

}  // namespace hlokit
