// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/instruction_evaluator.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ir/core/first_error.h"
#include "passes/query/extract.h"

namespace hlokit::interp {
namespace {

absl::Status FailureOf(const DiagnosticSink& sink) {
  return absl::FailedPreconditionError(FirstErrorOf(sink, "no value"));
}

}  // namespace

absl::StatusOr<Literal> EvaluateInstruction(Instruction instruction, const EvaluatorOptions& options) {
  if (!instruction.shape().IsArray() || instruction.shape().has_dynamic_dims()) {
    return absl::InvalidArgumentError("expected an array value of a static shape");
  }
  const query::Part part = query::ExtractPart(instruction, [](Instruction) { return false; });
  if (!part.inputs.empty()) return absl::InvalidArgumentError("the value depends on a parameter");
  DiagnosticSink sink;
  const std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(part.module, options, &sink);
  if (evaluator == nullptr) return FailureOf(sink);
  std::optional<std::vector<Literal>> results = evaluator->Run({}, &sink);
  if (!results || results->size() != 1) return FailureOf(sink);
  return std::move((*results)[0]);
}

PassContext EvaluatingContext() {
  EvaluatorOptions options;
  options.num_threads = 1;
  options.limits.max_steps = int64_t{1} << 20;
  options.limits.max_bytes = int64_t{1} << 28;
  PassContext environment;
  environment.evaluate = [options](Instruction instruction) { return EvaluateInstruction(instruction, options); };
  return environment;
}

}  // namespace hlokit::interp
