// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_INSTRUMENTATION_VERIFY_EACH_H_
#define HLOKIT_PASSES_INSTRUMENTATION_VERIFY_EACH_H_

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

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_VERIFY_EACH_H_
