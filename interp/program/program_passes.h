// SPDX-License-Identifier: Apache-2.0
// Passes that a program goes through before it runs.
#ifndef HLOKIT_INTERP_PROGRAM_PROGRAM_PASSES_H_
#define HLOKIT_INTERP_PROGRAM_PROGRAM_PASSES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "passes/core/pass_instrumentation.h"

namespace hlokit::interp {

// Runs passes over a program, in the syntax of hlo-opt --passes, with values of constants from the interpreter.
// `warnings`: gets those of the passes, if not null.
absl::Status RunPasses(const std::string& passes, DiagnosticSink* warnings, Module* module,
                       absl::Span<PassInstrumentation* const> instruments = {});

// Runs passes over a program that is to run, for as many devices as the options say. Elided constants get the values
// that the options say, as if the program itself ran. Between passes it stops, with an error for which IsStopped is
// true, if the options cancel the run or it is out of time; after an error the module is of no use. Requires: the
// module is verified.
absl::Status RunProgramPasses(const std::string& passes, const EvaluatorOptions& options, DiagnosticSink* warnings,
                              Module* module);

// Returns true for the errors of work that was canceled or out of time.
bool IsStopped(const absl::Status& status);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_PROGRAM_PASSES_H_
