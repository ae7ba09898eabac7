// SPDX-License-Identifier: Apache-2.0
// Cases of the engine's benchmark: a program and what its time is compared with.
#ifndef HLOKIT_BENCH_ENGINE_CASE_H_
#define HLOKIT_BENCH_ENGINE_CASE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/engine/models.h"

namespace hlokit::bench {

struct Peer {
  enum class Kind : uint8_t {
    kWork,   // a function that does the same work, or that sets a limit
    kTorch,  // the case of this name in PyTorch
    kExact,  // the exact engine
    kPeak,   // multiplications and additions at the machine's rate
    kLimit,  // milliseconds
  };
  Kind kind = Kind::kWork;
  std::string name;
  // Its time over that of the case must be at least this; 0: no goal.
  double goal = 0;
  // The goals of peers with this mark are alternatives: one of them must hold.
  bool alternative = false;
  // Makes the function of kWork; null results are left out.
  std::function<std::function<void()>(int threads, const Module& module)> make = nullptr;
  double times = 1;  // how often kWork is contained in the case
  double limit = 0;  // of kLimit
};

struct Case {
  std::string name;
  std::function<absl::StatusOr<TrainingProgram>()> make;
  std::vector<Peer> peers;
  double flops = 0;
  double per = 1;  // the case does its work so often; times are divided by it
};

// All cases but those of files.
std::vector<Case> EngineCases();
// Compares a file with the exact engine.
Case FileCase(const std::string& file);

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_ENGINE_CASE_H_
