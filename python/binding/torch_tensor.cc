// SPDX-License-Identifier: Apache-2.0
#include "python/binding/torch_tensor.h"

#include <structmember.h>

#include <new>
#include <string>
#include <utility>

#include "python/binding/handles.h"
#include "tracer/step/device_state.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

void Deallocate(PyObject* self) {
  auto* object = reinterpret_cast<LazyTensorObject*>(self);
  object->tensor.~Tensor();
  object->session.~shared_ptr();
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Py_TPFLAGS_DISALLOW_INSTANTIATION is of CPython 3.10.
PyObject* RefuseInstance(PyTypeObject* type, PyObject*, PyObject*) {
  return PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
}

}  // namespace

PyTypeObject* LazyTensorType() {
  static PyTypeObject* const type = [] {
    static PyType_Slot slots[] = {
        {Py_tp_new, reinterpret_cast<void*>(&RefuseInstance)},
        {Py_tp_dealloc, reinterpret_cast<void*>(&Deallocate)},
        {Py_tp_doc, const_cast<char*>("A value that is recorded and possibly not yet computed.")},
        {0, nullptr}};
    static PyType_Spec spec = {"hlokit._hlokit.LazyTensor", sizeof(LazyTensorObject), 0, Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return type;
}

PyObject* NewLazyTensor(lazy::Tensor tensor, TracerPtr session) {
  PyTypeObject* const type = LazyTensorType();
  PyObject* const object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  auto* lazy = reinterpret_cast<LazyTensorObject*>(object);
  new (&lazy->session) TracerPtr(std::move(session));
  new (&lazy->tensor) lazy::Tensor(std::move(tensor));
  return object;
}

TorchClasses& TorchClasses::Get() {
  static TorchClasses* const classes = new TorchClasses;
  return *classes;
}

void TorchClasses::Set(py::type tensor, py::object make, const py::dict& types, const py::list& devices) {
  const py::object slot = py::getattr(tensor, "__dict__")["_lazy"];
  if (Py_TYPE(slot.ptr()) != &PyMemberDescr_Type) throw py::type_error("_lazy is not a slot of the class of tensors");
  slot_offset_ = reinterpret_cast<PyMemberDescrObject*>(slot.ptr())->d_member->offset;
  tensor_ = reinterpret_cast<PyTypeObject*>(tensor.release().ptr());
  make_ = make.release().ptr();
  keywords_ = py::make_tuple(py::str("dtype"), py::str("device")).release().ptr();
  types_.clear();
  for (const auto& [name, dtype] : types) {
    const std::optional<ElementType> type = ElementTypeFromText(py::cast<std::string>(name));
    if (!type) throw py::value_error("unknown element type " + py::cast<std::string>(name));
    types_.emplace_back(*type, py::reinterpret_borrow<py::object>(dtype).release().ptr());
  }
  devices_.clear();
  for (const py::handle device : devices)
    devices_.push_back(py::reinterpret_borrow<py::object>(device).release().ptr());
}

PyObject* TorchClasses::Wrap(lazy::Tensor tensor, const TracerPtr& session) const {
  const Shape shape = tensor.shape();
  PyObject* const dtype = DtypeOf(shape.element_type());
  const auto ordinal = static_cast<size_t>(tensor.device()->device()->ordinal());
  if (dtype == nullptr || ordinal >= devices_.size()) {
    PyErr_Format(PyExc_TypeError, "PyTorch has no element type %s, or no device %zu",
                 std::string(ToString(shape.element_type())).c_str(), ordinal);
    return nullptr;
  }
  PyObject* const sizes = PyTuple_New(static_cast<Py_ssize_t>(shape.rank()));
  if (sizes == nullptr) return nullptr;
  for (int64_t i = 0; i < shape.rank(); ++i) PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(shape.dims()[i]));
  PyObject* const arguments[] = {reinterpret_cast<PyObject*>(tensor_), sizes, dtype, devices_[ordinal]};
  PyObject* const result = PyObject_Vectorcall(make_, arguments, 2, keywords_);
  Py_DECREF(sizes);
  if (result == nullptr) return nullptr;
  PyObject* const lazy = NewLazyTensor(std::move(tensor), session);
  if (lazy == nullptr) {
    Py_DECREF(result);
    return nullptr;
  }
  Py_XSETREF(*Slot(result), lazy);
  return result;
}

}  // namespace hlokit::python
