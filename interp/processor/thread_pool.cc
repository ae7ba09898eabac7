// SPDX-License-Identifier: Apache-2.0
#include "interp/processor/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hlokit::interp {
namespace {

// Waits for a short time, in which waking up a thread would take longer, until the condition holds.
template <typename Condition>
void Spin(Condition holds) {
  constexpr auto kMaxTime = std::chrono::microseconds(20);
  const auto begin = std::chrono::steady_clock::now();
  while (!holds()) {
    for (int i = 0; i < 16; ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    if (std::chrono::steady_clock::now() - begin > kMaxTime) return;
  }
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable start;
  std::condition_variable done;
  // Written with the mutex, and read without it while spinning.
  std::atomic<uint64_t> round{0};  // incremented by each ParallelFor
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};  // workers in the round
  bool open = false;            // the round may have work left
  bool spins = false;           // each thread has a processor of its own

  // Work of the round.
  const absl::FunctionRef<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0;
  int64_t grain = 0;
  std::atomic<int64_t> next{0};
  std::exception_ptr error;

  std::vector<std::thread> workers;

  void Work() {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      (*body)(begin, std::min(begin + grain, count));
    }
  }

  // Work, whose exception, such as that there is no memory, is thrown by Run once no thread is in `body`.
  void WorkOrFail() {
    try {
      Work();
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::lock_guard<std::mutex> lock(mutex);
      if (error == nullptr) error = std::current_exception();
    }
  }

  void WorkerMain() {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      if (spins && seen != 0) {
        lock.unlock();
        Spin([&] { return stop.load(std::memory_order_relaxed) || round.load(std::memory_order_relaxed) != seen; });
        lock.lock();
      }
      start.wait(lock, [&] { return stop || (open && round != seen); });
      if (stop) return;
      seen = round;
      ++running;
      lock.unlock();
      WorkOrFail();
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

ThreadPool::~ThreadPool() {
  if (state_ == nullptr) return;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stop = true;
  }
  state_->start.notify_all();
  for (std::thread& t : state_->workers) t.join();
}

void ThreadPool::Run(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (state_ == nullptr) {
    state_ = std::make_unique<State>();
    state_->spins = threads_ <= static_cast<int>(std::thread::hardware_concurrency());
    try {
      for (int i = 1; i < threads_; ++i) state_->workers.emplace_back([s = state_.get()] { s->WorkerMain(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that there are do all.
    }
  }
  State& s = *state_;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.body = &body;
    s.count = count;
    // Four chunks a thread balance uneven progress at little cost.
    s.grain = std::max(grain, (count + 4 * threads_ - 1) / (4 * threads_));
    s.next.store(0, std::memory_order_relaxed);
    s.open = true;
    ++s.round;
  }
  s.start.notify_all();
  s.WorkOrFail();
  // No work is left: do not wait for workers that have not woken up yet.
  std::unique_lock<std::mutex> lock(s.mutex);
  s.open = false;
  if (s.spins && s.running != 0) {
    lock.unlock();
    Spin([&] { return s.running.load(std::memory_order_relaxed) == 0; });
    lock.lock();
  }
  s.done.wait(lock, [&] { return s.running == 0; });
  if (s.error != nullptr) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace hlokit::interp
