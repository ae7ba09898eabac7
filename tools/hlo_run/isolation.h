// SPDX-License-Identifier: Apache-2.0
// --isolate and --replay: which instructions compute other values than in another engine, module or run.
#ifndef HLOKIT_TOOLS_HLO_RUN_ISOLATION_H_
#define HLOKIT_TOOLS_HLO_RUN_ISOLATION_H_

#include <string_view>

#include "absl/types/span.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// A module with its text.
struct IsolatedModule {
  const Module& module;
  const SourceBuffer& source;
};

// Runs the module on the arguments and each of its instructions in the other engine too. Prints those that differ,
// which fails.
void IsolateInEngines(const Flags& flags, const IsolatedModule& input, const interp::EvaluatorOptions& options,
                      absl::Span<const Literal> arguments, cli::DiagnosticReporter* diagnostics);

// Runs the module on the arguments, and each instruction of `other`, a module of the same context, on the values of its
// counterparts in that run.
void IsolateInModules(const Flags& flags, const IsolatedModule& input, const IsolatedModule& other,
                      const interp::EvaluatorOptions& options, absl::Span<const Literal> arguments,
                      cli::DiagnosticReporter* diagnostics);

// Sets `*changed` to the module after --isolate-passes. Returns false after an error, which is printed.
bool ApplyIsolatePasses(const Flags& flags, const Module& module, std::unique_ptr<Module>* changed,
                        cli::DiagnosticReporter* diagnostics);

// Runs each instruction of the module on the values in the directory --replay.
void ReplayDirectory(const Flags& flags, const IsolatedModule& input, const interp::EvaluatorOptions& options,
                     cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ISOLATION_H_
