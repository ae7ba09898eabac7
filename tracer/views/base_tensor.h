// SPDX-License-Identifier: Apache-2.0
// The tensors that views are views of, as PyTorch's storages.
#ifndef HLOKIT_TRACER_VIEWS_BASE_TENSOR_H_
#define HLOKIT_TRACER_VIEWS_BASE_TENSOR_H_

#include <cstdint>

#include "tracer/graph/tensor.h"
#include "tracer/views/strided_place.h"

namespace hlokit::lazy {

// Returns the tensor of which `tensor` is a view, over all views between; itself if it is none.
Tensor BaseOf(const Tensor& tensor);

// Returns whether a tensor has all elements of its base in order.
bool HasAllInOrder(const Tensor& tensor);

// Makes a tensor that is no view one of a new tensor with `elements` in a line, in which it lies at `place`; the others
// are zero. Returns that one.
Tensor MakeBase(const Tensor& tensor, const StridedPlace& place, int64_t elements);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_VIEWS_BASE_TENSOR_H_
