// SPDX-License-Identifier: Apache-2.0
// Divides a range of independent work items among threads. Chunks depend on the number of threads, so the result of an
// item must not depend on its chunk.
#ifndef HLOKIT_INTERP_PROCESSOR_THREAD_POOL_H_
#define HLOKIT_INTERP_PROCESSOR_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace hlokit::interp {

class ThreadPool {
 public:
  // `threads` includes the caller; 0: one per hardware thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end) over disjoint ranges that cover [0, count), in parallel; returns when all are done. Ranges
  // have at least `grain` items, except the last. The body must not call ParallelFor of the same pool.
  void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
    if (threads_ == 1 || count <= grain) {
      if (count > 0) body(0, count);
      return;
    }
    Run(count, grain, body);
  }

 private:
  struct State;
  void Run(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

  int threads_;
  std::unique_ptr<State> state_;  // created on first use: most programs are too small for threads
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSOR_THREAD_POOL_H_
