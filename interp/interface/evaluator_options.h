// SPDX-License-Identifier: Apache-2.0
// How an engine runs a module, and what it says of a run.
#ifndef HLOKIT_INTERP_INTERFACE_EVALUATOR_OPTIONS_H_
#define HLOKIT_INTERP_INTERFACE_EVALUATOR_OPTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "interp/interface/custom_call_registry.h"
#include "interp/interface/execution_observer.h"
#include "interp/interface/host_io.h"
#include "interp/interface/limits.h"
#include "interp/interface/mixed_precision.h"
#include "ir/graph/literal_fill.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class World;  // interp/processes

struct EvaluatorOptions {
  // Values of constants whose text is elided ("{...}"); unset: they are errors.
  std::optional<FillKind> fill_elided;
  // Seed of random constants and of rng.
  uint64_t seed = 0;
  Limits limits;
  // 0: one per hardware thread.
  int num_threads = 0;
  // Must outlive the evaluator.
  const CustomCallRegistry* custom_calls = nullptr;
  MixedPrecisionMode mixed_precision = MixedPrecisionMode::kConvert;
  // Number of devices: each runs the program on arguments of its own and takes part in collectives. At least 1; their
  // product at most kMaxDevices.
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  static constexpr int64_t kMaxDevices = 4096;
  // The processes among which the devices are divided; null: this one has all. Must outlive the evaluator.
  World* world = nullptr;
  // By id of an instruction; empty: 0. Collectives with the same number, unless it is 0, are one collective, which each
  // device enters at one of them. They have the same attributes and shapes, and take part in one process.
  std::vector<int64_t> collective_numbers;
  // Host side of infeed, outfeed, send and recv; null: those are errors. Must outlive the evaluator.
  HostIo* host_io = nullptr;
  // Polled during the run, if not null: true ends the run with an error that names the position.
  const std::atomic<bool>* cancel = nullptr;
  // Called about ten times a second on the running thread.
  std::function<void(const RunProgress&)> progress;
  // Values that `observer` receives. The observer must outlive the evaluator.
  ObservationRequest observation;
  ExecutionObserver* observer = nullptr;
};

// Metrics of a run.
struct RunStatistics {
  int64_t steps = 0;            // instructions run, including those of called computations
  int64_t loop_iterations = 0;  // of all loops
  int64_t peak_bytes = 0;       // of live values, in blocks
  // Of live values alone, which no placement of blocks goes below; of the memory that the system gave for them, and the
  // number of times that it did.
  int64_t peak_live_bytes = 0;
  int64_t peak_held_bytes = 0;
  int64_t system_allocations = 0;
  double seconds = 0;
};

// Arguments that a run may reuse.
struct DonatedArguments {
  // By argument; null: not donated. Donated arguments are overwritten even if the run fails.
  std::vector<Literal*> donated;
  // By result, set by the run: the argument whose literal it reuses, or -1. Such a result keeps the shape of the
  // argument in its context.
  std::vector<int64_t> aliased_argument;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_INTERFACE_EVALUATOR_OPTIONS_H_
