// SPDX-License-Identifier: Apache-2.0
// One array on a device: available, pending on an execution in flight, or generated when it is first read. Donation to
// an execution deletes the buffer for all other users, except for uses that began before.
#ifndef HLOKIT_RUNTIME_CLIENT_DEVICE_BUFFER_H_
#define HLOKIT_RUNTIME_CLIENT_DEVICE_BUFFER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"
#include "runtime/client/deferred_deallocator.h"

namespace hlokit::runtime {

class DeviceBuffer;

// Produces the value of a pending buffer on demand, when a reader first waits for it.
class DeferredProducer {
 public:
  virtual ~DeferredProducer() = default;
  virtual void Produce(const DeviceBuffer& buffer) = 0;
};

class DeviceBuffer {
 public:
  // A value of `bytes` that `generate` makes: once, in the thread that first needs it.
  struct Generator {
    int64_t bytes;
    std::function<absl::StatusOr<Literal>()> generate;
  };

  // `discarded`: receives the value at destruction, if not null.
  explicit DeviceBuffer(std::shared_ptr<DeferredDeallocator> discarded = nullptr)
      : deallocator_(std::move(discarded)) {}
  // `context` owns the literal's shape.
  DeviceBuffer(Literal value, std::shared_ptr<Context> context,
               std::shared_ptr<DeferredDeallocator> discarded = nullptr)
      : deallocator_(std::move(discarded)),
        state_(State::kReady),
        context_(std::move(context)),
        value_(std::move(value)) {}
  // A value that takes no memory until it is read.
  DeviceBuffer(Generator generator, std::shared_ptr<Context> context, std::shared_ptr<DeferredDeallocator> discarded)
      : deallocator_(std::move(discarded)),
        ungenerated_bytes_(generator.bytes),
        generator_(std::make_unique<Generator>(std::move(generator))),
        context_(std::move(context)) {}
  ~DeviceBuffer() {
    if (deallocator_ == nullptr || state_ != State::kReady ||
        value_.size_bytes() < DeferredDeallocator::kMinDeferredBytes)
      return;
    deallocator_->Add(std::move(value_), std::move(context_));
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // Sets the value. Called once, by the producer.
  void SetValue(Literal value, std::shared_ptr<Context> context) {
    std::lock_guard<std::mutex> lock(mutex_);
    value_ = std::move(value);
    context_ = std::move(context);
    state_ = State::kReady;
    changed_.notify_all();
  }
  void Fail(absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    state_ = State::kFailed;
    changed_.notify_all();
  }
  // Waits for the value or its producer's error. Returns an error for a donated buffer.
  absl::Status Wait() const {
    if (donated_) return DeletedError();
    return WaitInUse();
  }
  // Waits for the value within a use, which donation does not end.
  absl::Status WaitInUse() const {
    std::unique_lock<std::mutex> lock(mutex_);
    if (state_ == State::kPending && producer_ != nullptr) {
      DeferredProducer* const producer = std::exchange(producer_, nullptr);
      lock.unlock();
      producer->Produce(*this);
      lock.lock();
    }
    AwaitValue(lock);
    return status_;
  }
  // Defers the value: the first reader that waits calls `producer`.
  void SetProducer(DeferredProducer* producer) {
    std::lock_guard<std::mutex> lock(mutex_);
    producer_ = producer;
  }

  // Returns the bytes of a value that is not generated yet, else 0.
  int64_t ungenerated_bytes() const { return ungenerated_bytes_.load(std::memory_order_relaxed); }
  // Generates the value if it is not pending on an execution.
  void Generate() const {
    std::unique_lock<std::mutex> lock(mutex_);
    GenerateLocked(lock);
  }

  // Returns true if the value is available.
  bool IsReady() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_ == State::kReady;
  }

  // The same, and no use is in progress.
  bool IsReadyUnused() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_ == State::kReady && uses_ == 0;
  }

