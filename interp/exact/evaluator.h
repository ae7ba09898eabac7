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

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class Evaluator : public Engine {
 public:
  // Prepares a module without dynamic dimensions. Returns null if it cannot be evaluated, or every run would take more
  // than the limit of memory, with errors in the sink. The module should be verified. `kernels`: of another engine
  // (kernel_provider.h); null: all are exact.
  static std::unique_ptr<Evaluator> Prepare(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink,
                                            std::shared_ptr<KernelProvider> kernels = nullptr);
  ~Evaluator() override;

  const std::vector<Shape>& argument_shapes() const override { return argument_shapes_; }
  const std::vector<Shape>& result_shapes() const override { return result_shapes_; }
  DeviceRange devices() const override;
  using Engine::RunPointers;
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  DonatedArguments* donation) override;
  const RunStatistics& statistics() const override { return statistics_; }

  PlannedMemory planned_memory() const;

  // Returns the steps of the program as text (program_text.h), with what `describe` says of an instruction's kernel.
  std::string PlanText(const std::function<std::string(InstructionId)>& describe) const;

 private:
  struct State;
  Evaluator();
  bool CheckMemory(DiagnosticSink* sink) const;
  std::vector<Literal> TakeResults(DeviceScheduler& set, DonatedArguments* donation);

  std::unique_ptr<State> state_;
  std::vector<Shape> argument_shapes_;
  std::vector<Shape> result_shapes_;
  RunStatistics statistics_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_EVALUATOR_H_
