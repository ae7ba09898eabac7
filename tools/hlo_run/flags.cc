// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/flags.h"

#include <re2/re2.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "interp/processor/instruction_set.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "tools/cli/flags/custom_call_flag.h"
#include "tools/cli/flags/memory_flag.h"
#include "tools/cli/help_format.h"
#include "tools/cli/number_flag.h"
#include "tools/hlo_run/flag_conflicts.h"
#include "tools/hlo_run/sweep.h"
#include "tools/hlo_run/value_kinds.h"

namespace hlokit::run {
namespace {

constexpr char kExamples[] =
    R"(Values:
  Arguments and results are one array a line, the shape and the value, tuples
  flattened in order:
    f32[2,2] { { 1, 2 }, { 3, 4 } }

Snapshots:
  An HloSnapshot runs with the arguments recorded in it, and its results are
  compared with the recorded ones, within rel:0.001,abs:0.001 as XLA does, or
  --tolerance; flags for arguments and expected results come first. An
  HloUnoptimizedSnapshot has the arguments of each partition and no results: it
  runs on as many partitions (replicas, if these alone communicate). A program
  that is not partitioned yet gets what the recorded arguments are parts of; with
  --partitions=1 it runs as a whole.

Devices:
  With --replicas=R --partitions=P there are R * P devices, those of replica 0
  first. A file of arguments holds those of each device in turn, or those of one
  device, which all of them get; --seed generates different ones for each;
  --args-npy looks for arguments of device N in deviceN/ first, a .npz or
  .safetensors file for arrays whose names begin with `deviceN.`. Results are
  printed device by device. Files of --host-io have the number of the device in
  their names, as in infeed.3.txt.
  A program with shardings that is not partitioned yet is partitioned by
  sharding-propagation and spmd-partitioner. Then arguments and results are those
  of the whole program: arguments are divided by the shardings of the parameters,
  results put together by those of the root. --compare runs the other module on
  one device.

Examples:
  hlo-run module.hlo --args=inputs.txt      run on given arguments and print the results
  hlo-run module.hlo --seed=1               run on synthetic arguments and constants
  hlo-run module.hlo --args-npy=in --results-npy=out --no-print-results
                                            arguments from in/arg0.npy, ...; results to out/result0.npy, ...
  hlo-run module.hlo --args=model.safetensors -o out.npz
                                            arguments by the names of parameters; results in one file
  hlo-run module.hlo --args=inputs.txt --expect=outputs.txt --tolerance=ulp:2
                                            exit code 1 if a result is off by more than two units in the last place
  hlo-run before.hlo --seed=1 --compare=after.hlo --tolerance=rel:1e-5,abs:1e-8
                                            the same arguments through two modules
  hlo-run module.hlo --seed=1 --print-values='^dot' --no-print-results
                                            values of all instructions whose names begin with dot
  hlo-run module.hlo --seed=1 --debug-nans  the first instruction that produces a NaN or an infinity
  hlo-run module.hlo --seed=1 --profile     where the time goes
  hlo-run before.hlo --seed=1 --isolate --compare=after.hlo
                                            the instructions of after.hlo that compute other values
  hlo-run module.hlo --seed=1 --dump-values=values
                                            the values of all instructions, as .npy files
  hlo-run sharded.hlo --partitions=4 --args=inputs.txt
                                            a program for four devices, or one with shardings for four
  hlo-run sharded.hlo --partitions=4 --seed=1 --compare=sharded.hlo --tolerance=rel:1e-5
                                            whether partitioning changes the results
  mpirun -n 8 hlo-run step.hlo --mpi --replicas=8 --args=state.safetensors -o new.safetensors
                                            eight replicas in eight processes
  hlo-run module.hlo --device=v5p:4x4x4 --timing-only
                                            its time on 64 chips, what bounds it, and whether it fits
  hlo-run --print-device=v5e > mine.tpu     a machine description to change, then --device=mine.tpu
  hlo-run module.hlo --args=- --max-seconds=10 < inputs.txt)";

std::string CheckPattern(const std::string& pattern) {
  const re2::RE2 regex(pattern, re2::RE2::Quiet);
  return regex.ok() ? "" : StrCat("expected a regular expression, found `", pattern, "`: ", regex.error());
}

void AddArgumentFlags(CLI::App* app, Flags* flags) {
  auto* args =
      app->add_option("--args", flags->args,
                      "file of arguments: text as below, - is standard input, or a .npy, .npz or .safetensors file")
          ->type_name("FILE");
  auto* npy = app->add_option("--args-npy", flags->args_npy, "directory of arguments: arg0.npy, arg1.npy, ...")
                  ->type_name("DIR");
  auto* seed =
      cli::AddNumber(app, "--seed,--run-seed", &flags->seed,
                     "generate synthetic arguments from this seed: small floats, positive where a root is taken "
                     "of them; integers that are valid indices, others in [0, 16); values of elided constants "
                     "too");
  args->excludes(npy);
  args->excludes(seed);
  npy->excludes(seed);
  cli::AddFillElidedFlag(app, &flags->options.fill_elided, /*xla=*/false,
                         "generate values for elided constants (random with --seed)");
}

void AddResultFlags(CLI::App* app, Flags* flags, std::string* tolerance) {
  app->add_flag("--print-results,!--no-print-results", flags->print_results, "print the results (default on)");
  app->add_option(
         "-o,--output", flags->output,
         "output file of the results; - is standard output; .npy, .npz and .safetensors files hold arrays, .json "
         "texts by device")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("--results-npy", flags->results_npy,
                  "directory of the results, created if it does not exist: result0.npy, ...")
      ->type_name("DIR");
  auto* expect =
      app->add_option("--expect", flags->expect, "file of expected results, in any form of --args")->type_name("FILE");
  auto* compare = app->add_option("--compare", flags->compare,
                                  "another module that must return the same results for the same arguments")
                      ->type_name("FILE");
  expect->excludes(compare);
  app->add_option("--dump-snapshot", flags->dump_snapshot,
                  "write an HloSnapshot of the run: program, arguments and results; of several devices an "
                  "HloUnoptimizedSnapshot, which has no results; as text if FILE ends in .pbtxt, .textproto or .txtpb")
      ->type_name("FILE");
  app->add_option(
         "--tolerance", *tolerance,
         "for --expect and --compare: exact, or ulp:N, rel:X, abs:X; of several, separated by commas, any may hold")
      ->type_name("TOLERANCE")
      ->default_str("exact");
  // Names of XLA's run_hlo_module.
  for (const auto& [flag, kind] : {std::pair("--abs-error-bound", "abs:"), {"--rel-error-bound", "rel:"}}) {
    app->add_option_function<std::string>(
           flag,
           [tolerance, kind](const std::string& bound) {
             StrAppend(tolerance, tolerance->empty() ? "" : ",", kind, bound);
           },
           StrCat("same as --tolerance=", kind, "X"))
        ->type_name("X");
  }
}

void AddBisectionFlags(CLI::App* app, Flags* flags) {
  CLI::Option* const passes =
      app->add_option("--bisect-passes", flags->bisect_passes,
                      "find the first of these passes, and the first rewrite in it, after which the module has other "
                      "results on synthetic arguments (--seed), and exit; --tolerance says which are other")
          ->type_name("PIPELINE");
  CLI::Option* const output =
      app->add_option("--bisect-output", flags->bisect_output, "write the module before that pass")
          ->type_name("FILE")
          ->needs(passes);
  app->add_flag("--reduce", flags->bisect_reduce, "reduce that module, as hlo-reduce does")->needs(output);
}

void AddIsolationFlags(CLI::App* app, Flags* flags) {
  CLI::Option* const isolate = app->add_flag(
      "--isolate", flags->isolate,
      "run each instruction by itself, on the values that its operands have in a run, in the other engine (of "
      "--engine=fast, in it and the exact one), or in the module of --compare or after --isolate-passes; list those "
      "whose values differ, worst first, and exit");
  app->add_option("--isolate-passes", flags->isolate_passes, "with --isolate: the module after these passes")
      ->type_name("PIPELINE")
      ->needs(isolate);
  CLI::Option* const replay =
      app->add_option("--replay", flags->replay,
                      "run each instruction on the values in this directory of --dump-values, of this module or of "
                      "another version of it; list those whose values differ, worst first, and exit")
          ->type_name("DIR");
  replay->excludes(isolate);
  app->add_option("--isolate-json", flags->isolate_json, "write the list of --isolate or --replay as JSON too")
      ->type_name("FILE");
  app->add_flag("--isolate-fusions", flags->isolate_fusions,
                "run fusions as a whole instead of the instructions in them");
  cli::AddNumber(app, "--isolate-max-work", &flags->isolate_max_work,
                 "limit on the elements that one execution of an instruction visits; others are not run", 0)
      ->capture_default_str();
  app->add_flag("--isolate-distinct", flags->isolate_distinct,
                "of instructions that are equal but for the values of their operands, as in repeated layers, run the "
                "first alone");
  cli::AddNumber(app, "--isolate-max-seconds", &flags->isolate_max_seconds,
                 "compare instructions for at most so long, and count those that are left; 0: all", 0, 1e9)
      ->capture_default_str();
  cli::AddNumber(app, "--max-executions", &flags->max_executions,
                 "limit on the executions of each instruction, in loops, that --isolate and --replay run and "
                 "--dump-values writes: the first ones",
                 1);
}

void AddObserverFlags(CLI::App* app, Flags* flags) {
  app->add_option("--print-values", flags->trace,
                  "print, on standard error, the values of instructions whose names match this regular expression; "
                  "large ones as statistics")
      ->type_name("PATTERN")
      ->check(CheckPattern);
  cli::AddNumber(app, "--print-values-max-elements", &flags->trace_options.max_elements,
                 "limit on the elements of a value printed in full", 0)
      ->capture_default_str();
  cli::AddNumber(app, "--print-values-max-count", &flags->trace_options.max_values,
                 "limit on the number of values printed", 0)
      ->capture_default_str();
  CLI::Option* const dump =
      app->add_option("--dump-values", flags->dump_values,
                      "write the values of all instructions to this new directory, as .npy files, for --replay")
          ->type_name("DIR");
  app->add_option("--dump-values-match", flags->dump_values_match,
                  "only of instructions whose names match this regular expression")
      ->type_name("PATTERN")
      ->check(CheckPattern)
      ->needs(dump);
  cli::AddNumber(app, "--dump-values-max-bytes", &flags->dump_values_max_bytes,
                 "limit on the size of the files of --dump-values", 0)
      ->capture_default_str()
      ->needs(dump);
  app->add_flag("--debug-nans", flags->stop_at_nan, "stop at the first instruction that produces a NaN or an infinity");
  app->add_flag("--profile,--profile-interpreter", flags->profile,
                "print, on standard error, the interpreter's time of each opcode and instruction");
  app->add_option("--profile-json", flags->profile_json, "write the full profile to this file, as JSON")
      ->type_name("FILE");
  cli::AddNumber(
      app, "--repeat", &flags->repeat,
      "run the prepared module this many times on the same arguments; results and profile are those of the last run, "
      "and --profile-json has the time of each",
      1);
  app->add_flag("--progress,!--no-progress", flags->progress,
                "show the progress of runs of more than 2 seconds, if standard error is a terminal (default on)");
}

void AddDeviceFlags(CLI::App* app, Flags* flags) {
  constexpr int64_t kMost = interp::EvaluatorOptions::kMaxDevices;
  cli::AddNumber(app, "--replicas", &flags->options.num_replicas,
                 "number of replicas of the program, which collectives connect", 1, kMost)
      ->capture_default_str();
  cli::AddNumber(app, "--partitions", &flags->options.num_partitions,
                 "number of partitions of each replica, which partition-id distinguishes; a program with shardings "
                 "that is not partitioned yet is partitioned first",
                 1, kMost)
      ->capture_default_str();
  app->add_flag("--results-by-device", flags->results_by_device,
                "print the results of each device below a line that names it, on one device too; of a program that is "
                "partitioned first its parts instead of whole results");
  app->add_option_function<std::string>(
         "--padding",
         [flags](const std::string& name) {
           for (interp::PaddingFill fill : interp::kPaddingFills) {
             if (name == ToString(fill)) flags->padding = fill;
           }
         },
         "what pads uneven parts of its arguments, which must not change the results: zero, nan or largest")
      ->check(CLI::IsMember({"zero", "nan", "largest"}))
      ->default_str("zero");
  app->add_flag("--mpi", flags->mpi,
                "run as the processes of mpirun or srun, among which the devices are divided; without --replicas and "
                "--partitions the numbers of the module, or a replica for each process");
  cli::AddNumber(app, "--mpi-timeout", &flags->mpi_timeout,
                 "seconds after which a silent process counts as dead, and data that do not come are an error", 0.1,
                 86400.0)
      ->capture_default_str();
  app->add_option("--host-io", flags->host_io,
                  "directory of the host's transfers: infeed.txt, recv.CHANNEL.txt; outfeed.txt, send.CHANNEL.txt")
      ->type_name("DIR");
}

void AddLimitFlags(CLI::App* app, interp::EvaluatorOptions* options) {
  cli::AddNumber(app, "--num-threads", &options->num_threads,
                 "number of threads; 0: one for each core; results do not depend on it", 0, 1024)
      ->capture_default_str();
  cli::AddMaxBytes(app, &options->limits);
  cli::AddNumber(app, "--max-steps", &options->limits.max_steps, "limit on the instructions executed", 0);
  cli::AddNumber(app, "--max-loop-trips,--max-loop-iterations", &options->limits.max_loop_iterations,
                 "limit on the iterations of one loop", 0);
  cli::AddNumber(app, "--max-seconds", &options->limits.max_seconds,
                 "time limit of making arguments and of the run, together", 0);
}

void AddEngineFlags(CLI::App* app, Flags* flags) {
  app->add_option_function<std::string>(
         "--engine", [flags](const std::string& kind) { flags->engine = *interp::EngineKindOf(kind); },
         cli::EngineHelp("what runs the module: "))
      ->check(CLI::IsMember(interp::EngineNames()))
      ->default_str("exact");
  app->add_option(
         "--passes", flags->passes,
         "passes to run first, as for hlo-opt --passes; '' runs none. By default cpu with --engine=fast, unless "
         "--print-values, --dump-values, --debug-nans, --isolate or --replay shows instructions of the module, "
         "or it has rng; else none")
      ->type_name("PIPELINE");
  cli::AddStubCustomCalls(app);
  flags->engine_flags.AddTo(app);
  app->add_option_function<std::string>(
         "--mixed-precision",
         [flags](const std::string& kind) {
           flags->options.mixed_precision =
               kind == "reinterpret" ? interp::MixedPrecisionMode::kReinterpret : interp::MixedPrecisionMode::kConvert;
         },
         "operands of another float type than that of the computation: reinterpret their bytes as that type, as XLA's "
         "evaluator does, or convert them")
      ->check(CLI::IsMember({"reinterpret", "convert"}))
      ->default_str("reinterpret");
}

// Adds all flags, in the order of the help.
void AddFlags(CLI::App* app, Flags* flags, std::string* tolerance) {
  app->add_option("input", flags->path,
                  "HLO text, StableHLO, a protocol buffer, a snapshot or JSON; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  AddArgumentFlags(app, flags);
  AddResultFlags(app, flags, tolerance);
  cli::GroupOptions(app, "Values");
  AddObserverFlags(app, flags);
  cli::GroupOptions(app, "Watching");
  AddBisectionFlags(app, flags);
  AddIsolationFlags(app, flags);
  cli::GroupOptions(app, "Finding the instruction or pass");
  AddDeviceFlags(app, flags);
  cli::GroupOptions(app, "Devices");
  AddLimitFlags(app, &flags->options);
  cli::GroupOptions(app, "Limits");
  AddEngineFlags(app, flags);
  cli::GroupOptions(app, "Engine");
  app->add_flag("--verify,!--no-verify", flags->verify, "verify the module before running it (default on)")
      ->group("Input and output");
  flags->input.AddFlags(app);
  flags->simulation.AddTo(app);
  app->footer(kExamples);
}

// Returns the first flag of the simulation that is given without a device; "" if there is none.
std::string FindFlagWithoutDevice(const CLI::App& app, const Flags& flags) {
  const bool sweeps_devices =
      flags.simulation.sweep.starts_with("device=") && flags.path.find(kSweepPlaceholder) == std::string::npos;
  if (!flags.simulation.device.empty() || sweeps_devices) return "";
  for (const CLI::Option* option : app.get_options()) {
    const std::string flag = option->get_name();
    const bool lists = flag == "--list-devices" || flag == "--print-device";
    if (option->get_group() == SimulationFlags::kGroup && option->count() != 0 && !lists) return flag;
  }
  return "";
}

// Several values of one size, --shape b=8,16, are a sweep. Returns an error; "" if there is none.
std::string FindSweptSize(Flags* flags) {
  std::vector<std::string>& sizes = flags->input.parse.sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t comma = sizes[i].find(',');
    const size_t equals = sizes[i].find('=');
    const std::string values = sizes[i].substr(std::min(equals, sizes[i].size() - 1) + 1);
    if (comma == std::string::npos || values.find_first_not_of("0123456789,") != std::string::npos) continue;
    if (!flags->simulation.sweep.empty()) return "several values of --shape exclude --sweep";
    if (flags->simulation.device.empty()) return "several values of --shape require --device, which simulates them";
    flags->simulation.sweep = sizes[i];
    flags->sweeps_size = true;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i));
    return "";
  }
  return "";
}

