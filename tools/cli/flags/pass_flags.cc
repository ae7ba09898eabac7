// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/pass_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "interp/exact/instruction_evaluator.h"
#include "io/stores/store_url.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "passes/annotations/text.h"
#include "passes/core/pass_error.h"
#include "passes/documentation/documentation.h"
#include "passes/dumps/pass_dump.h"
#include "passes/instrumentation/verify_each.h"
#include "passes/remarks/remark_text.h"
#include "tools/cli/flags/custom_call_flag.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text/regex.h"

namespace hlokit::cli {
namespace {

void WriteError(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::function<bool(std::string_view)> Matcher(const std::string& pattern, bool all) {
  if (all) return [](std::string_view) { return true; };
  if (pattern.empty()) return nullptr;
  const auto regex = CompileWholeRegex(pattern);
  return regex.ok() ? *regex : nullptr;  // Prepare has checked it
}

}  // namespace

void PassFlags::AddFlags(CLI::App* app) {
  app->add_option("--passes", passes_,
                  "passes to run: algsimp,cse,group(licm,dce)*,fusion{max-operands=16}; * repeats until nothing "
                  "changes; named pipelines (simplify, ...) are used like passes; '' runs none")
      ->type_name("PIPELINE");
  AddStubCustomCalls(app);
  app->add_flag("--list-passes{text}", list_passes_, "print the passes and pipelines and exit; =markdown: in full")
      ->check(CLI::IsMember({"text", "markdown"}));
  app->add_flag("--list-remarks", list_remarks_, "print the rules of --remarks as a table in Markdown and exit");
  app->add_flag(
         "--print-pipeline{short}", print_pipeline_,
         "print the pipeline of --passes in canonical form and exit; =expanded: with the passes of named pipelines")
      ->check(CLI::IsMember({"short", "expanded"}));
  app->add_flag("--verify-each,!--no-verify-each", verify_each_, "check the module after each pass (default on)");
  app->add_flag("--time-passes{text}", time_passes_, "print the time of each pass on standard error; =json: as JSON")
      ->check(CLI::IsMember({"text", "json"}));
  app->add_flag("--stats{text}", stats_, "print statistics of each pass on standard error; =json: as JSON")
      ->check(CLI::IsMember({"text", "json"}));
  app->add_option("--print-before", print_before_,
                  "print the module before passes whose whole name matches the expression")
      ->type_name("PASS");
  app->add_option("--print-after", print_after_,
                  "print the module after passes whose whole name matches the expression")
      ->type_name("PASS");
  app->add_flag("--print-before-all", print_before_all_, "print the module before each pass");
  app->add_flag("--print-after-all", print_after_all_, "print the module after each pass");
  app->add_flag("--print-changed{whole}", print_changed_,
                "print the module after passes that changed it; =diff: only what changed")
      ->check(CLI::IsMember({"whole", "diff"}));
  CLI::Option* const bisect =
      AddNumber(app, "--bisect-limit,--opt-bisect-limit", &bisect_limit_, "run this many passes and skip the rest", 0);
  AddNumber(app, "--bisect-rewrites", &bisect_rewrites_, "of the last of these passes, apply this many rewrites", 0)
      ->needs(bisect);
  CLI::Option* const run =
      app->add_flag("--run-before-after,--check-equivalence", run_before_after_,
                    "run the module on synthetic arguments before the passes and after each, and compare the results");
  app->add_option(
         "--run-tolerance,--equivalence-tolerance", run_tolerance_,
         "tolerance of that comparison: a relative error; ulp:N, rel:X or abs:X or several separated by commas, "
         "of which one must hold; or these for types, as in 'f32=1e-5;bf16=rel:1e-2,abs:1e-2'. By default a few "
         "units in the last place, and after passes that declare a tolerance that one")
      ->type_name("SPEC")
      ->needs(run);
  AddNumber(app, "--run-inputs,--equivalence-inputs", &run_.inputs, "number of sets of synthetic arguments", 1, 1000)
      ->capture_default_str()
      ->needs(run);
  AddNumber(app, "--run-seed,--equivalence-seed,--seed", &run_.seed,
            "seed of the first set; the others count up from it")
      ->capture_default_str()
      ->needs(run);
  app->add_flag("--run-special-values,--equivalence-special-values", run_.special_values,
                "also run on arguments with NaN, infinities, zeros of either sign, denormals and extremes")
      ->needs(run);
  AddNumber(app, "--run-max-seconds,--equivalence-max-seconds", &run_.max_seconds, "time limit of one such run", 0)
      ->capture_default_str()
      ->needs(run);
  app->add_option("--crash-reproducer,--pass-pipeline-crash-reproducer", crash_reproducer_,
                  "write the module and the pass to this file if a pass fails, produces an invalid module or crashes")
      ->type_name("FILE");
  app->add_option(
         "--dump-to,--xla-dump-to", dump_to_,
         "write the module before and after the pipeline, and after each pass that changes it, to this directory, "
         "with the names of XLA's dumps, for hlo-inspect dump-dir; s3://, gs:// and az:// too (docs/cache.md)")
      ->type_name("DIR");
  remarks_.AddFlags(app);
  AddNumber(app, "--max-iterations", &max_rounds_, "limit on the iterations of a `*` in the pipeline", 1)
      ->capture_default_str();
}

std::optional<int> PassFlags::Prepare(std::string_view tool) {
  if (!list_passes_.empty()) {
    return PrintText(list_passes_ == "markdown" ? PassesAsMarkdown(PassRegistry::Get())
                                                : PassesAsText(PassRegistry::Get()));
  }
  if (list_remarks_) return PrintText(RemarkRulesAsMarkdown());
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(passes_);
  if (!pipeline.ok()) return UsageError(tool, std::string(pipeline.status().message()));
  pipeline_ = *std::move(pipeline);
  if (!print_pipeline_.empty()) {
    return PrintText(pipeline_->ToString(print_pipeline_ == "expanded") + "\n");
  }
  if (pipeline_->empty() && !FlagWithoutPasses().empty()) {
    WriteError(StrCat(tool, ": warning: ", FlagWithoutPasses(), " has no effect without --passes\n"));
  }
  for (const auto& [flag, pattern] : {std::pair("--print-before", &print_before_), {"--print-after", &print_after_}}) {
    if (const std::optional<int> code = CheckPattern(tool, flag, *pattern)) return code;
  }
  if (run_tolerance_) {
    const absl::StatusOr<interp::Tolerance> tolerance = interp::Tolerance::Parse(*run_tolerance_);
    if (!tolerance.ok())
      return UsageError(tool, StrCat("--run-tolerance: ", std::string(tolerance.status().message())));
    run_.tolerance = *tolerance;
  }
  if (IsStoreUrl(crash_reproducer_)) {
    return UsageError(tool, "--crash-reproducer: expected a local file, which a program that crashes can write");
  }
  if (const std::optional<int> code = remarks_.Prepare(tool)) return code;
  if (!time_passes_.empty()) timing_ = std::make_unique<TimePasses>();
  if (!stats_.empty()) statistics_ = std::make_unique<PassStatistics>();
  if (!crash_reproducer_.empty()) reproducer_ = std::make_unique<CrashReproducer>(crash_reproducer_);
  return std::nullopt;
}

std::string_view PassFlags::FlagWithoutPasses() const {
  const std::pair<std::string_view, bool> given[] = {{"--time-passes", !time_passes_.empty()},
                                                     {"--stats", !stats_.empty()},
                                                     {"--print-before", !print_before_.empty()},
                                                     {"--print-after", !print_after_.empty()},
                                                     {"--print-before-all", print_before_all_},
                                                     {"--print-after-all", print_after_all_},
                                                     {"--print-changed", !print_changed_.empty()},
                                                     {"--bisect-limit", bisect_limit_ >= 0},
                                                     {"--run-before-after", run_before_after_},
                                                     {"--crash-reproducer", !crash_reproducer_.empty()},
                                                     {"--dump-to", !dump_to_.empty()},
                                                     {remarks_.given(), !remarks_.given().empty()}};
  for (const auto& [flag, is_given] : given) {
    if (is_given) return flag;
  }
  return "";
}

std::optional<int> PassFlags::CheckPattern(std::string_view tool, std::string_view flag,
                                           const std::string& pattern) const {
  if (pattern.empty()) return std::nullopt;
  const auto matches = CompileWholeRegex(pattern);
  if (!matches.ok()) return UsageError(tool, StrCat(flag, ": ", std::string(matches.status().message())));
  std::vector<std::string_view> names;
  for (const PassInfo* pass : pipeline_->passes()) {
    if ((*matches)(pass->name)) return std::nullopt;
    names.push_back(pass->name);
  }
  if (pipeline_->empty()) return std::nullopt;  // there is a warning of that
  return UsageError(tool, StrCat(flag, ": `", pattern, "` matches no pass of the pipeline as a whole",
                                 DidYouMeanSuffix(pattern, names)));
}

bool PassFlags::Run(Module& module, const VerifierOptions& verifier, bool verify, const InputPart& part,
                    DiagnosticReporter* diagnostics) {
  const std::string label = part.label();
  PrintIr::Options printing;
  printing.before = Matcher(print_before_, print_before_all_);
  printing.after = Matcher(print_after_, print_after_all_ || (!print_changed_.empty() && print_after_.empty()));
  if (!print_changed_.empty()) {
    printing.changes = print_changed_ == "diff" ? PrintIr::Changes::kDiff : PrintIr::Changes::kFull;
  }
  // As modules are printed: to a file with everything.
  printing.form = isatty(STDERR_FILENO) != 0 ? PrintOptions::Default() : PrintOptions::Lossless();
  PrintIr print(printing, WriteError);
  VerifyEach verify_each(verifier);
  RewriteLimit rewrites;
  OptBisect bisect(bisect_limit_, bisect_rewrites_, &rewrites, WriteError);
  interp::EquivalenceCheck run(run_);
  // Hooks run in this order: the timer starts after the other hooks that run before a pass.
  std::vector<PassInstrumentation*> instruments;
  dump::PassDump pass_dump(dump_to_, dumped_modules_, module);
  if (!dump_to_.empty()) {
    if (!CreateDirectories(dump_to_, diagnostics)) return false;
    ++dumped_modules_;
    instruments.push_back(&pass_dump);
  }
  if (bisect_limit_ >= 0) instruments.push_back(&bisect);
  if (reproducer_ != nullptr) instruments.push_back(reproducer_.get());
  if (printing.before || printing.after) instruments.push_back(&print);
  if (run_before_after_) instruments.push_back(&run);
  if (statistics_ != nullptr) instruments.push_back(statistics_.get());
  if (timing_ != nullptr) instruments.push_back(timing_.get());
  if (verify && verify_each_) instruments.push_back(&verify_each);

  ReadMetadataSources(module);
  PipelineOptions options;
  options.max_iterations = max_rounds_;
  options.context = interp::EvaluatingContext();
  if (bisect_limit_ >= 0) options.context.rewrites = &rewrites;
  options.context.compile_regex = CompileRegex;
  DiagnosticSink warnings;
  options.context.diagnostics = &warnings;
  options.context.remarks = remarks_.collector();
  const auto report = [&](const absl::Status& status) {
    if (!status.ok()) diagnostics->ShowOutputError(status);
    return status.ok();
  };
  if (!dump_to_.empty() && !report(pass_dump.Begin(module))) return false;
  const absl::StatusOr<Pipeline::Result> result = pipeline_->Run(module, options, instruments);
  diagnostics->Show(warnings, *part.source);
  if (!result.ok()) {
    const ExitCode code = absl::IsInternal(result.status()) ? kInternal : kRejected;
    if (const std::optional<SourceRange> place = PlaceOf(result.status()); place && code == kRejected) {
      DiagnosticSink located;
      located.Error(DiagnosticKind::kUnsupported, *place, std::string(result.status().message()));
      diagnostics->Show(located, *part.source);
    } else {
      diagnostics->ShowError(label, std::string(result.status().message()), code);
    }
    if (reproducer_ == nullptr) return false;
    if (const absl::Status status = reproducer_->Write(); !status.ok()) {
      diagnostics->ShowOutputError(status);
    } else {
      WriteError(StrCat(label, ": note: the module before that pass was written to ", crash_reproducer_, "\n"));
    }
    return false;
  }
  for (const std::string& group : result->not_converged) {
    WriteError(StrCat(label, ": warning: `", group, "` still changed the module after ", max_rounds_,
                      " iterations (--max-iterations)\n"));
  }
  if (!dump_to_.empty() && !report(pass_dump.End(module))) return false;
  WriteMetadataSources(module);
  if (run_before_after_) WriteError(StrCat(label, ": note: ", run.Summary(), "\n"));
  return true;
}

void PassFlags::PrintReports(DiagnosticReporter* diagnostics) const {
  remarks_.Write(/*elsewhere=*/false, diagnostics);
  if (timing_ != nullptr && statistics_ != nullptr && time_passes_ == "json" && stats_ == "json") {
    // One document.
    WriteError(StrCat("{\"times\": ", timing_->Json(), ",\"statistics\": ", statistics_->Json(), "}\n"));
    return;
  }
  if (timing_ != nullptr) WriteError(time_passes_ == "json" ? timing_->Json() : timing_->Text());
  if (statistics_ != nullptr) WriteError(stats_ == "json" ? statistics_->Json() : statistics_->Text());
}

}  // namespace hlokit::cli
