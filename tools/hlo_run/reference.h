// SPDX-License-Identifier: Apache-2.0
// What results are compared with: --expect, --compare, or what a snapshot recorded.
#ifndef HLOKIT_TOOLS_HLO_RUN_REFERENCE_H_
#define HLOKIT_TOOLS_HLO_RUN_REFERENCE_H_

#include <memory>
#include <optional>
#include <vector>

#include "interp/program/executable.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/flags.h"
#include "tools/hlo_run/program.h"

namespace hlokit::run {

// Given values, or another program that computes them.
struct Reference {
  std::optional<std::vector<Literal>> values;
  std::optional<Program> program;
  std::unique_ptr<interp::Executable> executable;

  bool any() const { return values.has_value() || executable != nullptr; }
};

// Reads the reference that the flags name before the run, so that errors appear early. Returns false after an error.
bool ReadReference(const Flags& flags, const interp::EvaluatorOptions& options, const Program& program,
                   const interp::Executable& executable, cli::DiagnosticReporter* diagnostics, Reference* reference);

// Compares the results within the tolerance; differences are an error.
void CompareResults(const Flags& flags, const std::vector<Literal>& results, const std::vector<Literal>& expected,
                    cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_REFERENCE_H_
