// SPDX-License-Identifier: Apache-2.0
// Reads arguments and writes results of a run.
#ifndef HLOKIT_TOOLS_HLO_RUN_VALUES_H_
#define HLOKIT_TOOLS_HLO_RUN_VALUES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/program/executable.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// Returns the arguments that the flags specify. Nullopt after an error. Synthetic arguments are subject to the limits
// of `options` on memory and time, and to its cancellation.
std::optional<std::vector<Literal>> ReadRunArguments(const Flags& flags, const interp::EvaluatorOptions& options,
                                                     const Module& module, const interp::Executable& executable,
                                                     cli::DiagnosticReporter* diagnostics);

// Prints that the flags specify no arguments for a program with `count` of them.
void ShowMissingArguments(const Flags& flags, int64_t count, cli::DiagnosticReporter* diagnostics);

// Reads expected results of `shapes`, those of each device in turn, from text or a file of arrays.
std::optional<std::vector<Literal>> ReadExpectedResults(const std::string& path, absl::Span<const Shape> shapes,
                                                        int64_t devices, const Module& module,
                                                        cli::DiagnosticReporter* diagnostics);

// Prints the results and writes their files as the flags specify. Returns false after an error.
// `options`: of the run. `shapes`: those of one device's results in the program; empty: those of the literals.
// `devices`: those that have results, one after another. `whole`: the results are of the program before partitioning.
bool WriteResults(const Flags& flags, const interp::EvaluatorOptions& options, absl::Span<const Literal> results,
                  absl::Span<const Shape> shapes, int64_t devices, bool whole, cli::DiagnosticReporter* diagnostics);

// Warns, at the root of the entry, if synthetic arguments led to results with NaNs or infinities.
void WarnOfNonfinite(const Flags& flags, const Module& module, absl::Span<const Literal> results, DiagnosticSink* sink);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_VALUES_H_
