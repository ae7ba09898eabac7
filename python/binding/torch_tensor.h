// SPDX-License-Identifier: Apache-2.0
// Lazy tensors in Python: what a tensor of hlokit.torch's device holds, and how such tensors are made and read. Nothing
// here links with PyTorch: functions of the module that is compiled for it come at run time
// (hlokit/torch/device/api.h).
#ifndef HLOKIT_PYTHON_BINDING_TORCH_TENSOR_H_
#define HLOKIT_PYTHON_BINDING_TORCH_TENSOR_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <vector>

#include "ir/types/element_type.h"
#include "python/hlokit/torch/device/api.h"
#include "tracer/graph/tensor.h"
#include "tracer/step/tracer.h"

namespace hlokit::python {

using TracerPtr = std::shared_ptr<lazy::Tracer>;

// A lazy tensor as a Python object. Keeps the session, which tensors must not outlive.
struct LazyTensorObject {
  PyObject ob_base;
  TracerPtr session;
  lazy::Tensor tensor;
};
// Returns the type `LazyTensor`, made on first use.
PyTypeObject* LazyTensorType();
// Returns a new reference; null with a Python error if there is no memory.
PyObject* NewLazyTensor(lazy::Tensor tensor, TracerPtr session);
// The same for a result of an op; throws the session's error if there is none.
pybind11::object LazyObject(lazy::Tensor tensor, const TracerPtr& session);
// Returns the lazy tensor that an object is; throws TypeError for others.
LazyTensorObject& LazyTensorOf(pybind11::handle object);
// Returns a device of the session; throws IndexError.
lazy::DeviceState& DeviceOf(const TracerPtr& session, int ordinal);

// PyTorch's side: its tensors and element types. Set once, by hlokit/torch/_tensor.py.
class TorchTensors {
 public:
  // Returns the only instance.
  static TorchTensors& Get();

  // `api`: of the extension module, which lives as long as the process; `types`: torch's element types by HLO name.
  void Set(const TorchDeviceApi* api, const pybind11::dict& types);

  // Returns the lazy tensor that a tensor of the device holds; null for other objects. Borrowed.
  LazyTensorObject* LazyOf(PyObject* object) const {
    PyObject* const lazy = api_ == nullptr ? nullptr : api_->lazy_of(object);
    return lazy == nullptr || Py_TYPE(lazy) != LazyTensorType() ? nullptr : reinterpret_cast<LazyTensorObject*>(lazy);
  }
  // Returns whether a device that a call names, or None, is that of a tensor of ours.
  bool IsDeviceOf(PyObject* device, PyObject* tensor) const {
    return api_ != nullptr && api_->is_device_of(device, tensor);
  }
  std::optional<ElementType> ElementTypeOf(PyObject* dtype) const {
    for (const auto& [type, object] : types_) {
      if (object == dtype) return type;
    }
    return std::nullopt;
  }
  // Returns torch's type; null if it has none.
  PyObject* DtypeOf(ElementType type) const {
    for (const auto& [known, object] : types_) {
      if (known == type) return object;
    }
    return nullptr;
  }
  // Returns a new tensor of PyTorch; null with a Python error. `for_op`: what stands for it as a result of the op that
  // PyTorch runs in this thread.
  PyObject* Wrap(lazy::Tensor tensor, const TracerPtr& session, bool for_op = false) const;

 private:
  const TorchDeviceApi* api_ = nullptr;
  std::vector<std::pair<ElementType, PyObject*>> types_;  // references that live as long as the process
};

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_TORCH_TENSOR_H_
