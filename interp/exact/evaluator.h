// SPDX-License-Identifier: Apache-2.0
// Runs a module on the reference interpreter.
//
//   DiagnosticSink sink;
//   std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(module, {}, &sink);
//   std::optional<std::vector<Literal>> results = evaluator->Run(arguments, {}, &sink);
//
// Values are exact: integers wrap, floats are rounded once for each instruction (sums of a reduce once for the whole),
// and the same program gives the same bits on every run, whatever the number of threads.
#ifndef HLOKIT_INTERP_EXACT_EVALUATOR_H_
#define HLOKIT_INTERP_EXACT_EVALUATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/custom_calls.h"
#include "interp/exact/execution_observer.h"
#include "interp/exact/host_io.h"
#include "interp/exact/limits.h"
#include "interp/exact/mixed_precision.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/literal_fill.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class DeviceScheduler;

struct EvaluatorOptions {
  // What stands for constants whose text was elided ("{...}"); without it they are errors.
  std::optional<FillKind> fill_elided;
  // Of random constants and of rng.
  uint64_t seed = 0;
  Limits limits;
  // 0: as many as the machine has.
  int num_threads = 0;
  // Must outlive the evaluator.
  const CustomCallRegistry* custom_calls = nullptr;
  MixedPrecisionMode mixed_precision = MixedPrecisionMode::kConvert;
  // Devices: each runs the program on arguments of its own, collectives join them. At least 1, together at most
  // kMaxDevices.
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  static constexpr int64_t kMaxDevices = 4096;
  // The host of infeed, outfeed, send and recv; null: those are errors. Must outlive the evaluator.
  HostIo* host_io = nullptr;
  // Checked all the time, if given: true ends the run with an error that says where it was.
  const std::atomic<bool>* cancel = nullptr;
  // Called ten times a second or so, on the thread that runs.
  std::function<void(const RunProgress&)> progress;
  // What `observer` is shown; it must outlive the evaluator.
  ObservationRequest observation;
  ExecutionObserver* observer = nullptr;
};

// Figures of a run.
struct RunStatistics {
  int64_t steps = 0;       // instructions run, those of called computations included
  int64_t loop_trips = 0;  // of all loops
  int64_t peak_bytes = 0;  // of values
  double seconds = 0;
};

// Arguments that a run may take over.
struct DonatedArguments {
  // By argument; null: it stays the caller's. Those that are given are written over, whatever becomes of the run.
  std::vector<Literal*> donated;
  // By result, set by the run: the argument whose literal it is now; -1: none. Such a result keeps the argument's shape
  // of its context.
  std::vector<int64_t> aliased_argument;
};

// A module made ready to run any number of times, one at a time. The module must outlive it and stay as it is.
class Evaluator {
 public:
  // Null if the module cannot be evaluated; the sink says why. The module should be verified.
  static std::unique_ptr<Evaluator> Prepare(const Module& module, const EvaluatorOptions& options,
                                            DiagnosticSink* sink);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Shapes of the arguments that Run takes and of the results it gives: the array and token leaves of the entry's
  // parameters and of its root, tuples flattened in order. Tokens stand as literals without elements.
  const std::vector<Shape>& argument_shapes() const { return argument_shapes_; }
  const std::vector<Shape>& result_shapes() const { return result_shapes_; }

  int64_t num_devices() const;

  // Arguments of device 0, of device 1, ..., where device `replica * num_partitions + partition` runs one partition of
  // one replica; the results come in the same order. Arguments are read in place. Nullopt after an error.
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);
  // The same with arguments that lie apart.
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  DonatedArguments* donation = nullptr);

  const RunStatistics& statistics() const { return statistics_; }

 private:
  struct State;
  Evaluator();
  std::vector<Literal> TakeResults(DeviceScheduler& set, DonatedArguments* donation);

  std::unique_ptr<State> state_;
  std::vector<Shape> argument_shapes_;
  std::vector<Shape> result_shapes_;
  RunStatistics statistics_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_EVALUATOR_H_
