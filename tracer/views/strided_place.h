// SPDX-License-Identifier: Apache-2.0
// Where the elements of a view lie among those of a tensor that it is a view of.
#ifndef HLOKIT_TRACER_VIEWS_STRIDED_PLACE_H_
#define HLOKIT_TRACER_VIEWS_STRIDED_PLACE_H_

#include <cstdint>

#include "tracer/graph/dim_list.h"
#include "tracer/graph/tensor_impl.h"

namespace hlokit::lazy {

// Element (i, j, ..) is element offset + i * strides[0] + j * strides[1] + .. of the other tensor, in row-major order.
struct StridedPlace {
  IntList sizes;
  IntList strides;
  int64_t offset = 0;
};

// Returns the place of a tensor in itself.
StridedPlace PlaceOfAll(Dims sizes);

// Makes the place of a view's parent that of the view, which has `sizes`. Returns false, and leaves `place` undefined,
// where its elements do not lie at strides, or are parts of the parent's.
bool FollowView(const ViewInfo& view, Dims sizes, StridedPlace* place);

// Returns whether two elements of a view may be the same element of its parent.
bool MayOverlap(const ViewInfo& view, Dims sizes);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_VIEWS_STRIDED_PLACE_H_
