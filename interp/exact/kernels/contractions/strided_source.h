// SPDX-License-Identifier: Apache-2.0
// Panels of a matrix that is a strided array: groups of its dimensions are batch, lines and contraction.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_STRIDED_SOURCE_H_
#define HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_STRIDED_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "interp/exact/kernels/contractions/matrix_product.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp {

// Dimensions collapsed into one, the last one fastest.
struct DimGroup {
  Dims sizes;
  Dims strides;  // in elements

  int64_t count() const { return ElementCount(sizes); }
  void Add(int64_t size, int64_t stride) {
    if (size == 1) return;
    if (!sizes.empty() && strides.back() == stride * size) {
      sizes.back() *= size;
      strides.back() = stride;
      return;
    }
    sizes.push_back(size);
    strides.push_back(stride);
  }
  // Returns the offset of item i.
  int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return offset;
  }
  // Computes the offsets of items [begin, begin + n).
  void Offsets(int64_t begin, int64_t n, int64_t* offsets) const;
};

struct StridedSource {
  DimGroup batch;
  DimGroup free;
  DimGroup contracting;
  OperandConversion conversion;

  // Returns false if the dimensions are not those of the view or the types do not convert.
  bool Init(const View& view, absl::Span<const int64_t> batch_dims, absl::Span<const int64_t> contracting_dims,
            ElementType result);
};

class StridedPanels : public PanelSource {
 public:
  StridedPanels(const StridedSource& source, const std::byte* data) : source_(source), data_(data) {}
  void Pack(int64_t batch, int64_t first, int64_t count, int64_t k_begin, int64_t k_count, int64_t width,
            std::byte* to) const override;

 private:
  const StridedSource& source_;
  const std::byte* data_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_STRIDED_SOURCE_H_
