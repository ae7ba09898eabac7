// SPDX-License-Identifier: Apache-2.0
// --isolate and --replay: which instructions compute other values than in another engine, module or run.
#ifndef HLOKIT_TOOLS_HLO_RUN_ISOLATION_H_
#define HLOKIT_TOOLS_HLO_RUN_ISOLATION_H_

#include "absl/types/span.h"
#include "interp/interface/evaluator_options.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/flags.h"
#include "tools/hlo_run/program.h"

namespace hlokit::run {

// Runs the program on the arguments, and compares each instruction: with the other engine, or with the module of
// --compare or --isolate-passes. Prints those that differ, which fails.
void Isolate(const Flags& flags, const Program& program, const interp::EvaluatorOptions& options,
             absl::Span<const Literal> arguments, cli::DiagnosticReporter* diagnostics);

// Runs each instruction of the program on the values in the directory --replay.
void ReplayDirectory(const Flags& flags, const Program& program, const interp::EvaluatorOptions& options,
                     cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ISOLATION_H_
