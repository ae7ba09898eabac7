// SPDX-License-Identifier: Apache-2.0
#include "lazy_tensor.h"

#include <algorithm>
#include <atomic>

namespace hlokit::torch_device {
namespace {

thread_local c10::DeviceType current_type = kXla;

// Addresses that nothing has: reading one ends the process as reading that of another device's memory does.
constexpr uintptr_t kFirstAddress = uintptr_t{1} << 50;
constexpr uintptr_t kAlignment = 64;

// Bytes of the storages that exist, by device.
struct Use {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> peak{0};
};
constexpr int kMaxDevices = 1024;
Use uses[kMaxDevices];

Use& UseOf(int ordinal) { return uses[static_cast<unsigned>(ordinal) % kMaxDevices]; }

// What a storage refers to.
struct Counted {
  int64_t bytes;
  int ordinal;
  c10::Storage host;  // the bytes of a storage that was loaded; else null
};

void Release(void* context) {
  const auto* const counted = static_cast<Counted*>(context);
  UseOf(counted->ordinal).bytes -= counted->bytes;
  delete counted;
}

c10::DataPtr NewData(size_t bytes, c10::Device device, c10::Storage host = {}) {
  static std::atomic<uintptr_t> next{kFirstAddress};
  auto* const address = reinterpret_cast<void*>(next.fetch_add((bytes / kAlignment + 1) * kAlignment));  // NOLINT
  NoteDevice(device.index());
  auto* const counted = new Counted{static_cast<int64_t>(bytes), device.index(), std::move(host)};
  Use& use = UseOf(counted->ordinal);
  const int64_t now = use.bytes += counted->bytes;
  int64_t peak = use.peak;
  while (now > peak && !use.peak.compare_exchange_weak(peak, now)) {
  }
  return {address, counted, &Release, device};
}

// Storages of the device, without memory.
class AddressAllocator final : public c10::Allocator {
 public:
  explicit AddressAllocator(c10::DeviceType type) : type_(type) {}
  c10::DataPtr allocate(size_t bytes) override {
    return NewData(bytes, c10::Device(type_, static_cast<c10::DeviceIndex>(CurrentDevice())));
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "storages of ", type_, " have no bytes to copy; copy tensors");
  }

 private:
  const c10::DeviceType type_;
};

}  // namespace

c10::Allocator* AllocatorOf(c10::DeviceType type) {
  static AddressAllocator* const xla = new AddressAllocator(kXla);
  static AddressAllocator* const tpu = new AddressAllocator(kTpu);
  return type == kXla ? xla : tpu;
}

LazyTensorImpl::~LazyTensorImpl() {
  if (Py_IsInitialized() == 0) return;
  const pybind11::gil_scoped_acquire gil;
  Py_DECREF(lazy_);
}

template <typename Version>
c10::intrusive_ptr<c10::TensorImpl> LazyTensorImpl::Copy(Version&& version, bool allow_tensor_metadata_change) const {
  PyObject* lazy = nullptr;
  {
    const pybind11::gil_scoped_acquire gil;  // others may replace the value meanwhile
    lazy = lazy_;
    Py_INCREF(lazy);
  }
  auto impl = c10::make_intrusive<LazyTensorImpl>(c10::Storage(storage_), key_set_, data_type_, lazy);
  copy_tensor_metadata(this, impl.get(), std::forward<Version>(version), allow_tensor_metadata_change);
  return impl;
}

c10::intrusive_ptr<c10::TensorImpl> LazyTensorImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                            bool allow_tensor_metadata_change) const {
  return Copy(version, allow_tensor_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> LazyTensorImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                            bool allow_tensor_metadata_change) const {
  return Copy(std::move(version), allow_tensor_metadata_change);
}

void LazyTensorImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) {
  const auto* const other = dynamic_cast<const LazyTensorImpl*>(impl.get());
  TORCH_CHECK(other != nullptr, "the data of a tensor of ", device(), " cannot be one of ", impl->device());
  copy_tensor_metadata(other, this, version_counter(), allow_tensor_metadata_change());
  const pybind11::gil_scoped_acquire gil;
  Py_INCREF(other->lazy_);
  Py_SETREF(lazy_, other->lazy_);
}

void LazyTensorImpl::Adopt(const LazyTensorImpl& other) {
  set_sizes_contiguous(other.sizes());
  const pybind11::gil_scoped_acquire gil;
  Py_INCREF(other.lazy_);
  Py_SETREF(lazy_, other.lazy_);
}

LazyTensorImpl* ImplOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  const c10::DeviceType type = tensor.device().type();
  if (type != kXla && type != kTpu) return nullptr;
  return dynamic_cast<LazyTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::Tensor NewTensor(PyObject* lazy, c10::IntArrayRef sizes, at::ScalarType type, c10::Device device) {
  const caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(type);
  size_t bytes = meta.itemsize();
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, NewData(bytes, device), AllocatorOf(device.type()),
                       /*resizable=*/true);
  const c10::DispatchKey key = device.type() == kXla ? c10::DispatchKey::XLA : c10::DispatchKey::PrivateUse1;
  auto impl = c10::make_intrusive<LazyTensorImpl>(std::move(storage), c10::DispatchKeySet(key), meta, lazy);
  impl->set_sizes_contiguous(sizes);
  return at::Tensor(std::move(impl));
}

c10::Storage StorageOn(c10::Device device, const c10::Storage& host) {
  if (!device.has_index()) device.set_index(static_cast<c10::DeviceIndex>(CurrentDevice()));
  return {c10::Storage::use_byte_size_t(), host.nbytes(), NewData(host.nbytes(), device, host),
          AllocatorOf(device.type()),
          /*resizable=*/true};
}

c10::Storage HostStorage(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  return data.get_deleter() == &Release ? static_cast<const Counted*>(data.get_context())->host : c10::Storage();
}

std::pair<int64_t, int64_t> MemoryUse(int ordinal) { return {UseOf(ordinal).bytes, UseOf(ordinal).peak}; }

void ResetPeak(int ordinal) { UseOf(ordinal).peak = UseOf(ordinal).bytes.load(); }

c10::DeviceType CurrentType() { return current_type; }

void SetCurrentType(c10::DeviceType type) { current_type = type; }

ScopedType::ScopedType(c10::DeviceType type) : before_(current_type) { current_type = type; }
ScopedType::~ScopedType() { current_type = before_; }

}  // namespace hlokit::torch_device
