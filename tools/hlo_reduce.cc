// SPDX-License-Identifier: Apache-2.0
// hlo-reduce: makes a module small that still shows something.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "io/arrays/arguments.h"
#include "io/arrays/array_file.h"
#include "io/arrays/stored_array.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "passes/reduce/reduction.h"
#include "tools/cli/cli.h"
#include "tools/cli/crash/interrupt.h"
#include "tools/cli/flags/custom_call_flag.h"
#include "tools/cli/module_file.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/hlo_reduce/interesting.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-reduce";

constexpr char kExamples[] = R"(Examples:
  hlo-reduce dump.hlo --test='my-compiler {} 2>&1 | grep -q "not supported"' -o small.hlo
                                            what the compiler does not support
  hlo-reduce dump.hlo --differs=algsimp -o small.hlo
                                            a pass that changes the results
  hlo-reduce dump.hlo --crash --passes=fusion -o small.hlo
  hlo-reduce dump.hlo --diagnostic='duplicate name' --command='other-tool {}' -o small.hlo
  hlo-reduce dump.hlo --nan --args=batch.txt -o small.hlo
                                            where a NaN comes from
  hlo-reduce dump.hlo --pattern='dot(convert(%x), _)' --where='bytes>1e6' -o small.hlo
  hlo-reduce dump.hlo --test=./test.sh -o small.hlo --resume
                                            go on where an earlier run was ended)";

struct Flags {
  cli::InputOptions input;
  std::string path = "-";
  std::string output = "-";
  bool resume = false;
  bool json = false;
  bool progress = true;
  reduce::TestFlags test;
  std::optional<std::string> tolerance;
  std::string args, args_npy;
  int64_t jobs = 0;
  int64_t max_tests = -1;
  double max_total_seconds = 0;
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("FILE", flags->path, "the module; - is standard input")->type_name("FILE")->capture_default_str();
  app->add_option("-o,--output", flags->output,
                  "the smallest module so far, written after each change; - is standard output, at the end")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("--test", flags->test.test,
                  "interesting: this command of the shell has exit code 0; {} stands for the file with the module, "
                  "which otherwise "
                  "is the last argument")
      ->type_name("COMMAND");
  app->add_flag("--crash", flags->test.crash,
                "interesting: --command ends by a signal or with exit code 3, an internal error of these tools");
  app->add_option("--diagnostic", flags->test.diagnostic,
                  "interesting: --command prints text in which the expression is found")
      ->type_name("REGEX");
  app->add_option("--differs", flags->test.differs,
                  "interesting: other results after these passes, on synthetic arguments")
      ->type_name("PIPELINE");
  app->add_option("--pattern", flags->test.pattern,
                  "interesting: an instruction matches, as in hlo-inspect find: dot(transpose(%x), _)")
      ->type_name("PATTERN");
  app->add_option("--where", flags->test.where, "a condition on the matches of --pattern")->type_name("CONDITION");
  app->add_flag("--nan", flags->test.nan, "interesting: a NaN in the results, on synthetic arguments");
  app->add_option("--command", flags->test.command,
                  "what --crash and --diagnostic run; by default hlo-opt with the passes of --passes")
      ->type_name("COMMAND");
  app->add_option("--passes", flags->test.passes, "the passes of that default")->type_name("PIPELINE");
  app->add_option("--run-tolerance", flags->tolerance,
                  "tolerance of --differs, as in hlo-opt; by default a few units in the last place, or what the passes "
                  "declare")
      ->type_name("SPEC");
  CLI::Option* const args =
      app->add_option("--args", flags->args,
                      "run --nan and --differs on these arguments, as hlo-run does, where a parameter is still there")
          ->type_name("FILE");
  app->add_option("--args-npy", flags->args_npy, "as --args, from a directory: arg0.npy, arg1.npy, ...")
      ->type_name("DIR")
      ->excludes(args);
  cli::AddNumber(app, "--run-seed,--seed", &flags->test.run.seed, "seed of the synthetic arguments")
      ->capture_default_str();
  cli::AddNumber(app, "--run-inputs", &flags->test.run.inputs, "number of sets of synthetic arguments", 1, 1000)
      ->capture_default_str();
  app->add_flag("--run-special-values", flags->test.run.special_values,
                "also run on arguments with NaN, infinities, zeros of either sign, denormals and extremes");
  cli::AddNumber(app, "--timeout", &flags->test.max_seconds, "seconds of one test; a test that takes longer has failed",
                 0)
      ->capture_default_str();
  cli::AddNumber(app, "-j,--jobs", &flags->jobs, "concurrent tests (default: one per core)", 1, 1024);
  cli::AddNumber(app, "--max-tests", &flags->max_tests, "stop after this many tests", 0);
  cli::AddNumber(app, "--max-seconds", &flags->max_total_seconds,
                 "stop after this time; the result then depends on the speed of the machine", 0);
  app->add_flag("--resume", flags->resume, "begin with the output file of an earlier run, if there is one");
  app->add_flag("--json", flags->json, "print the counts as JSON on standard error");
  app->add_flag("--progress,!--no-progress", flags->progress, "show a progress line on a terminal (default on)");
  cli::AddStubCustomCalls(app);
  flags->input.AddFlags(app);
  app->footer(
      StrCat("Exit status:\n  0  reduced, or already small\n  1  the module is invalid or not interesting\n"
             "  2  usage error, a file that cannot be read or written\n  3  internal error\n\n",
             kExamples));
}

