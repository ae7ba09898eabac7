// SPDX-License-Identifier: Apache-2.0
// Work on the items of a list on several threads, with the results in the order of the items: what is printed does not
// depend on the threads. A few results for each thread wait at most, so that memory does not grow with the list.
#ifndef HLOKIT_IR_CORE_ORDERED_WORK_H_
#define HLOKIT_IR_CORE_ORDERED_WORK_H_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "ir/core/thread_group.h"

namespace hlokit {

// Calls `use(work(k))` for k from 0 to `count` in order, on this thread; `work` is called by `threads` threads (0: one
// for each core), ahead of that. Throws what `work` or `use` throws,
// after all threads have ended.
template <typename Work, typename Use>
void WorkInOrder(size_t count, size_t threads, const Work& work, const Use& use) {
  using Result = std::invoke_result_t<const Work&, size_t>;
  const size_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  const size_t workers = std::min(wanted, count);
  const auto work_here = [&] {
    for (size_t k = 0; k < count; ++k) use(work(k));
  };
  if (workers <= 1) return work_here();
  constexpr size_t kAhead = 4;  // results for each thread that wait
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Result>> results(count);
  size_t next = 0, used = 0;
  bool failed = false;
  const auto run = [&] {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return failed || next == count || next < used + kAhead * workers; });
      if (failed || next == count) return;
      const size_t mine = next++;
      lock.unlock();
      std::unique_ptr<Result> result;
      try {
        result = std::make_unique<Result>(work(mine));
      } catch (...) {
        lock.lock();
        failed = true;  // there is no memory for it; Join throws that
        changed.notify_all();
        throw;
      }
      lock.lock();
      results[mine] = std::move(result);
      changed.notify_all();
    }
  };
  ThreadGroup group;
  // However this function is left, the threads end before the group waits for them.
  const absl::Cleanup end = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    failed = true;
    changed.notify_all();
  };
  for (size_t t = 0; t < workers; ++t) {
    if (!group.Start(run)) break;  // those that there are work on all
  }
  if (group.size() == 0) return work_here();
  for (size_t k = 0; k < count; ++k) {
    std::unique_ptr<Result> result;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return results[k] != nullptr || failed; });
      if (results[k] == nullptr) break;
      result = std::move(results[k]);
      ++used;
      changed.notify_all();
    }
    use(*std::move(result));
  }
  group.Join();
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_ORDERED_WORK_H_
