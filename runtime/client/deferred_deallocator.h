// SPDX-License-Identifier: Apache-2.0
// Defers deallocation of dead values to the device's thread: returning a hundred megabytes to the system takes longer
// than tracing a step.
#ifndef HLOKIT_RUNTIME_CLIENT_DEFERRED_DEALLOCATOR_H_
#define HLOKIT_RUNTIME_CLIENT_DEFERRED_DEALLOCATOR_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::runtime {

class DeferredDeallocator {
 public:
  // Smaller values are freed at once.
  static constexpr size_t kMinDeferredBytes = size_t{64} << 10;
  // Above this limit the idle device thread is woken.
  static constexpr size_t kMaxPendingBytes = size_t{512} << 20;

  explicit DeferredDeallocator(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Adds a value; `context` owns its shape.
  void Add(Literal value, std::shared_ptr<Context> context) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (wake_ == nullptr) return;  // the device is destroyed
      bytes_ += value.size_bytes();
      values_.emplace_back(std::move(value), std::move(context));
      if (bytes_ > kMaxPendingBytes) wake_();  // takes no lock
      if (bytes_ <= 2 * kMaxPendingBytes) return;
    }
    Free();  // the device's thread is busy or was never started
  }
  bool over_limit() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return bytes_ > kMaxPendingBytes;
  }
  // Frees all pending values.
  void Free() {
    std::vector<std::pair<Literal, std::shared_ptr<Context>>> values;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      values.swap(values_);
      bytes_ = 0;
    }
  }
  // Detaches the device; later values are freed at once.
  void Close() {
    Free();
    std::lock_guard<std::mutex> lock(mutex_);
    wake_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<std::pair<Literal, std::shared_ptr<Context>>> values_;
  size_t bytes_ = 0;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_DEFERRED_DEALLOCATOR_H_
