// SPDX-License-Identifier: Apache-2.0
#include "python/binding/torch_tensor.h"

#include <new>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
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

py::object LazyObject(lazy::Tensor tensor, const TracerPtr& session) {
  if (!tensor.defined()) {
    absl::Status status = session->status();
    session->ClearStatus();
    if (status.ok()) status = absl::InternalError("an op without a result");
    Throw("RunError", status);
  }
  PyObject* const object = NewLazyTensor(std::move(tensor), session);
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

LazyTensorObject& LazyTensorOf(py::handle object) {
  if (Py_TYPE(object.ptr()) != LazyTensorType()) throw py::type_error("expected a LazyTensor");
  return *reinterpret_cast<LazyTensorObject*>(object.ptr());
}

lazy::DeviceState& DeviceOf(const TracerPtr& session, int ordinal) {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= session->device_count()) {
    throw py::index_error(StrCat("there is no device xla:", ordinal, "; the session has ", session->device_count()));
  }
  return *session->device(ordinal);
}

TorchTensors& TorchTensors::Get() {
  static TorchTensors* const tensors = new TorchTensors;
  return *tensors;
}

void TorchTensors::Set(const TorchDeviceApi* api, const py::dict& types) {
  types_.clear();
  for (const auto& [name, dtype] : types) {
    const std::optional<ElementType> type = ElementTypeFromText(py::cast<std::string>(name));
    if (!type) throw py::value_error("unknown element type " + py::cast<std::string>(name));
    types_.emplace_back(*type, py::reinterpret_borrow<py::object>(dtype).release().ptr());
  }
  api_ = api;
}

PyObject* TorchTensors::Wrap(lazy::Tensor tensor, const TracerPtr& session, bool for_op) const {
  const Shape shape = tensor.shape();
  PyObject* const dtype = DtypeOf(shape.element_type());
  if (dtype == nullptr || api_ == nullptr) {
    PyErr_Format(PyExc_TypeError, "PyTorch has no element type %s",
                 std::string(ToString(shape.element_type())).c_str());
    return nullptr;
  }
  const auto ordinal = static_cast<int>(tensor.device()->device()->ordinal());
  PyObject* const lazy = NewLazyTensor(std::move(tensor), session);
  if (lazy == nullptr) return nullptr;
  return (for_op ? api_->hand_over : api_->wrap)(lazy, shape.dims().data(), static_cast<size_t>(shape.rank()), dtype,
                                                 ordinal);
}

}  // namespace hlokit::python
