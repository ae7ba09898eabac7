// SPDX-License-Identifier: Apache-2.0
// Limits of this machine, to which the engine's times are compared: copying memory, and multiplying and adding floats.
#ifndef HLOKIT_BENCH_ENGINE_MACHINE_H_
#define HLOKIT_BENCH_ENGINE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace hlokit::bench {

// A clock for work on `threads` threads: processor time of the process for one, elapsed time for several.
double Milliseconds(int threads);

// Calls work(i) for each i below `threads`, each in a thread.
void InThreads(int threads, const std::function<void(int)>& work);

// Copies an array to another, vector by vector as a generated loop does.
class Copy {
 public:
  // `bytes`: read and written together.
  explicit Copy(int64_t bytes);
  void Run(int threads);

 private:
  size_t floats_;  // of each array, a multiple of 16
  std::unique_ptr<float, void (*)(void*)> from_, to_;
};

// Multiplies and adds in registers. Returns the number of operations of each thread.
double MultiplyAdd(int threads);

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_ENGINE_MACHINE_H_
