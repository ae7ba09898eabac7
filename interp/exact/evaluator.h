// SPDX-License-Identifier: Apache-2.0
// Runs a module on the exact engine.
//
//   DiagnosticSink sink;
//   std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(module, {}, &sink);
//   std::optional<std::vector<Literal>> results = evaluator->Run(arguments, &sink);
//
// Values are exact: integers wrap, floats are rounded once for each instruction (accumulations of a reduce once at the
// end), and the same program gives the same bits on every run, independent of the number of threads.
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
#include "interp/custom_calls/custom_calls.h"
#include "interp/exact/builder/mixed_precision.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/interface/execution_observer.h"
#include "interp/interface/host_io.h"
#include "interp/interface/limits.h"
#include "interp/processes/world.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/literal_fill.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

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
  // Kernels of another engine; null: all kernels are exact.
  std::shared_ptr<KernelProvider> kernels;
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

// A prepared module, which can run any number of times, one run at a time. The module must outlive it unchanged.
class Evaluator {
 public:
  // Prepares a module. Returns null if it cannot be evaluated, or every run would take more than the limit of memory,
  // with errors in the sink. The module should be verified.
  static std::unique_ptr<Evaluator> Prepare(const Module& module, const EvaluatorOptions& options,
                                            DiagnosticSink* sink);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Shapes of the arguments and results of Run: the array and token leaves of the entry's parameters and of its root,
  // tuples flattened in order. Tokens are literals without elements. Where a dimension is dynamic, the literals have
  // its size: an f32[5] for f32[<=8].
  const std::vector<Shape>& argument_shapes() const { return argument_shapes_; }
  const std::vector<Shape>& result_shapes() const { return result_shapes_; }

  // Number of devices, and those of this process: [first_device(), first_device() + num_local_devices()).
  int64_t num_devices() const;
  int64_t first_device() const;
  int64_t num_local_devices() const;

  // Runs the module. Arguments of device 0, of device 1, ..., where device `replica * num_partitions + partition` runs
  // one partition of one replica; of the devices of this process only. Results have the same order. Arguments are read
  // in place. Returns nullopt after an error.
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);
  // Runs the module with arguments that are not contiguous.
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  DonatedArguments* donation = nullptr);

  const RunStatistics& statistics() const { return statistics_; }
  PlannedMemory planned_memory() const;

  // The module that runs: of one with dynamic dimensions the static one in its place, whose instructions kernels have.
  const Module& program_module() const;
  // Returns the steps of the program as text (program_text.h), with what `describe` says of an instruction's kernel.
  std::string PlanText(const std::function<std::string(InstructionId)>& describe) const;

 private:
  struct State;
  Evaluator();
  bool CheckMemory(DiagnosticSink* sink) const;
  // For programs with dynamic dimensions.
  bool PrepareSized(DiagnosticSink* sink);
  std::optional<std::vector<Literal>> RunSized(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                               DonatedArguments* donation);
  std::vector<Literal> TakeResults(DeviceScheduler& set, DonatedArguments* donation);

  std::unique_ptr<State> state_;
  std::vector<Shape> argument_shapes_;
  std::vector<Shape> result_shapes_;
  RunStatistics statistics_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_EVALUATOR_H_
