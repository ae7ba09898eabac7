// SPDX-License-Identifier: Apache-2.0
// A recursive mutex like std::recursive_mutex whose nested locks are nearly free: one op call locks its device ten
// times.
#ifndef HLOKIT_TRACER_GRAPH_REENTRANT_MUTEX_H_
#define HLOKIT_TRACER_GRAPH_REENTRANT_MUTEX_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace hlokit::lazy {

class ReentrantMutex {
 public:
  ReentrantMutex() = default;
  ReentrantMutex(const ReentrantMutex&) = delete;
  ReentrantMutex& operator=(const ReentrantMutex&) = delete;

  void lock() {
    if (Mine()) {
      ++again_;
      return;
    }
    mutex_.lock();
    owner_.store(&thread_, std::memory_order_relaxed);
  }
  bool try_lock() {
    if (Mine()) {
      ++again_;
      return true;
    }
    if (!mutex_.try_lock()) return false;
    owner_.store(&thread_, std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    if (again_ > 0) {
      --again_;
      return;
    }
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  // Safe without further synchronization: only this thread stores the address of its own variable, and clears it before
  // unlocking.
  bool Mine() const { return owner_.load(std::memory_order_relaxed) == &thread_; }

  static inline constinit thread_local char thread_ = 0;

  std::mutex mutex_;
  std::atomic<const char*> owner_{nullptr};
  int64_t again_ = 0;  // nested locks; guarded by mutex_
};

using DeviceLock = std::lock_guard<ReentrantMutex>;

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_REENTRANT_MUTEX_H_