  // Begins a use, which may read the value until EndUse. Returns false if the buffer was donated.
  bool BeginUse() const {
    ++uses_;
    if (!donated_) return true;
    EndUse();
    return false;
  }
  void EndUse() const {
    if (--uses_ != 0 || !donated_) return;
    std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }
  // Deletes the buffer for all users but the caller, who may Take its value. Returns false if it was donated before.
  bool Donate() { return !donated_.exchange(true); }
  bool donated() const { return donated_; }
  // Waits for the value and for earlier uses, then moves the value to the caller. Requires: Donate returned true.
  absl::Status Take(Literal* value, std::shared_ptr<Context>* context) {
    std::unique_lock<std::mutex> lock(mutex_);
    AwaitValue(lock);
    changed_.wait(lock, [&] { return uses_ == 0; });
    if (state_ == State::kFailed) return status_;
    TakeLocked(value, context);
    return absl::OkStatus();
  }
  // Waits for the value only. Returns false if earlier uses remain: the caller, who donated the buffer, then reads the
  // value in place.
  absl::StatusOr<bool> TryTake(Literal* value, std::shared_ptr<Context>* context) {
    std::unique_lock<std::mutex> lock(mutex_);
    AwaitValue(lock);
    if (state_ == State::kFailed) return status_;
    if (uses_ != 0) return false;
    TakeLocked(value, context);
    return true;
  }
  // Returns the error of a donated buffer, in PJRT's words.
  static absl::Status DeletedError() { return absl::InvalidArgumentError("Buffer has been deleted or donated."); }

  // Requires: Wait returned OK, or a use. Values do not change.
  const Literal& literal() const { return value_; }
  const std::shared_ptr<Context>& context() const { return context_; }

  // Never donated: a cached scalar, or a value with several owners.
  bool read_only = false;
  // Parameter number of this buffer in the program numbered `numbering_epoch`. Guarded by the caller's lock.
  uint64_t numbering_epoch = 0;
  uint32_t parameter_number = 0;

 private:
  enum class State { kPending, kReady, kFailed, kConsumed };

  void GenerateLocked(std::unique_lock<std::mutex>& lock) const {
    if (generator_ == nullptr) return;
    const std::unique_ptr<Generator> generator = std::move(generator_);
    ungenerated_bytes_ = 0;
    lock.unlock();
    absl::StatusOr<Literal> value = generator->generate();
    lock.lock();
    state_ = value.ok() ? State::kReady : State::kFailed;
    if (value.ok()) {
      value_ = *std::move(value);
    } else {
      status_ = value.status();
    }
    changed_.notify_all();
  }
  // Waits until the value is available or failed.
  void AwaitValue(std::unique_lock<std::mutex>& lock) const {
    GenerateLocked(lock);
    changed_.wait(lock, [&] { return state_ != State::kPending; });
  }

  void TakeLocked(Literal* value, std::shared_ptr<Context>* context) {
    *value = std::move(value_);
    *context = std::move(context_);
    state_ = State::kConsumed;
  }

  const std::shared_ptr<DeferredDeallocator> deallocator_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable State state_ = State::kPending;
  mutable DeferredProducer* producer_ = nullptr;  // null after Produce
  mutable std::atomic<int64_t> ungenerated_bytes_{0};
  mutable std::unique_ptr<Generator> generator_;  // null once called
  mutable absl::Status status_;
  std::shared_ptr<Context> context_;
  mutable Literal value_;
  std::atomic<bool> donated_{false};
  mutable std::atomic<int64_t> uses_{0};
};

// A scoped use of a buffer's value; inactive if the buffer was donated before.
class BufferUse {
 public:
  explicit BufferUse(std::shared_ptr<const DeviceBuffer> buffer) {
    if (buffer->BeginUse()) buffer_ = std::move(buffer);
  }
  BufferUse(BufferUse&& other) noexcept : buffer_(std::move(other.buffer_)) {}
  BufferUse& operator=(BufferUse&&) = delete;
  ~BufferUse() {
    if (buffer_ != nullptr) buffer_->EndUse();
  }
  const DeviceBuffer* get() const { return buffer_.get(); }

 private:
  std::shared_ptr<const DeviceBuffer> buffer_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_DEVICE_BUFFER_H_
