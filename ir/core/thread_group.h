// SPDX-License-Identifier: Apache-2.0
// Threads that are joined wherever a function is left. The system may give no thread, and memory may run out in one:
// both are errors of the caller, never the end of the process or an endless wait.
#ifndef HLOKIT_IR_CORE_THREAD_GROUP_H_
#define HLOKIT_IR_CORE_THREAD_GROUP_H_

#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hlokit {

class ThreadGroup {
 public:
  ThreadGroup() = default;
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  ~ThreadGroup() { Wait(); }

  // Runs `work` in a thread. Returns false if the system gives none.
  template <typename Work>
  bool Start(Work work) {
    try {
      threads_.emplace_back([this, work = std::move(work)]() mutable {
        try {
          work();
        } catch (...) {
          const std::lock_guard<std::mutex> lock(mutex_);
          if (error_ == nullptr) error_ = std::current_exception();
        }
      });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  // Waits for the last one that was started.
  void JoinLast() { threads_.back().join(); }
  // Waits for all. Throws the first exception that ended one, such as std::bad_alloc.
  void Join() {
    Wait();
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  size_t size() const { return threads_.size(); }

 private:
  void Wait() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    threads_.clear();
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_THREAD_GROUP_H_
