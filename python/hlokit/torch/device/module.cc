// SPDX-License-Identifier: Apache-2.0
// The extension module: PyTorch's side of the devices xla and tpu. Compiled by _device.py for the PyTorch that is
// installed.
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <optional>
#include <string>
#include <utility>

#include "api.h"
#include "lazy_tensor.h"

namespace hlokit::torch_device {
namespace {

namespace py = pybind11;

PyObject* LazyOf(PyObject* object) {
  if (!THPVariable_CheckExact(object) &&
      (THPVariableClass == nullptr ||
       PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(THPVariableClass)) == 0)) {
    return nullptr;
  }
  const LazyTensorImpl* const impl = ImplOf(THPVariable_Unpack(object));
  return impl == nullptr ? nullptr : impl->lazy();
}

bool IsDeviceOf(PyObject* object, PyObject* tensor) {
  if (object == Py_None) return true;
  if (!THPDevice_Check(object)) return false;
  const c10::Device& device = reinterpret_cast<THPDevice*>(object)->device;
  const c10::Device own = THPVariable_Unpack(tensor).device();
  return device.type() == own.type() &&
         (device.has_index() ? device.index() == own.index() : own.index() == CurrentDevice());
}

at::Tensor TensorOn(PyObject* lazy, const int64_t* sizes, size_t rank, PyObject* dtype, int ordinal) {
  return NewTensor(lazy, c10::IntArrayRef(sizes, rank), reinterpret_cast<THPDtype*>(dtype)->scalar_type,
                   c10::Device(CurrentType(), static_cast<c10::DeviceIndex>(ordinal)));
}

PyObject* Wrap(PyObject* lazy, const int64_t* sizes, size_t rank, PyObject* dtype, int ordinal) {
  HANDLE_TH_ERRORS
  return THPVariable_Wrap(TensorOn(lazy, sizes, rank, dtype, ordinal));
  END_HANDLE_TH_ERRORS
}

PyObject* WrapForOp(PyObject* lazy, const int64_t* sizes, size_t rank, PyObject* dtype, int ordinal) {
  HANDLE_TH_ERRORS
  return HandOver(TensorOn(lazy, sizes, rank, dtype, ordinal));
  END_HANDLE_TH_ERRORS
}

constexpr python::TorchDeviceApi kApi = {&LazyOf, &IsDeviceOf, &Wrap, &WrapForOp};

void Adopt(const at::Tensor& tensor, const at::Tensor& value) {
  LazyTensorImpl* const target = ImplOf(tensor);
  const LazyTensorImpl* const source = ImplOf(value);
  TORCH_CHECK(target != nullptr && source != nullptr, "the data of a tensor of ", tensor.device(), " cannot be one of ",
              value.device());
  target->Adopt(*source);
}

}  // namespace
}  // namespace hlokit::torch_device

PYBIND11_MODULE(_hlokit_torch_device, m) {
  namespace device = hlokit::torch_device;
  m.def("register", [](bool xla, pybind11::object handler) {
    device::RegisterDevices(xla);
    device::RegisterKernels(xla, std::move(handler));
    device::RegisterAutocast(xla);
  });
  m.def("api", [] { return pybind11::capsule(&device::kApi, hlokit::python::TorchDeviceApi::kCapsule); });
  m.def("set_handler", &device::SetHandler);
  m.def("current_type", [] { return c10::DeviceTypeName(device::CurrentType(), /*lower_case=*/true); });
  m.def("adopt", &device::Adopt);
  m.def("is_lazy", [](const at::Tensor& tensor) { return device::ImplOf(tensor) != nullptr; });
  // The type of the devices of tensors that this thread makes outside of ops; returns the one before.
  m.def("set_type", [](const std::string& name) {
    const c10::DeviceType before = device::CurrentType();
    device::SetCurrentType(c10::Device(name).type());
    return c10::DeviceTypeName(before, /*lower_case=*/true);
  });
  m.def("current_device", &device::CurrentDevice);
  m.def("set_current_device", &device::SetCurrentDevice);
  m.def("set_device_count", &device::SetDeviceCount);
  m.def("storage_on",
        [](const std::string& name, const c10::Storage& host) { return device::StorageOn(c10::Device(name), host); });
  m.def("host_storage", [](const c10::Storage& storage) -> std::optional<c10::Storage> {
    c10::Storage host = device::HostStorage(storage);
    if (!host) return std::nullopt;
    return host;
  });
  m.def("resize_storage",
        [](const at::Tensor& tensor, int64_t bytes) { device::ResizeStorage(tensor.storage(), bytes); });
  // Makes a tensor the same as another, in all but its place in autograd: both have one storage.
  m.def("become", [](const at::Tensor& tensor, const at::Tensor& other) {
    tensor.unsafeGetTensorImpl()->shallow_copy_from(other.getIntrusivePtr());
  });
  m.def("memory_use", &device::MemoryUse);
  m.def("reset_peak", &device::ResetPeak);
  m.def("host_generator", &device::HostGenerator);
}