std::string SizeText(const reduce::ModuleSize& size) {
  return StrCat(Counted(size.instructions, "instruction"), " (", size.computing, " computing), ", size.text,
                " characters");
}

void WriteJson(const reduce::ReductionResult& result) {
  TextWriter out([](std::string_view text) { std::cerr << text; });
  JsonWriter json(&out);
  json.BeginObject().Member("tests", result.tests).Member("repeated", result.repeated);
  json.Member("invalid", result.invalid).Member("complete", result.complete);
  for (const auto& [key, size] : {std::pair("before", &result.before), {"after", &result.after}}) {
    json.Key(key).BeginObject().Member("instructions", size->instructions).Member("computing", size->computing);
    json.Member("bytes", size->bytes).Member("text", size->text).EndObject();
  }
  json.Key("reducers").BeginArray();
  for (const reduce::ReductionResult::Row& row : result.rows) {
    json.BeginObject().Member("name", row.reducer).Member("tests", row.tests).Member("accepted", row.accepted);
    json.EndObject();
  }
  json.EndArray().EndObject();
  out << "\n";
}

// Returns the module of a file; null after an error, which is printed.
std::unique_ptr<Module> ReadModule(const std::string& path, cli::DiagnosticReporter* diagnostics) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(path);
  if (parts.empty()) return nullptr;
  if (parts.size() != 1) {
    diagnostics->ShowError(path, "expected one module in the input", cli::kUsage);
    return nullptr;
  }
  std::unique_ptr<Module> module = diagnostics->Parse(parts[0]);
  if (module == nullptr || !diagnostics->Verify(parts[0], *module)) return nullptr;
  if (!module->entry().valid()) {
    diagnostics->ShowError(path, "the module has no entry computation", cli::kRejected);
    return nullptr;
  }
  return module;
}

