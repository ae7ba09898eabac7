// SPDX-License-Identifier: Apache-2.0
// Storages of PyTorch's tensors: the tensors of the tracer of which others are views.
#include <pybind11/stl.h>

#include <utility>
#include <vector>

#include "python/binding/bindings.h"
#include "python/binding/torch_tensor.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/device_state.h"
#include "tracer/views/base_tensor.h"

namespace hlokit::python {
namespace {

namespace py = pybind11;

// Returns the tensor that holds all of the storage, in order, of which `object` has the elements at these strides; None
// if it is no longer there. `bytes`: of the storage, in which an element of `object` has `width`.
py::object BaseOfStorage(py::handle object, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                         int64_t offset, int64_t bytes, int64_t width) {
  const LazyTensorObject& lazy = LazyTensorOf(object);
  const lazy::NoGradGuard no_grad;
  const lazy::DeviceGuard guard(lazy.tensor.device());
  lazy::Tensor base = lazy::BaseOf(lazy.tensor);
  const int64_t own_bytes = base.numel() * BytesOf(base.dtype());
  if (base.impl()->data->dropped_base || own_bytes != bytes) {
    if (!SameTensor(base, lazy.tensor) || base.numel() * width != bytes) return py::none();
    lazy::StridedPlace place;
    place.sizes.assign(sizes.begin(), sizes.end());
    place.strides.assign(strides.begin(), strides.end());
    place.offset = offset;
    base = lazy::MakeBase(base, place, bytes / width);
  }
  return LazyObject(std::move(base), lazy.session);
}

// Gives such a tensor more elements, and returns the one that then holds all of the storage.
py::object GrowBase(py::handle object, int64_t elements) {
  const LazyTensorObject& lazy = LazyTensorOf(object);
  const lazy::NoGradGuard no_grad;
  const lazy::DeviceGuard guard(lazy.tensor.device());
  return LazyObject(lazy::MakeBase(lazy.tensor, lazy::PlaceOfAll(lazy.tensor.sizes()), elements), lazy.session);
}

}  // namespace

void BindTorchStorage(py::module_& m) {
  m.def("_lazy_base", &BaseOfStorage, py::arg("lazy"), py::arg("sizes"), py::arg("strides"), py::arg("offset"),
        py::arg("bytes"), py::arg("width"));
  m.def("_lazy_grow", &GrowBase, py::arg("base"), py::arg("elements"));
}

}  // namespace hlokit::python
