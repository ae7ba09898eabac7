// SPDX-License-Identifier: Apache-2.0
// Instrumentations that check the module after each pass.
#ifndef HLOKIT_PASSES_INSTRUMENTATION_EQUIVALENCE_CHECK_H_
#define HLOKIT_PASSES_INSTRUMENTATION_EQUIVALENCE_CHECK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/literal.h"
#include "ir/verify/verifier.h"
#include "passes/core/pass_instrumentation.h"

namespace hlokit {

// Verifies the module after each pass that changed it.
class VerifyEach : public PassInstrumentation {
 public:
  explicit VerifyEach(VerifierOptions options) : options_(options) {}
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

 private:
  VerifierOptions options_;
};

// Evaluates the module before the first pass and after each pass that changed it, and compares the results. Results
// that depend on opcodes that a pass redefines may change once, after that pass.
class EquivalenceCheck : public PassInstrumentation {
 public:
  // Evaluates the module on synthetic arguments, which depend only on the shapes of its parameters.
  using Evaluate = std::function<absl::StatusOr<std::vector<Literal>>(const Module&)>;

  // `tolerance`: of floats, relative to the largest of the array. Nullopt: the largest tolerance of the passes that
  // ran, or else four ulps of the type.
  EquivalenceCheck(Evaluate evaluate, std::optional<double> tolerance)
      : evaluate_(std::move(evaluate)), tolerance_(tolerance) {}

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

 private:
  Evaluate evaluate_;
  std::optional<double> tolerance_;
  double needed_ = -1;  // largest tolerance of the passes that ran
  bool evaluated_ = false;
  std::vector<uint8_t> redefined_;  // by result: the current pass may change it
  std::vector<Literal> results_;
};

// Returns for each result leaf 1 if it depends on an instruction of one of these opcodes.
std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes);

// Returns a description of the differences between results, or "". Integers and pred must be equal; zeros of either
// sign are equal, as are NaNs. `tolerance`: as above, below 0 for nullopt; at least four ulps for every type.
std::string CompareResults(absl::Span<const Literal> before, absl::Span<const Literal> after, double tolerance);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_EQUIVALENCE_CHECK_H_