// Reads the arguments of the flags by the names of the parameters. Returns false after an error, which is printed.
bool ReadGiven(const Flags& flags, Module* module, interp::EquivalenceOptions* run,
               cli::DiagnosticReporter* diagnostics) {
  std::vector<Shape> shapes;
  const Computation entry = module->entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) {
    const Instruction parameter = entry.parameter(k);
    if (!parameter.shape().IsArray()) {
      diagnostics->ShowError(flags.path, StrCat("--args: parameter `", parameter.name(), "` is no array; use --test"),
                             cli::kRejected);
      return false;
    }
    shapes.push_back(parameter.shape());
  }
  std::optional<std::vector<Literal>> values;
  if (!flags.args.empty()) {
    const std::vector<cli::InputPart> parts = diagnostics->Read(flags.args);
    if (parts.empty()) return false;
    DiagnosticSink sink;
    values = interp::ReadArguments(*parts[0].source, shapes, &module->context(), &sink);
    diagnostics->Show(sink, *parts[0].source);
    if (!values) return false;
  } else {
    values.emplace();
    for (size_t k = 0; k < shapes.size(); ++k) {
      const std::string path = StrCat(flags.args_npy, "/arg", k, ".npy");
      const absl::StatusOr<interp::ArrayFile> file = interp::ArrayFile::Open(path);
      absl::Status status = file.status();
      if (status.ok()) {
        const absl::StatusOr<interp::StoredArray> array = file->Array(0, cli::kMaxInputBytes);
        absl::StatusOr<Literal> value =
            array.ok() ? interp::ReadArray(*array, shapes[k]) : absl::StatusOr<Literal>(array.status());
        status = value.status();
        if (status.ok()) values->push_back(*std::move(value));
      }
      if (!status.ok()) {
        diagnostics->ShowError(StrCat("--args-npy: ", path), std::string(status.message()),
                               absl::IsNotFound(status) ? cli::kUsage : cli::kRejected);
        return false;
      }
    }
  }
  auto given = std::make_shared<std::map<std::string, Literal, std::less<>>>();
  for (size_t k = 0; k < shapes.size(); ++k) {
    given->emplace(std::string(entry.parameter(static_cast<int64_t>(k)).name()), std::move((*values)[k]));
  }
  run->given = std::move(given);
  return true;
}

// `original`: the module of the input if it is read already.
int Reduce(const Flags& flags, std::unique_ptr<Module> original, reduce::Test& test,
           const std::atomic<bool>* interrupted) {
  cli::DiagnosticReporter diagnostics(flags.input);
  const bool resume = flags.resume && flags.output != "-" && std::filesystem::exists(flags.output);
  const std::string& path = resume ? flags.output : flags.path;
  const std::unique_ptr<Module> module =
      original != nullptr && !resume ? std::move(original) : ReadModule(path, &diagnostics);
  if (module == nullptr) return diagnostics.exit_code();
  const std::string_view format = *cli::FormatOfPath(flags.output);
  const auto write = [&](const std::string& lossless) {
    std::string text = lossless;
    if (format != "hlo") {
      const absl::StatusOr<std::unique_ptr<Module>> smaller = ParseModuleText(lossless);
      std::optional<std::string> written;
      if (smaller.ok()) written = cli::ModuleInFormat(**smaller, format, SourceBuffer(path, lossless), &diagnostics);
      if (!written) return false;
      text = *std::move(written);
    }
    return cli::WriteOutputFile(flags.output, &diagnostics, [&](TextWriter& out) { out << text; });
  };

  cli::ProgressLine line;
  bool written = true;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  reduce::ReductionOptions options;
  options.record = test.Recorder();
  options.jobs = static_cast<int>(flags.jobs != 0 ? flags.jobs : std::max(1u, std::thread::hardware_concurrency()));
  options.max_tests = flags.max_tests;
  options.stop = [&] {
    return interrupted->load() || !written || (flags.max_total_seconds > 0 && seconds() > flags.max_total_seconds);
  };
  options.progress = [&](const reduce::ReductionProgress& progress, const std::string* smaller) {
    if (smaller != nullptr && flags.output != "-") written = write(*smaller);
    if (!flags.progress || !cli::ProgressLine::IsEnabled()) return;
    line.Show(absl::StrFormat("%d s, %d tests: %d instructions; trying %s", static_cast<int64_t>(seconds()),
                              progress.tests, progress.size.instructions, progress.reducer));
  };
  const absl::StatusOr<reduce::ReductionResult> result = reduce::Reduce(
      *module, [&](std::string_view text) { return test.IsInteresting(text); }, options);
  line.Clear();
  if (!result.ok()) {
    const std::string finding = test.Finding();
    diagnostics.ShowError(path,
                          StrCat(std::string(result.status().message()), finding.empty() ? "" : StrCat(": ", finding)),
                          cli::kRejected);
    return diagnostics.exit_code();
  }
  if (!written || !write(result->text)) return diagnostics.exit_code();
  if (flags.json) {
    WriteJson(*result);
  } else {
    std::cerr << "hlo-reduce: " << SizeText(result->before) << " -> " << SizeText(result->after) << "; "
              << result->tests << " tests" << (result->complete ? "" : "; stopped before the end (--resume goes on)")
              << "\n";
  }
  return diagnostics.exit_code();
}

