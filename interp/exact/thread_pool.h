// SPDX-License-Identifier: Apache-2.0
// Splits a range of independent pieces of work over threads. The pieces are the same whatever the number of threads, so
// results never depend on it.
#ifndef HLOKIT_INTERP_EXACT_THREAD_POOL_H_
#define HLOKIT_INTERP_EXACT_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace hlokit::interp {

class ThreadPool {
 public:
  // `threads` counts the caller; 0: as many as the machine has.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end) over disjoint ranges that cover [0, count), in parallel; returns when all are done. Ranges
  // hold at least `grain` items (the last one may hold fewer). The body must not call ParallelFor of the same pool.
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
  std::unique_ptr<State> state_;  // made when first needed: most programs are too small for threads
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_THREAD_POOL_H_
