// SPDX-License-Identifier: Apache-2.0
#include "tracer/views/base_tensor.h"

#include <memory>
#include <utility>
#include <vector>

#include "tracer/dispatch/dispatch.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/tensor_impl.h"

namespace hlokit::lazy {

Tensor BaseOf(const Tensor& tensor) {
  Tensor base = tensor;
  while (base.impl()->view != nullptr) base = base.impl()->view->parent;
  return base;
}

bool HasAllInOrder(const Tensor& tensor) {
  std::vector<Tensor> chain;
  for (Tensor at = tensor; at.impl()->view != nullptr; at = at.impl()->view->parent) chain.push_back(at);
  const Tensor base = BaseOf(tensor);
  StridedPlace place = PlaceOfAll(base.sizes());
  for (size_t i = chain.size(); i-- > 0;) {
    if (!FollowView(*chain[i].impl()->view, chain[i].sizes(), &place)) return false;
  }
  return tensor.numel() == base.numel() && place.strides == PlaceOfAll(tensor.sizes()).strides;
}

Tensor MakeBase(const Tensor& tensor, const StridedPlace& place, int64_t elements) {
  TensorImpl* const impl = tensor.impl();
  const StridedPlace all = PlaceOfAll(tensor.sizes());
  Tensor base;
  if (place.strides == all.strides && place.offset == 0 && elements >= tensor.numel()) {
    base = InvokeOp(Op::constant_pad_nd, Reshape(tensor, {tensor.numel()}), IntList{0, elements - tensor.numel()}, 0);
  } else {
    base = InvokeOp(Op::as_strided_scatter, Zeros({elements}, tensor.dtype()), tensor, place.sizes, place.strides,
                    place.offset);
  }
  if (!base.defined()) return base;
  impl->data->dropped_base = false;
  if (SameTensor(base, tensor)) return base;
  base.impl()->view = nullptr;
  base.impl()->data->follows_base = false;
  base.impl()->data->version = impl->data->version;  // that of the values that views of it have
  Args args = {base, place.sizes, place.strides, place.offset};
  impl->view = std::make_unique<ViewInfo>(ViewInfo{base, Op::as_strided, std::move(args), 0, 1});
  impl->generation = impl->data->version;
  impl->data->follows_base = true;
  return base;
}

}  // namespace hlokit::lazy
