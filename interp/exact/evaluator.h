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
#include "interp/exact/program/exact_fwd.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

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
