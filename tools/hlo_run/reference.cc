// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/reference.h"

#include <string>
#include <utility>

#include "check/comparison/value_comparison.h"
#include "interp/program/compile.h"
#include "ir/core/str_cat.h"
#include "tools/hlo_run/values.h"

namespace hlokit::run {
namespace {

// Checks that the program to compare with takes the same leaves.
bool CheckSameArguments(const Flags& flags, const std::vector<Shape>& own, const std::vector<Shape>& other,
                        cli::DiagnosticReporter* diagnostics) {
  std::string message;
  if (own.size() != other.size()) {
    message = StrCat("takes ", other.size(), " arguments; ", flags.path, " takes ", own.size());
  }
  for (size_t n = 0; n < own.size() && message.empty(); ++n) {
    if (own[n].WithoutLayout() == other[n].WithoutLayout()) continue;
    message = StrCat("argument ", n, " is ", ToString(other[n], false), "; that of ", flags.path, " is ",
                     ToString(own[n], false));
  }
  if (!message.empty()) diagnostics->ShowError(flags.compare, message, cli::kRejected);
  return message.empty();
}

// Of values that another engine computed, as XLA compares them.
constexpr double kSnapshotTolerance = 1e-3;

}  // namespace

bool ReadReference(const Flags& flags, const interp::EvaluatorOptions& options, const Program& program,
                   const interp::Executable& executable, cli::DiagnosticReporter* diagnostics, Reference* reference) {
  if (!flags.expect.empty()) {
    std::vector<Shape> shapes;
    for (int64_t d = 0; d < executable.result_devices(); ++d) {
      shapes.insert(shapes.end(), executable.result_shapes().begin(), executable.result_shapes().end());
    }
    reference->values =
        ReadExpectedResults(flags.expect, shapes, executable.result_devices(), *program.module, diagnostics);
    return reference->values.has_value();
  }
  if (flags.compare.empty()) return true;
  reference->program = ReadProgram(flags.compare, flags, program.module->shared_context(), diagnostics);
  if (!reference->program) return false;
  const Program& other = *reference->program;
  interp::CompileOptions compile = CompileOptionsOf(flags);
  compile.partition = false;
  std::optional<interp::LoweredProgram> lowered = LowerProgram(other, compile, options, diagnostics);
  if (!lowered) return false;
  reference->executable = CompileProgram(other, *std::move(lowered), compile, options, diagnostics);
  return reference->executable != nullptr &&
         CheckSameArguments(flags, executable.argument_shapes(), reference->executable->argument_shapes(), diagnostics);
}

void CompareResults(const Flags& flags, const std::vector<Literal>& results, const std::vector<Literal>& expected,
                    cli::DiagnosticReporter* diagnostics) {
  const bool recorded = flags.expect.empty() && flags.compare.empty();
  const std::string& from = recorded ? flags.path : flags.expect.empty() ? flags.compare : flags.expect;
  interp::ErrorSpec tolerance = flags.tolerance;
  if (recorded && !flags.tolerance_given) tolerance.relative = tolerance.absolute = kSnapshotTolerance;
  const absl::StatusOr<interp::ValueDifference> difference = interp::CompareValues(results, expected, tolerance);
  if (!difference.ok()) {
    diagnostics->ShowError(from, std::string(difference.status().message()), cli::kRejected);
    return;
  }
  if (difference->equal()) return;
  diagnostics->ShowError(from,
                         StrCat(difference->different, " of ", difference->elements,
                                " elements differ; the largest difference is ", difference->description),
                         cli::kRejected);
}

}  // namespace hlokit::run
