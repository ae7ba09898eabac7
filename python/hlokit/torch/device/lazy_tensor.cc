// SPDX-License-Identifier: Apache-2.0
#include "lazy_tensor.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

namespace hlokit::torch_device {
namespace {

thread_local c10::DeviceType current_type = kXla;

// Addresses that nothing has: reading one ends the process as reading that of another device's memory does.
constexpr uintptr_t kFirstAddress = uintptr_t{1} << 50;
constexpr uintptr_t kAlignment = 64;

// Storages of a device, in bytes and by number.
struct Use {
  std::mutex mutex;
  c10::CachingAllocator::Stat bytes;
  c10::CachingAllocator::Stat count;
};
constexpr int kMaxDevices = 1024;

Use& UseOf(int ordinal) {
  static auto* const uses = new std::array<Use, kMaxDevices>;
  return (*uses)[static_cast<unsigned>(ordinal) % kMaxDevices];
}

// What a storage refers to.
struct Counted {
  int64_t bytes;
  int ordinal;
  c10::Storage host;  // the bytes of a storage that was loaded; else null
};

void Count(int ordinal, int64_t bytes) {
  Use& use = UseOf(ordinal);
  const std::lock_guard<std::mutex> lock(use.mutex);
  use.bytes.increase(static_cast<size_t>(bytes));
  use.count.increase(1);
}

void Release(void* context) {
  const auto* const counted = static_cast<Counted*>(context);
  {
    Use& use = UseOf(counted->ordinal);
    const std::lock_guard<std::mutex> lock(use.mutex);
    use.bytes.decrease(static_cast<size_t>(counted->bytes));
    use.count.decrease(1);
  }
  delete counted;
}

c10::DataPtr NewData(size_t bytes, c10::Device device, c10::Storage host = {}) {
  static std::atomic<uintptr_t> next{kFirstAddress};
  auto* const address = reinterpret_cast<void*>(next.fetch_add((bytes / kAlignment + 1) * kAlignment));  // NOLINT
  NoteDevice(device.index());
  auto* const counted = new Counted{static_cast<int64_t>(bytes), device.index(), std::move(host)};
  Count(counted->ordinal, counted->bytes);
  return {address, counted, &Release, device};
}

size_t HostBytes() { return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Storages of the device, without memory. What torch.accelerator has of memory is that of tensors, whether computed or
// not.
class AddressAllocator final : public c10::DeviceAllocator {
 public:
  explicit AddressAllocator(c10::DeviceType type) : type_(type) {}
  c10::DataPtr allocate(size_t bytes) override {
    return NewData(bytes, c10::Device(type_, static_cast<c10::DeviceIndex>(CurrentDevice())));
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "storages of ", type_, " have no bytes to copy; copy tensors");
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}  // there is none
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    Use& use = UseOf(device);
    const std::lock_guard<std::mutex> lock(use.mutex);
    c10::CachingDeviceAllocator::DeviceStats stats;
    constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    for (auto* const bytes :
         {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes}) {
      (*bytes)[kAll] = use.bytes;
    }
    for (auto* const count : {&stats.allocation, &stats.segment, &stats.active}) (*count)[kAll] = use.count;
    stats.num_device_alloc = use.count.allocated;
    stats.num_device_free = use.count.freed;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    Use& use = UseOf(device);
    const std::lock_guard<std::mutex> lock(use.mutex);
    use.bytes.reset_accumulated();
    use.count.reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex device) override { ResetPeak(device); }
  // Overrides one that PyTorch 2.9 does not have. Tensors are in the memory of the host.
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) {  // NOLINT
    const auto used = static_cast<size_t>(MemoryUse(device).first);
    return {HostBytes() - std::min(used, HostBytes()), HostBytes()};
  }

 private:
  const c10::DeviceType type_;
};

thread_local c10::Storage shared_storage;  // of ScopedStorage

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
  if (other.storage_.is_alias_of(storage_)) {
    set_sizes_and_strides(other.sizes(), other.strides(), other.storage_offset());
  } else {
    set_sizes_contiguous(other.sizes());
  }
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
  c10::Storage storage = shared_storage;
  if (!storage) {
    storage = c10::Storage(c10::Storage::use_byte_size_t(), bytes, NewData(bytes, device), AllocatorOf(device.type()),
                           /*resizable=*/true);
  }
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

void ResizeStorage(const c10::Storage& storage, int64_t bytes) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_deleter() == &Release) {
    auto* const counted = static_cast<Counted*>(data.get_context());
    Use& use = UseOf(counted->ordinal);
    const std::lock_guard<std::mutex> lock(use.mutex);
    use.bytes.increase(static_cast<size_t>(bytes));
    use.bytes.decrease(static_cast<size_t>(counted->bytes));
    counted->bytes = bytes;
  }
  storage.unsafeGetStorageImpl()->set_nbytes(static_cast<size_t>(bytes));
}

std::pair<int64_t, int64_t> MemoryUse(int ordinal) {
  Use& use = UseOf(ordinal);
  const std::lock_guard<std::mutex> lock(use.mutex);
  return {use.bytes.current, use.bytes.peak};
}

void ResetPeak(int ordinal) {
  Use& use = UseOf(ordinal);
  const std::lock_guard<std::mutex> lock(use.mutex);
  use.bytes.reset_peak();
  use.count.reset_peak();
}

ScopedStorage::ScopedStorage(c10::Storage storage) : before_(std::exchange(shared_storage, std::move(storage))) {}
ScopedStorage::~ScopedStorage() { shared_storage = std::move(before_); }

c10::DeviceType CurrentType() { return current_type; }

void SetCurrentType(c10::DeviceType type) { current_type = type; }

ScopedType::ScopedType(c10::DeviceType type) : before_(current_type) { current_type = type; }
ScopedType::~ScopedType() { current_type = before_; }

}  // namespace hlokit::torch_device
