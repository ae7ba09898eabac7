// SPDX-License-Identifier: Apache-2.0
// Lazy tensors in Python: what the slot `_lazy` of a hlokit.torch tensor holds, and the classes of PyTorch that the
// binding needs to make such tensors. Nothing here links with PyTorch: its objects are called as Python objects.
#ifndef HLOKIT_PYTHON_BINDING_TORCH_TENSOR_H_
#define HLOKIT_PYTHON_BINDING_TORCH_TENSOR_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <vector>

#include "ir/types/element_type.h"
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

// The class of tensors and the objects of PyTorch that make them; set once, by hlokit/torch/_tensor.py.
class TorchClasses {
 public:
  // Returns the only instance.
  static TorchClasses& Get();

  // `tensor`: the subclass of torch.Tensor with a slot `_lazy`; `make`: torch.Tensor._make_wrapper_subclass; `types`:
  // torch's element types by HLO name; `devices`: PyTorch's objects for the devices, by ordinal.
  void Set(pybind11::type tensor, pybind11::object make, const pybind11::dict& types, const pybind11::list& devices);

  bool IsTensor(PyObject* object) const {
    return tensor_ != nullptr && (Py_TYPE(object) == tensor_ || PyType_IsSubtype(Py_TYPE(object), tensor_));
  }
  // Returns the lazy tensor of an instance of the class; null if its slot is empty. Borrowed.
  LazyTensorObject* LazyOf(PyObject* tensor) const {
    PyObject* const slot = *Slot(tensor);
    return slot == nullptr || Py_TYPE(slot) != LazyTensorType() ? nullptr : reinterpret_cast<LazyTensorObject*>(slot);
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
  // Returns a new tensor of the class; null with a Python error.
  PyObject* Wrap(lazy::Tensor tensor, const TracerPtr& session) const;

 private:
  PyObject** Slot(PyObject* tensor) const {
    return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(tensor) + slot_offset_);
  }

  // References that live as long as the process.
  PyTypeObject* tensor_ = nullptr;
  Py_ssize_t slot_offset_ = 0;
  PyObject* make_ = nullptr;
  PyObject* keywords_ = nullptr;  // ("dtype", "device")
  std::vector<std::pair<ElementType, PyObject*>> types_;
  std::vector<PyObject*> devices_;
};

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_TORCH_TENSOR_H_
