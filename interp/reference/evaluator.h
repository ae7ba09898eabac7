// SPDX-License-Identifier: Apache-2.0
// The plain evaluator: a short function per opcode over loops of indices, on one thread, without caching or reuse. It
// defines the values that other engines must match; interp::Evaluator computes the same much faster.
//
//   std::unique_ptr<reference::Evaluator> evaluator = reference::Evaluator::Prepare(module, options, &sink);
//   std::optional<std::vector<Literal>> results = evaluator->Run(arguments, &sink);
//
// Arguments, results, limits and errors are those of interp::Evaluator.
#ifndef HLOKIT_INTERP_REFERENCE_EVALUATOR_H_
#define HLOKIT_INTERP_REFERENCE_EVALUATOR_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::reference {

struct PreparedProgram;

class Evaluator : public interp::Engine {
 public:
  // Prepares a module; one with dynamic dimensions only for EvaluateOne. Returns null if it cannot be evaluated, with
  // errors in the sink. The module should be verified and must outlive the evaluator unchanged. Ignores
  // `options.num_threads`.
  static std::unique_ptr<Evaluator> Prepare(const Module& module, const interp::EvaluatorOptions& options,
                                            DiagnosticSink* sink);
  ~Evaluator() override;

  const std::vector<Shape>& argument_shapes() const override { return argument_shapes_; }
  const std::vector<Shape>& result_shapes() const override { return result_shapes_; }
  // All run in this process.
  interp::DeviceRange devices() const override {
    const int64_t all = options_.num_replicas * options_.num_partitions;
    return {all, 0, all};
  }
  using Engine::RunPointers;
  // Takes no donations.
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  interp::DonatedArguments* donation) override;

  // Evaluates one instruction on these leaves of its operands. Not for control flow, collectives, constants and
  // instructions with side effects.
  absl::StatusOr<std::vector<Literal>> EvaluateOne(Instruction instruction, absl::Span<const Literal> operands);
  static bool CanEvaluateOne(Instruction instruction);

  const interp::RunStatistics& statistics() const override { return statistics_; }

 private:
  Evaluator();
  std::optional<std::vector<Literal>> RunDevices(absl::Span<const Literal* const> arguments, DiagnosticSink* sink);

  interp::EvaluatorOptions options_;
  std::unique_ptr<PreparedProgram> program_;
  std::vector<Shape> argument_shapes_;
  std::vector<Shape> result_shapes_;
  interp::RunStatistics statistics_;
};

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_EVALUATOR_H_