bool ReadsStandardInputTwice(const Flags& flags) {
  const bool compares = flags.expect == "-" || flags.compare == "-";
  return flags.path == "-" ? flags.args == "-" || compares : flags.args == "-" && compares;
}

// Returns an error of the pipelines; "" if there is none.
std::string CheckPipelines(const Flags& flags) {
  const std::string passes = flags.passes.value_or("");
  for (const auto& [flag, text] : {std::pair("--bisect-passes", flags.bisect_passes),
                                   {"--isolate-passes", flags.isolate_passes},
                                   {"--passes", passes}}) {
    if (text.empty()) continue;
    if (const absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text); !pipeline.ok()) {
      return StrCat(flag, ": ", std::string(pipeline.status().message()));
    }
  }
  if (!passes.empty() && (flags.isolate || !flags.replay.empty() || !flags.bisect_passes.empty())) {
    return "--passes excludes --isolate, --replay and --bisect-passes; --isolate-passes runs passes before --isolate";
  }
  if (!passes.empty() && !flags.verify) return "--passes excludes --no-verify";
  if (!flags.isolate_passes.empty() && !flags.compare.empty()) return "--isolate-passes excludes --compare";
  return "";
}

// Sets what follows from other flags.
void Complete(Flags* flags) {
  flags->input.parse.check_shapes_after_errors = flags->verify;
  flags->input.parse.verify_stablehlo = flags->verify;
  // Without either, a run that needs the values reports an error.
  flags->input.warn_of_elided =
      !flags->options.fill_elided && (flags->seed.has_value() || flags->simulation.timing_only);
  if (flags->seed && !flags->options.fill_elided) flags->options.fill_elided = FillKind::kRandom;
  flags->options.seed = flags->seed.value_or(0);
  flags->trace_options.prefix = "value: ";
}

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app("run an HLO module, or estimate its time on a TPU", "hlo-run");
  flags->options.mixed_precision = interp::MixedPrecisionMode::kReinterpret;
  std::string tolerance;
  AddFlags(&app, flags, &tolerance);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv, ValueKinds())) return exit_code;
  flags->simulation.names = cli::FlagNames(app);
  if (const std::optional<int> code = flags->simulation.remarks.Prepare("hlo-run", !flags->simulation.page.empty())) {
    return code;
  }
  flags->replicas_given = app.count("--replicas") > 0;
  flags->partitions_given = app.count("--partitions") > 0;
  flags->padding_given = app.count("--padding") > 0;
  const auto usage = [](std::string_view message) { return cli::UsageError("hlo-run", message); };
  if (const std::string error = FindSweptSize(flags); !error.empty()) return usage(error);
  if (const std::string flag = FindFlagWithoutDevice(app, *flags); !flag.empty()) {
    return usage(StrCat(flag, " requires a simulated target: --device"));
  }
  if (const std::string error = FindFlagConflict(app, *flags); !error.empty()) return usage(error);
  if (const std::optional<int> exit_code = flags->engine_flags.Check("hlo-run", flags->engine)) return exit_code;
  if (interp::RowOf(flags->engine).generates_code) {
    if (const std::string error = interp::InstructionSetError(); !error.empty()) return usage(error);
  }
  if (ReadsStandardInputTwice(*flags)) return usage("standard input can be read only once");
  if (!tolerance.empty()) {
    absl::StatusOr<interp::ErrorSpec> parsed = interp::ParseErrorSpec(tolerance);
    if (!parsed.ok()) return usage(std::string(parsed.status().message()));
    flags->tolerance = *parsed;
    flags->tolerance_given = true;
  }
  if (const std::string error = CheckPipelines(*flags); !error.empty()) return usage(error);
  Complete(flags);
  return std::nullopt;
}

}  // namespace hlokit::run
