// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/flags.h"

#include <re2/re2.h>

#include <CLI/CLI.hpp>

#include "ir/core/str_cat.h"
#include "tools/hlo_run/value_kinds.h"

namespace hlokit::run {
namespace {

constexpr char kExamples[] =
    R"(Values:
  Arguments and results are one array a line, the shape and the value, tuples
  flattened in order:
    f32[2,2] { { 1, 2 }, { 3, 4 } }

Devices:
  With --replicas=R --partitions=P there are R * P devices, those of replica 0
  first. A file of arguments holds those of each device in turn, or of one, for
  all; --seed makes others for each; --args-npy looks for arguments of device N
  in deviceN/ first. Results come device by device. Files of --host-io have the
  number of the device in their names, as in infeed.3.txt.

Examples:
  hlo-run module.hlo --args=inputs.txt      run on given arguments and print the results
  hlo-run module.hlo --seed=1               run on made-up arguments, and made-up constants where a dump has {...}
  hlo-run module.hlo --args-npy=in --results-npy=out --no-print-results
                                            arguments from in/arg0.npy, ...; results to out/result0.npy, ...
  hlo-run module.hlo --args=inputs.txt --expect=outputs.txt --tolerance=ulp:2
                                            exit code 1 if a result is further off than two units in the last place
  hlo-run before.hlo --seed=1 --compare=after.hlo --tolerance=rel:1e-5,abs:1e-8
                                            the same arguments through two modules
  hlo-run module.hlo --seed=1 --trace='^dot' --no-print-results
                                            values of all instructions whose names begin with dot
  hlo-run module.hlo --seed=1 --stop-at-nan the first instruction that makes a NaN or an infinity
  hlo-run module.hlo --seed=1 --profile     where the time goes
  hlo-run sharded.hlo --partitions=4 --args=inputs.txt
                                            a program for four devices
  hlo-run module.hlo --device=v5p:4x4x4 --timing-only
                                            how long it takes on 64 chips, what bounds it, whether it fits
  hlo-run --print-device=v5e > mine.tpu     a machine description to change, then --device=mine.tpu
  hlo-run module.hlo --args=- --max-seconds=10 < inputs.txt)";

std::string CheckPattern(const std::string& pattern) {
  const re2::RE2 regex(pattern, re2::RE2::Quiet);
  return regex.ok() ? "" : StrCat("`", pattern, "` is no regular expression: ", regex.error());
}

void AddArgumentFlags(CLI::App* app, Flags* flags) {
  auto* args =
      app->add_option("--args", flags->args, "file of arguments, as below; - is standard input")->type_name("FILE");
  auto* npy = app->add_option("--args-npy", flags->args_npy, "folder of arguments: arg0.npy, arg1.npy, ...")
                  ->type_name("FOLDER");
  auto* seed = app->add_option("--seed", flags->seed,
                               "make up arguments from this number: small floats, positive where a root is taken of "
                               "them, integers that are valid where they are used as indices, others in [0, 16); "
                               "constants that the text elides, too");
  args->excludes(npy);
  args->excludes(seed);
  npy->excludes(seed);
  cli::AddFillElidedFlag(app, &flags->options.fill_elided, /*xla=*/false,
                         "values for constants that the text elides (random with --seed)");
}

void AddResultFlags(CLI::App* app, Flags* flags, std::string* tolerance) {
  app->add_flag("--print-results,!--no-print-results", flags->print_results, "print the results (default on)");
  app->add_option("-o,--output", flags->output, "where they are printed; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("--results-npy", flags->results_npy,
                  "folder for the results, made if it is not there: result0.npy, ...")
      ->type_name("FOLDER");
  auto* expect =
      app->add_option("--expect", flags->expect, "file of results, as below, that must come out")->type_name("FILE");
  auto* compare =
      app->add_option("--compare", flags->compare, "another module: must give the same results for the same arguments")
          ->type_name("FILE");
  expect->excludes(compare);
  app->add_option("--tolerance", *tolerance,
                  "for --expect and --compare: exact, or ulp:N, rel:X, abs:X; separated by commas, any of them will do")
      ->type_name("TOLERANCE")
      ->default_str("exact");
}

void AddObserverFlags(CLI::App* app, Flags* flags) {
  app->add_option("--trace", flags->trace,
                  "show, on standard error, the values of instructions whose names hold a match of this regular "
                  "expression; large ones as statistics")
      ->type_name("PATTERN")
      ->check(CheckPattern);
  app->add_option("--trace-elements", flags->trace_options.max_elements, "the largest value shown in full")
      ->capture_default_str();
  app->add_option("--trace-values", flags->trace_options.max_values, "show no more values than this")
      ->capture_default_str();
  app->add_flag("--stop-at-nan", flags->stop_at_nan, "end at the first instruction that makes a NaN or an infinity");
  app->add_flag("--profile", flags->profile, "show, on standard error, the time of each opcode and instruction");
  app->add_option("--profile-json", flags->profile_json, "write the same, all of it, to this file")->type_name("FILE");
  app->add_flag("--progress,!--no-progress", flags->progress,
                "a line on how far the run is, after 2 seconds, if standard error is a terminal (default on)");
}

void AddDeviceFlags(CLI::App* app, Flags* flags) {
  const auto count = CLI::Range(int64_t{1}, interp::EvaluatorOptions::kMaxDevices);
  app->add_option("--replicas", flags->options.num_replicas,
                  "run this many copies of the program; collectives join them")
      ->check(count)
      ->capture_default_str();
  app->add_option("--partitions", flags->options.num_partitions,
                  "run each copy on this many devices, which partition-id tells apart")
      ->check(count)
      ->capture_default_str();
  app->add_option(
         "--host-io", flags->host_io,
         "folder of what the host gives and takes: infeed.txt, recv.CHANNEL.txt; outfeed.txt, send.CHANNEL.txt")
      ->type_name("FOLDER");
}

void AddLimitFlags(CLI::App* app, interp::EvaluatorOptions* options) {
  app->add_option("--num-threads", options->num_threads, "0: as many as the machine has; results do not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  const auto positive = CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max());
  app->add_option("--max-bytes", options->limits.max_bytes, "limit on the bytes of values alive at one time")
      ->check(positive)
      ->capture_default_str();
  app->add_option("--max-steps", options->limits.max_steps, "limit on the instructions run")->check(positive);
  app->add_option("--max-loop-trips", options->limits.max_loop_trips, "limit on the trips of one loop")
      ->check(positive);
  app->add_option("--max-seconds", options->limits.max_seconds, "limit on the time of the run")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app("Runs an HLO module on the reference interpreter, or estimates its time on a TPU.", "hlo-run");
  app.add_option("input", flags->path, "HLO text; - is standard input")->type_name("FILE")->capture_default_str();
  flags->options.mixed_types = interp::MixedTypes::kBytes;
  std::string tolerance;
  AddArgumentFlags(&app, flags);
  AddResultFlags(&app, flags, &tolerance);
  AddObserverFlags(&app, flags);
  AddDeviceFlags(&app, flags);
  AddLimitFlags(&app, &flags->options);
  app.add_option_function<std::string>(
         "--mixed-types",
         [flags](const std::string& kind) {
           flags->options.mixed_types = kind == "bytes" ? interp::MixedTypes::kBytes : interp::MixedTypes::kConvert;
         },
         "operands of another float type than the instruction computes in: their bytes are read as that type, as XLA's "
         "evaluator does (bytes), or they are converted (convert)")
      ->check(CLI::IsMember({"bytes", "convert"}))
      ->default_str("bytes");
  app.add_flag("--verify,!--no-verify", flags->verify, "check the module before running it (default on)");
  flags->input.AddFlags(&app);
  flags->simulation.AddTo(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv, ValueKinds())) return exit_code;

  if (flags->simulation.device.empty() && (flags->simulation.timing_only || flags->simulation.json)) {
    return cli::UsageError("hlo-run", "--timing-only and --json are about a simulated machine: give --device");
  }
  if (flags->simulation.device.empty() && !(flags->simulation.page.empty() && flags->simulation.host.empty())) {
    return cli::UsageError("hlo-run", "--report and --host are about a simulated machine: give --device");
  }
  if (flags->path == "-" && (flags->args == "-" || flags->expect == "-" || flags->compare == "-")) {
    return cli::UsageError("hlo-run", "two inputs are standard input");
  }
  if (flags->args == "-" && (flags->expect == "-" || flags->compare == "-")) {
    return cli::UsageError("hlo-run", "two inputs are standard input");
  }
  if (!tolerance.empty()) {
    if (flags->expect.empty() && flags->compare.empty()) {
      return cli::UsageError("hlo-run", "--tolerance has nothing to compare: give --expect or --compare");
    }
    absl::StatusOr<interp::Tolerance> parsed = interp::ParseTolerance(tolerance);
    if (!parsed.ok()) return cli::UsageError("hlo-run", std::string(parsed.status().message()));
    flags->tolerance = *parsed;
  }
  if (flags->seed && !flags->options.fill_elided) flags->options.fill_elided = FillKind::kRandom;
  flags->options.seed = flags->seed.value_or(0);
  flags->trace_options.prefix = "trace: ";
  return std::nullopt;
}

}  // namespace hlokit::run
