// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/bisection.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "check/bisection/pass_bisection.h"
#include "check/bisection/reduced_program.h"
#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "passes/reduce/reduction.h"
#include "tools/cli/crash/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text/shell_word.h"

namespace hlokit::run {
namespace {

interp::BisectionOptions OptionsOf(const Flags& flags, cli::ProgressLine* line) {
  interp::BisectionOptions options;
  options.run.seed = flags.seed.value_or(0);
  options.run.max_seconds = flags.options.limits.max_seconds;
  if (flags.tolerance_given) options.run.tolerance = interp::Tolerance::OfAllTypes(flags.tolerance);
  options.pipeline.context = interp::EvaluatingContext();
  if (flags.progress && cli::ProgressLine::IsEnabled()) {
    options.progress = [line](std::string_view what) { line->Show(StrCat("running the module ", what)); };
  }
  return options;
}

// Returns a small module whose results the pass changes.
absl::StatusOr<std::string> Reduced(const Flags& flags, const interp::BisectionResult& found) {
  cli::ProgressLine line;
  reduce::ReductionOptions reduction;
  reduction.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::atomic<bool>* const interrupted = cli::InstallInterruptHandler();
  reduction.stop = [interrupted] { return interrupted->load(); };
  if (flags.progress && cli::ProgressLine::IsEnabled()) {
    reduction.progress = [&](const reduce::ReductionProgress& progress, const std::string*) {
      line.Show(absl::StrFormat("reducing: %d tests, %d instructions", progress.tests, progress.size.instructions));
    };
  }
  absl::StatusOr<std::string> text = interp::ReduceBeforePass(found, OptionsOf(flags, &line), std::move(reduction));
  line.Clear();
  return text;
}

}  // namespace

void BisectModule(const Flags& flags, const Module& module, cli::DiagnosticReporter* diagnostics) {
  cli::ProgressLine line;
  const absl::StatusOr<interp::BisectionResult> found =
      interp::BisectPasses(module, flags.bisect_passes, OptionsOf(flags, &line));
  line.Clear();
  if (!found.ok()) {
    diagnostics->ShowError(flags.path, std::string(found.status().message()), cli::kRejected);
    return;
  }
  if (!found->differs) {
    std::cout << (found->compared ? "same results" : "no result compared") << " after "
              << Counted(found->passes, "pass", "passes") << " that changed the module"
              << (found->uncompared.empty() ? "" : "; ") << found->uncompared << "\n";
    return;
  }
  std::string text = StrCat("pass ", found->number, ": ", found->pass,
                            found->group.empty() ? "" : StrCat(" (in ", found->group, ")"), "\n");
  if (found->rewrite > 0) {
    StrAppend(&text, "rewrite ", found->rewrite, " of ", found->rewrites, ": ", found->rule, "\n  of ",
              found->instruction, "\n");
  }
  StrAppend(&text, "difference: ", found->difference, "\n");
  StrAppend(&text, "again: hlo-opt --passes=", cli::ShellWord(flags.bisect_passes), " --bisect-limit=", found->number,
            found->rewrite > 0 ? StrCat(" --bisect-rewrites=", found->rewrite) : "", " ", cli::ShellWord(flags.path),
            "\n");
  std::cout << text << std::flush;
  diagnostics->Fail(cli::kRejected);
  if (flags.bisect_output.empty()) return;
  std::string module_text = found->before;
  if (flags.bisect_reduce) {
    absl::StatusOr<std::string> reduced = Reduced(flags, *found);
    if (reduced.ok()) {
      module_text = *std::move(reduced);
    } else {
      std::cerr << "hlo-run: warning: the module before the pass is not reduced: the pass alone does not change its "
                   "results ("
                << reduced.status().message() << ")\n";
    }
  }
  cli::WriteOutputFile(flags.bisect_output, diagnostics, [&](TextWriter& out) { out << module_text; });
}

}  // namespace hlokit::run
