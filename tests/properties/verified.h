// SPDX-License-Identifier: Apache-2.0
// Runs and checks of passes that property tests share.
#ifndef HLOKIT_TESTS_PROPERTIES_VERIFIED_H_
#define HLOKIT_TESTS_PROPERTIES_VERIFIED_H_

#include <string>

#include "interp/exact/instruction_evaluator.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/verify/verifier.h"
#include "passes/core/pipeline.h"

namespace hlokit {

inline PipelineOptions WithEvaluator() { return {.context = interp::EvaluatingContext()}; }

// Returns the first error of the verifier, or "".
inline std::string Problems(const Module& module) {
  DiagnosticSink sink;
  VerifyModule(module, VerifierOptions(), &sink);
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) return d.message;
  }
  return "";
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_PROPERTIES_VERIFIED_H_
