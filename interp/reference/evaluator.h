// SPDX-License-Identifier: Apache-2.0
// The plain evaluator: a short function an opcode over loops of indices, on one thread, nothing kept and nothing
// reused. It is the definition of values that other engines are held to; interp::Evaluator gives the same much faster.
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
#include "interp/exact/evaluator.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::reference {

struct PreparedProgram;

class Evaluator {
 public:
  // Null if the module cannot be evaluated; the sink says why. The module should be verified, must outlive the
  // evaluator and stay as it is. `options.num_threads` is not looked at.
  static std::unique_ptr<Evaluator> Prepare(const Module& module, const interp::EvaluatorOptions& options,
                                            DiagnosticSink* sink);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Leaves of the entry's parameters and root.
  const std::vector<Shape>& argument_shapes() const { return argument_shapes_; }
  const std::vector<Shape>& result_shapes() const { return result_shapes_; }
  int64_t num_devices() const { return options_.num_replicas * options_.num_partitions; }

  // Arguments of each device in turn; the results come in the same order. Nullopt after an error.
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);

  // The leaves that one instruction gives for these leaves of its operands. Not for control flow, collectives,
  // constants and what has effects.
  absl::StatusOr<std::vector<Literal>> EvaluateOne(Instruction instruction, absl::Span<const Literal> operands);
  static bool CanEvaluateOne(Instruction instruction);

  const interp::RunStatistics& statistics() const { return statistics_; }

 private:
  Evaluator();

  interp::EvaluatorOptions options_;
  std::unique_ptr<PreparedProgram> program_;
  std::vector<Shape> argument_shapes_;
  std::vector<Shape> result_shapes_;
  interp::RunStatistics statistics_;
};

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_EVALUATOR_H_
