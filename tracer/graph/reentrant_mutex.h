// SPDX-License-Identifier: Apache-2.0
// A mutex that its owner may lock again, as std::recursive_mutex, with a second lock that costs next to nothing: one
// call of an op locks its device ten times.
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
  // Only this thread writes the address of its own variable, and takes it out before it lets go.
  bool Mine() const { return owner_.load(std::memory_order_relaxed) == &thread_; }

  static inline constinit thread_local char thread_ = 0;

  std::mutex mutex_;
  std::atomic<const char*> owner_{nullptr};
  int64_t again_ = 0;  // the owner's
};

using DeviceLock = std::lock_guard<ReentrantMutex>;

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_REENTRANT_MUTEX_H_
