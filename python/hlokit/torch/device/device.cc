// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of a device beside ops: guards, streams and events, which do nothing as the tracer orders what it
// runs, allocators, generators and hooks.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "lazy_tensor.h"

namespace hlokit::torch_device {

c10::Allocator* AllocatorOf(c10::DeviceType type);

namespace {

thread_local int current_device = 0;
std::atomic<int> device_count{1};
// The most devices that there ever were: tensors of earlier sessions stay, and autograd has a place for each device.
std::atomic<int> most_devices{1};

c10::Device DeviceOf(c10::DeviceType type, int ordinal) { return {type, static_cast<c10::DeviceIndex>(ordinal)}; }

template <c10::DeviceType kType>
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return DeviceOf(kType, current_device); }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override { return DefaultStream(device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return DefaultStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return DefaultStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return DefaultStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return DefaultStream(stream.device()); }
  // Autograd starts a thread for each device of each type; none is used (record.cc).
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(kType == kXla ? 1 : most_devices.load());
  }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}
  double elapsedTime(void*, void*, c10::DeviceIndex) const override { return 0; }

 private:
  static c10::Stream DefaultStream(c10::Device device) {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : DeviceOf(kType, current_device));
  }
};

// Memory of the host that is said to be pinned: PyTorch checks that what it asked for is.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto* const memory = new c10::DataPtr(c10::GetAllocator(c10::DeviceType::CPU)->allocate(bytes));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      pinned_.insert(memory->get());
    }
    const auto release = [](void* context) {
      auto* const memory = static_cast<c10::DataPtr*>(context);
      {
        const std::lock_guard<std::mutex> lock(Get().mutex_);
        Get().pinned_.erase(memory->get());
      }
      delete memory;
    };
    return {memory->get(), memory, release, c10::DeviceType::CPU};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  static PinnedAllocator& Get() {
    static PinnedAllocator* const allocator = new PinnedAllocator;
    return *allocator;
  }
  bool Has(const void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return pinned_.count(data) != 0;
  }

 private:
  std::mutex mutex_;
  std::set<const void*> pinned_;
};

// A generator of the device: an op that is given one runs on the host with the generator within.
class LazyGenerator final : public c10::GeneratorImpl {
 public:
  LazyGenerator(c10::Device device, at::Generator host)
      : GeneratorImpl(
            device, c10::DispatchKeySet(device.type() == kXla ? c10::DispatchKey::XLA : c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {}

  void set_current_seed(uint64_t seed) override { host_.set_current_seed(seed); }
  void set_offset(uint64_t) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "generators of ", device_, " have no offset");
  }
  uint64_t get_offset() const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "generators of ", device_, " have no offset");
  }
  uint64_t current_seed() const override { return host_.current_seed(); }
  uint64_t seed() override { return host_.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    // set_state only reads it.
    auto* const impl = const_cast<c10::TensorImpl*>(&state);  // NOLINT
    host_.set_state(at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(impl)));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return host_.get_state().getIntrusivePtr(); }
  const at::Generator& host() const { return host_; }

 private:
  GeneratorImpl* clone_impl() const override { return new LazyGenerator(device_, host_.clone()); }

  at::Generator host_;
};

at::Generator NewGenerator(c10::DeviceType type, c10::DeviceIndex index) {
  const c10::Device device = DeviceOf(type, index < 0 ? current_device : index);
  return at::make_generator<LazyGenerator>(device, at::detail::createCPUGenerator());
}

const at::Generator& DefaultGenerator(c10::DeviceType type, c10::DeviceIndex index) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const generators = new std::vector<std::pair<c10::Device, std::unique_ptr<at::Generator>>>;
  const c10::Device device = DeviceOf(type, index < 0 ? current_device : index);
  const std::lock_guard<std::mutex> lock(*mutex);
  for (const auto& [known, generator] : *generators) {
    if (known == device) return *generator;
  }
  generators->emplace_back(device, std::make_unique<at::Generator>(NewGenerator(type, device.index())));
  return *generators->back().second;
}

// What torch.accelerator asks. PyTorch takes hooks of xla only while it starts.
class TpuHooks final : public at::PrivateUse1HooksInterface {
 public:
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count.load()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { current_device = index; }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto before = static_cast<c10::DeviceIndex>(current_device);
    current_device = index;
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::Get().Has(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator::Get(); }
  c10::Device getDeviceFromPtr(void*) const override { return DeviceOf(kTpu, current_device); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return DefaultGenerator(kTpu, index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return NewGenerator(kTpu, index); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    ResizeStorage(storage, static_cast<int64_t>(bytes));
  }
};

}  // namespace

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int ordinal) { current_device = ordinal; }
void SetDeviceCount(int count) {
  device_count = count;
  NoteDevice(count - 1);
}
void NoteDevice(int ordinal) {
  int most = most_devices;
  while (ordinal >= most && !most_devices.compare_exchange_weak(most, ordinal + 1)) {
  }
}

at::Generator HostGenerator(const at::Generator& generator) {
  const auto* const lazy = dynamic_cast<const LazyGenerator*>(generator.unsafeGetGeneratorImpl());
  return lazy == nullptr ? generator : lazy->host();
}

void RegisterDevices(bool xla) {
  c10::SetAllocator(kTpu, AllocatorOf(kTpu));
  static const c10::impl::DeviceGuardImplRegistrar tpu_guard(kTpu, new Guard<kTpu>);
  at::RegisterPrivateUse1HooksInterface(new TpuHooks);
  if (!xla) return;
  c10::SetAllocator(kXla, AllocatorOf(kXla));
  static const c10::impl::DeviceGuardImplRegistrar xla_guard(kXla, new Guard<kXla>);
}

}  // namespace hlokit::torch_device
