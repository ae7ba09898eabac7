// SPDX-License-Identifier: Apache-2.0
// Passes that a program goes through before it runs.
#ifndef HLOKIT_INTERP_PROGRAM_PROGRAM_PASSES_H_
#define HLOKIT_INTERP_PROGRAM_PROGRAM_PASSES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/exact/evaluator.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "passes/core/pass_instrumentation.h"

namespace hlokit::interp {

// Returns the passes for the fast engine: `cpu`, or none if the program draws random numbers in the order of its
// instructions, which passes change, or reads bytes of one type as another one.
std::string PassesForFastEngine(const Module& module, MixedPrecisionMode mode);

// Runs passes over a program, in the syntax of hlo-opt --passes, with values of constants from the interpreter.
// `warnings`: gets those of the passes, if not null.
absl::Status RunPasses(const std::string& passes, DiagnosticSink* warnings, Module* module,
                       absl::Span<PassInstrumentation* const> instruments = {});

// Returns a program after passes, for as many devices as the options say. Elided constants have the values that the
// options say, as if the program itself ran. Between passes it stops, with an error for which IsStopped is true, if the
// options cancel the run or it is out of time. Requires: the module is verified.
absl::StatusOr<std::unique_ptr<Module>> AfterPasses(const Module& module, const std::string& passes,
                                                    const EvaluatorOptions& options, DiagnosticSink* warnings);

// Returns true for the errors of work that was canceled or out of time.
bool IsStopped(const absl::Status& status);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_PROGRAM_PASSES_H_
