// SPDX-License-Identifier: Apache-2.0
// Instruments that check the module after each pass.
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

// Evaluates the module before the first pass and after each pass that changed it, and compares what it computes. What
// depends on opcodes that a pass redefines may be something else after it, once.
class EquivalenceCheck : public PassInstrumentation {
 public:
  // The results of the module on arguments that depend on the shapes of its parameters alone.
  using Evaluate = std::function<absl::StatusOr<std::vector<Literal>>(const Module&)>;

  // `tolerance`: of floats, relative to the largest of the array. None: the largest that a pass that ran says it needs,
  // or else four units in the last place of the type.
  EquivalenceCheck(Evaluate evaluate, std::optional<double> tolerance)
      : evaluate_(std::move(evaluate)), tolerance_(tolerance) {}

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

 private:
  Evaluate evaluate_;
  std::optional<double> tolerance_;
  double needed_ = -1;  // by the passes that ran
  bool evaluated_ = false;
  std::vector<uint8_t> redefined_;  // by result: the pass that runs may change it
  std::vector<Literal> results_;
};

// By result, a leaf each: 1 if it depends on an instruction of one of these opcodes.
std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes);

// What differs between results, in words; "" if nothing does. Integers and pred must be equal; zeros of either sign are
// equal, as are NaNs. `tolerance`: as above, below 0 for none; no type is held to more than four units in its last
// place.
std::string CompareResults(absl::Span<const Literal> before, absl::Span<const Literal> after, double tolerance);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_EQUIVALENCE_CHECK_H_