// Returns the usage error of a flag about what another kind of test does; "" if there is none.
std::string FindUselessFlag(const CLI::App& app, const reduce::TestFlags& test) {
  const bool runs_module = test.nan || test.differs;
  const bool runs_command = test.crash || !test.diagnostic.empty();
  if (!test.command.empty() && !runs_command) return "--command requires --crash or --diagnostic";
  if (!test.passes.empty() && !runs_command) return "--passes requires --crash or --diagnostic";
  if (!test.passes.empty() && !test.command.empty()) return "--passes excludes --command";
  if (app.count("--run-tolerance") > 0 && !test.differs) return "--run-tolerance requires --differs";
  for (const char* const flag : {"--run-seed", "--run-inputs", "--run-special-values"}) {
    if (app.count(flag) > 0 && !runs_module) return StrCat(flag, " requires --nan or --differs");
  }
  return "";
}

int Run(int argc, char** argv) {
  CLI::App app("make a module small that still shows something", std::string(kTool));
  Flags flags;
  AddFlags(&app, &flags);
  if (const std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  const int tests = (flags.test.test.empty() ? 0 : 1) + (flags.test.crash ? 1 : 0) +
                    (flags.test.diagnostic.empty() ? 0 : 1) + (flags.test.pattern.empty() ? 0 : 1) +
                    (flags.test.differs ? 1 : 0) + (flags.test.nan ? 1 : 0);
  if (tests != 1) {
    return cli::UsageError(kTool, "expected one of --test, --crash, --diagnostic, --differs, --nan and --pattern");
  }
  if (!cli::FormatOfPath(flags.output)) return cli::UnknownSuffixError(kTool, flags.output);
  if (!flags.test.where.empty() && flags.test.pattern.empty()) {
    return cli::UsageError(kTool, "--where requires --pattern");
  }
  if (const std::string error = FindUselessFlag(app, flags.test); !error.empty()) return cli::UsageError(kTool, error);
  if (flags.tolerance) {
    const absl::StatusOr<interp::Tolerance> tolerance = interp::Tolerance::Parse(*flags.tolerance);
    if (!tolerance.ok()) {
      return cli::UsageError(kTool, StrCat("--run-tolerance: ", std::string(tolerance.status().message())));
    }
    flags.test.run.tolerance = *tolerance;
  }
  flags.test.run.max_seconds = flags.test.max_seconds;
  flags.test.run.max_seconds_flag = "--timeout";
  std::unique_ptr<Module> original;  // has the shapes of the given arguments
  if (!flags.args.empty() || !flags.args_npy.empty()) {
    if (!flags.test.nan && !flags.test.differs) {
      return cli::UsageError(kTool, "--args and --args-npy require --nan or --differs");
    }
    cli::DiagnosticReporter diagnostics(flags.input);
    original = ReadModule(flags.path, &diagnostics);
    if (original == nullptr || !ReadGiven(flags, original.get(), &flags.test.run, &diagnostics)) {
      return diagnostics.exit_code();
    }
  }
  const std::atomic<bool>* const interrupted = cli::InstallTerminationHandler();
  absl::StatusOr<std::unique_ptr<reduce::Test>> test = reduce::MakeTest(flags.test, interrupted);
  if (!test.ok()) return cli::UsageError(kTool, std::string(test.status().message()));
  const int exit_code = Reduce(flags, std::move(original), **test, interrupted);
  test->reset();  // with its files
  cli::RaiseTermination();
  return exit_code;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
