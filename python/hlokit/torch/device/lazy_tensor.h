// SPDX-License-Identifier: Apache-2.0
// Tensors of the devices xla and tpu. Each holds a value of the tracer, as a Python object; its storage has an address,
// by which views of a tensor are known as such, and no memory.
#ifndef HLOKIT_PYTHON_HLOKIT_TORCH_DEVICE_LAZY_TENSOR_H_
#define HLOKIT_PYTHON_HLOKIT_TORCH_DEVICE_LAZY_TENSOR_H_

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <utility>

namespace hlokit::torch_device {

// The device types: PyTorch/XLA's, and the one that PyTorch keeps for a backend like this, which is called tpu.
constexpr c10::DeviceType kXla = c10::DeviceType::XLA;
constexpr c10::DeviceType kTpu = c10::DeviceType::PrivateUse1;

class LazyTensorImpl final : public c10::TensorImpl {
 public:
  // `lazy`: takes the reference.
  LazyTensorImpl(c10::Storage storage, c10::DispatchKeySet keys, caffe2::TypeMeta type, PyObject* lazy)
      : TensorImpl(std::move(storage), keys, type), lazy_(lazy) {}
  ~LazyTensorImpl() override;

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_tensor_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) override;

  // The value; borrowed.
  PyObject* lazy() const { return lazy_; }
  // Makes a tensor that was made in inference mode one with versions and a history, as its base is.
  void BecomeViewOf(LazyTensorImpl& base) {
    if (!is_inference() || base.is_inference()) return;
    key_set_ = base.key_set();
    set_version_counter(c10::VariableVersion(/*version=*/0));
  }
  // Makes the value and the sizes those of another tensor, and the strides those of one with the same storage. Views
  // keep the storage.
  void Adopt(const LazyTensorImpl& other);

 private:
  template <typename Version>
  c10::intrusive_ptr<TensorImpl> Copy(Version&& version, bool allow_tensor_metadata_change) const;
  const char* tensorimpl_type_name() const override { return "hlokit::LazyTensorImpl"; }

  PyObject* lazy_;
};

// Returns the implementation; null for tensors that are not of the device, and fake ones.
LazyTensorImpl* ImplOf(const at::Tensor& tensor);

// Returns a tensor without autograd that holds the value, of which it takes the reference.
at::Tensor NewTensor(PyObject* lazy, c10::IntArrayRef sizes, at::ScalarType type, c10::Device device);

// Tensors that this thread makes in the block have this storage, if it is one: those of an op that makes views.
class ScopedStorage {
 public:
  explicit ScopedStorage(c10::Storage storage);
  ~ScopedStorage();
  ScopedStorage(const ScopedStorage&) = delete;
  ScopedStorage& operator=(const ScopedStorage&) = delete;

 private:
  c10::Storage before_;
};

// Returns a storage of the device that keeps one of the host, of which a tensor is then made, and that one; null if it
// keeps none.
c10::Storage StorageOn(c10::Device device, const c10::Storage& host);
c10::Storage HostStorage(const c10::Storage& storage);

// Changes the size of a storage.
void ResizeStorage(const c10::Storage& storage, int64_t bytes);

// Bytes of the storages of a device's tensors: those that exist, and the most that did.
std::pair<int64_t, int64_t> MemoryUse(int ordinal);
void ResetPeak(int ordinal);

// The type of the devices on which this thread makes tensors: that of the op that it runs, else xla.
c10::DeviceType CurrentType();
void SetCurrentType(c10::DeviceType type);
class ScopedType {
 public:
  explicit ScopedType(c10::DeviceType type);
  ~ScopedType();
  ScopedType(const ScopedType&) = delete;
  ScopedType& operator=(const ScopedType&) = delete;

 private:
  const c10::DeviceType before_;
};

// ---- device.cc ----
// Registers guards, allocators, generators and hooks of both types; of xla only where `xla`.
void RegisterDevices(bool xla);
// The ordinal of this thread's device, and the number of devices.
int CurrentDevice();
void SetCurrentDevice(int ordinal);
void SetDeviceCount(int count);
// There is a tensor of this device.
void NoteDevice(int ordinal);
// Returns the generator on the host whose numbers those of a generator of the device are; itself if it is one.
at::Generator HostGenerator(const at::Generator& generator);

// ---- record.cc ----
// Keeps a tensor for the op that this thread runs, and returns its number, a new reference.
PyObject* HandOver(at::Tensor tensor);
// Registers kernels of all ops for which PyTorch has no composite one; `handler`(op, types, args, kwargs) runs them.
void RegisterKernels(bool xla, pybind11::object handler);
void SetHandler(pybind11::object handler);

// ---- autocast.cc ----
void RegisterAutocast(bool xla);

}  // namespace hlokit::torch_device

#endif  // HLOKIT_PYTHON_HLOKIT_TORCH_DEVICE_LAZY_TENSOR_H_
