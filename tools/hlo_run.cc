// hlo-run: run a module on the reference interpreter.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "interp/reference/arguments.h"
#include "interp/reference/evaluator.h"
#include "ir/str_cat.h"
#include "ir/verifier.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_file.h"

namespace hlokit {
namespace {

constexpr char kExamples[] =
    R"(Arguments and results are one array a line, the shape and the value, tuples flattened in order:
  f32[2,2] { { 1, 2 }, { 3, 4 } }

Examples:
  hlo-run module.hlo --args=inputs.txt      run on given arguments and print the results
  hlo-run module.hlo --seed=1               run on made-up arguments: floats in [-1, 1), integers in [0, 16)
  hlo-run dump.hlo --seed=1 --fill-elided=random
                                            run a dump whose large constants are {...}
  hlo-run module.hlo --args=- --max-seconds=10 < inputs.txt)";

std::atomic<bool> interrupted{false};

// The first ^C ends the run with a report of where it was; the next one ends the program.
void OnInterrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

int Run(int argc, char** argv) {
  CLI::App app("Runs an HLO module on the reference interpreter.", "hlo-run");
  std::string path = "-";
  std::string arguments_path;
  std::optional<uint64_t> seed;
  std::string fill_elided;
  std::string mixed_types = "bytes";
  std::string output = "-";
  bool verify = true;
  cli::InputOptions input;
  interp::EvaluatorOptions options;
  app.add_option("input", path, "HLO text; - is standard input")->capture_default_str();
  auto* arguments_flag = app.add_option("--args", arguments_path, "file of arguments; - is standard input");
  app.add_option("--seed", seed, "make up the arguments (and random constants) from this number")
      ->excludes(arguments_flag);
  app.add_option("--fill-elided", fill_elided, "values for constants that the text elides: zeros, iota or random")
      ->check(CLI::IsMember({"zeros", "iota", "random"}));
  app.add_option("--mixed-types", mixed_types,
                 "operands of another float type than the instruction computes in: their bytes are read as that type,\n"
                 "as XLA's evaluator does (bytes), or they are converted (convert)")
      ->check(CLI::IsMember({"bytes", "convert"}))
      ->capture_default_str();
  app.add_option("-o,--output", output, "where the results go; - is standard output")->capture_default_str();
  app.add_flag("--verify,!--no-verify", verify, "check the module before running it (default on)");
  app.add_option("--num-threads", options.num_threads, "0: as many as the machine has; results do not depend on it")
      ->capture_default_str();
  app.add_option("--max-bytes", options.limits.max_bytes, "limit on the bytes of values alive at one time")
      ->capture_default_str();
  app.add_option("--max-steps", options.limits.max_steps, "limit on the instructions run");
  app.add_option("--max-loop-trips", options.limits.max_loop_trips, "limit on the trips of one loop");
  app.add_option("--max-seconds", options.limits.max_seconds, "limit on the time of the run");
  input.AddFlags(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  if (path == "-" && arguments_path == "-") return cli::UsageError("hlo-run", "both inputs are standard input");
  if (fill_elided == "zeros") options.fill_elided = FillKind::kZeros;
  if (fill_elided == "iota") options.fill_elided = FillKind::kIota;
  if (fill_elided == "random") options.fill_elided = FillKind::kRandom;
  if (mixed_types == "bytes") options.mixed_types = interp::MixedTypes::kBytes;
  options.seed = seed.value_or(0);
  options.cancel = &interrupted;

  cli::Diagnostics diagnostics(input);
  std::vector<cli::InputPart> parts = diagnostics.Read(path);
  if (parts.empty()) return diagnostics.exit_code();
  if (parts.size() != 1) return cli::UsageError("hlo-run", "the input holds several modules");
  const cli::InputPart& part = parts[0];
  std::unique_ptr<Module> module = diagnostics.Parse(part);
  if (module == nullptr) return diagnostics.exit_code();
  DiagnosticSink sink;
  if (verify) {
    VerifyModule(*module, VerifierOptions(), &sink);
    if (sink.has_errors()) {
      diagnostics.Show(sink, *part.source);
      return diagnostics.exit_code();
    }
    sink = DiagnosticSink();
  }
  const std::unique_ptr<interp::Evaluator> evaluator = interp::Evaluator::Prepare(*module, options, &sink);
  diagnostics.Show(sink, *part.source);
  if (evaluator == nullptr) return diagnostics.exit_code();

  std::vector<Literal> arguments;
  if (!arguments_path.empty()) {
    const std::vector<cli::InputPart> texts = diagnostics.Read(arguments_path);
    if (texts.empty()) return diagnostics.exit_code();
    DiagnosticSink argument_sink;
    std::optional<std::vector<Literal>> read =
        interp::ReadArguments(*texts[0].source, evaluator->argument_shapes(), &module->context(), &argument_sink);
    diagnostics.Show(argument_sink, *texts[0].source);
    if (!read) return diagnostics.exit_code();
    arguments = std::move(*read);
  } else if (seed || evaluator->argument_shapes().empty()) {
    arguments = interp::MakeArguments(evaluator->argument_shapes(), options.seed);
  } else {
    return cli::UsageError("hlo-run", StrCat("the program takes ", evaluator->argument_shapes().size(),
                                             " arguments: give --args=FILE or --seed=N"));
  }

  std::signal(SIGINT, OnInterrupt);
  DiagnosticSink run_sink;
  const std::optional<std::vector<Literal>> results = evaluator->Run(arguments, &run_sink);
  diagnostics.Show(run_sink, *part.source);
  if (!results) {
    diagnostics.Fail(cli::kRejected);
    return diagnostics.exit_code();
  }
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(output);
  if (!file.ok()) {
    diagnostics.ShowError(output, std::string(file.status().message()), cli::kUsage);
    return diagnostics.exit_code();
  }
  interp::PrintLeaves((*file)->writer(), *results);
  if (const absl::Status status = (*file)->Commit(); !status.ok()) {
    diagnostics.ShowError(output, std::string(status.message()), cli::kUsage);
  }
  return diagnostics.exit_code();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
