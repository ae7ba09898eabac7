// SPDX-License-Identifier: Apache-2.0
// hlo-run: runs a module.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "check/comparison/value_comparison.h"
#include "interp/compiled/explanation.h"
#include "interp/interface/host_io.h"
#include "interp/processes/mpi_session.h"
#include "interp/program/compile.h"
#include "interp/program/file_host_io.h"
#include "io/arrays/array_file.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "tools/cli/cli.h"
#include "tools/cli/crash/crash_report.h"
#include "tools/cli/crash/interrupt.h"
#include "tools/cli/flags/engine_flags.h"
#include "tools/cli/flags/mpi_flag.h"
#include "tools/cli/output_file.h"
#include "tools/hlo_run/bisection.h"
#include "tools/hlo_run/flags.h"
#include "tools/hlo_run/isolation.h"
#include "tools/hlo_run/run_observers.h"
#include "tools/hlo_run/snapshot.h"
#include "tools/hlo_run/sweep.h"
#include "tools/hlo_run/values.h"

namespace hlokit::run {
namespace {

using interp::Executable;

// Shows how far the run is, once it takes longer than two seconds.
void ShowProgress(const interp::RunProgress& run, cli::ProgressLine* line) {
  constexpr double kDelaySeconds = 2;
  if (run.seconds < kDelaySeconds) return;
  line->Show(absl::StrFormat("%.1f s: %d instructions, %d loop iterations, %.1f MB", run.seconds, run.steps,
                             run.loop_iterations, static_cast<double>(run.bytes) * 1e-6));
}

struct Input {
  cli::InputPart part;
  std::unique_ptr<Module> module;
};

std::optional<Input> ReadModule(const std::string& path, const Flags& flags, std::shared_ptr<Context> context,
                                cli::DiagnosticReporter* diagnostics) {
  std::vector<cli::InputPart> parts = diagnostics->Read(path);
  if (parts.empty()) return std::nullopt;
  if (parts.size() != 1) {
    diagnostics->ShowError(path, "expected one module in the input", cli::kUsage);
    return std::nullopt;
  }
  Input input = {parts[0], diagnostics->Parse(parts[0], std::move(context))};
  if (input.module == nullptr) return std::nullopt;
  if (flags.verify && !diagnostics->Verify(input.part, *input.module)) return std::nullopt;
  return input;
}

// How a program is compiled. Instructions that flags show are those of the module.
interp::CompileOptions CompileOptionsOf(const Flags& flags) {
  interp::CompileOptions compile;
  compile.engine = flags.engine;
  compile.passes = flags.passes;
  compile.passes_flag = "--passes";
  compile.shows_instructions =
      !flags.trace.empty() || !flags.dump_values.empty() || flags.stop_at_nan || flags.isolate || !flags.replay.empty();
  compile.verification = flags.verify ? interp::Verification::kVerified : interp::Verification::kUnverified;
  compile.partition_hint =
      "run it with --partitions=1; if it is partitioned, remove its shardings with hlo-opt --passes=sharding-remover";
  compile.padding = flags.padding;
  compile.results_by_device = flags.results_by_device;
  return compile;
}

std::optional<interp::LoweredProgram> Lower(const Input& input, const interp::CompileOptions& compile,
                                            const interp::EvaluatorOptions& options,
                                            cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  absl::StatusOr<interp::LoweredProgram> lowered = interp::Lower(*input.module, compile, options, &sink);
  diagnostics->Show(sink, *input.part.source);
  return lowered.ok() ? std::optional(*std::move(lowered)) : std::nullopt;
}

std::unique_ptr<Executable> Compile(const Input& input, interp::LoweredProgram program,
                                    const interp::CompileOptions& compile, const interp::EvaluatorOptions& options,
                                    cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  std::unique_ptr<Executable> executable = interp::Compile(std::move(program), compile, options, &sink);
  diagnostics->Show(sink, *input.part.source);
  return executable;
}

std::optional<std::vector<Literal>> RunOnce(const Input& input, Executable* executable,
                                            const std::vector<Literal>& arguments, cli::ProgressLine* progress,
                                            cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> results = executable->Run(arguments, &sink);
  progress->Clear();
  diagnostics->Show(sink, *input.part.source);
  if (!results) diagnostics->Fail(cli::kRejected);
  return results;
}

// Reference of the comparison: given values, or another program that computes them.
struct Reference {
  std::optional<std::vector<Literal>> values;
  std::optional<Input> program;
  std::unique_ptr<Executable> executable;
};

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

// Reads the reference before the run, so that errors appear early. Returns false after an error.
bool ReadReference(const Flags& flags, const interp::EvaluatorOptions& options, const Input& input,
                   const Executable& executable, cli::DiagnosticReporter* diagnostics, Reference* reference) {
  if (!flags.expect.empty()) {
    std::vector<Shape> shapes;
    for (int64_t d = 0; d < executable.result_devices(); ++d) {
      shapes.insert(shapes.end(), executable.result_shapes().begin(), executable.result_shapes().end());
    }
    reference->values =
        ReadExpectedResults(flags.expect, shapes, executable.result_devices(), *input.module, diagnostics);
    return reference->values.has_value();
  }
  if (flags.compare.empty()) return true;
  reference->program = ReadModule(flags.compare, flags, input.module->shared_context(), diagnostics);
  if (!reference->program) return false;
  const Input& program = *reference->program;
  interp::CompileOptions compile = CompileOptionsOf(flags);
  compile.partition = false;
  std::optional<interp::LoweredProgram> lowered = Lower(program, compile, options, diagnostics);
  if (!lowered) return false;
  reference->executable = Compile(program, *std::move(lowered), compile, options, diagnostics);
  return reference->executable != nullptr &&
         CheckSameArguments(flags, executable.argument_shapes(), reference->executable->argument_shapes(), diagnostics);
}

// Of values that another engine computed, as XLA compares them.
constexpr double kSnapshotTolerance = 1e-3;

void Check(const Flags& flags, const std::vector<Literal>& results, const std::vector<Literal>& expected,
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

// Returns what the flags ask for that processes cannot do together; empty if nothing.
std::string UnsupportedWithMpi(const Flags& flags) {
  if (flags.path == "-" || flags.args == "-" || flags.expect == "-" || flags.compare == "-") {
    return "--mpi: standard input goes to one process only: name a file";
  }
  if (!interp::RowOf(flags.engine).runs_in_processes) return "--mpi requires --engine=exact";
  if (!flags.host_io.empty()) return "--mpi cannot be used with --host-io";
  if (!flags.dump_snapshot.empty()) return "--mpi cannot be used with --dump-snapshot";
  if (!flags.bisect_passes.empty()) return "--mpi cannot be used with --bisect-passes";
  if (flags.isolate || !flags.replay.empty()) return "--mpi cannot be used with --isolate and --replay";
  if (!flags.simulation.device.empty() && flags.simulation.sweep.empty()) {
    return "--mpi simulates no device, but spreads a --sweep";
  }
  if (!flags.simulation.sweep.empty() && flags.input.json_diagnostics) {
    return "--sweep with --mpi cannot be used with --diagnostics=json";
  }
  return "";
}

// Takes the devices of the module, or a replica for each process, unless flags set them. Returns an error if there are
// fewer devices than processes.
std::string ChooseDevicesOfProcesses(const Module& module, int processes, bool given,
                                     interp::EvaluatorOptions* options) {
  if (!given) {
    options->num_partitions = std::max<int64_t>(module.header().num_partitions, 1);
    options->num_replicas = std::max<int64_t>(module.header().replica_count, 1);
    if (options->num_replicas == 1 && options->num_partitions < processes && processes % options->num_partitions == 0) {
      options->num_replicas = processes / options->num_partitions;
    }
  }
  const int64_t devices = options->num_replicas * options->num_partitions;
  if (devices >= processes) return "";
  return StrCat("--mpi: ", processes, " processes for ", devices, devices == 1 ? " device" : " devices",
                " (--replicas times --partitions): start at most as many");
}

// --isolate: in both engines, or in the module of --compare or --isolate-passes.
void Isolate(const Flags& flags, const Input& input, const interp::EvaluatorOptions& options,
             const std::vector<Literal>& arguments, cli::DiagnosticReporter* diagnostics) {
  const IsolatedModule own = {*input.module, *input.part.source};
  if (options.num_replicas * options.num_partitions != 1 && !(flags.isolate_passes.empty() && flags.compare.empty())) {
    diagnostics->ShowError("--isolate", "values of two modules are compared on one device", cli::kUsage);
    return;
  }
  if (!flags.isolate_passes.empty()) {
    std::unique_ptr<Module> after;
    if (!ApplyIsolatePasses(flags, *input.module, &after, diagnostics)) return;
    IsolateInModules(flags, own, {*after, *input.part.source}, options, arguments, diagnostics);
    return;
  }
  if (flags.compare.empty()) {
    IsolateInEngines(flags, own, options, arguments, diagnostics);
    return;
  }
  const std::optional<Input> other = ReadModule(flags.compare, flags, input.module->shared_context(), diagnostics);
  if (!other) return;
  IsolateInModules(flags, own, {*other->module, *other->part.source}, options, arguments, diagnostics);
}

// Returns a copy of the module to simulate, for as many devices as the flags, the header or else the shardings say.
// `warnings` may be null.
std::unique_ptr<Module> ForDevices(const Flags& flags, const Module& module, DiagnosticSink* warnings) {
  auto copy = std::make_unique<Module>(module.Clone());
  if (flags.partitions_given) {
    copy->header().num_partitions = flags.options.num_partitions;
  } else if (!flags.simulation.pipeline.empty()) {
    TakePartitionsOfShardings(copy.get(), warnings);
  }
  if (flags.replicas_given) copy->header().replica_count = flags.options.num_replicas;
  return copy;
}

int RunProcess(int argc, char** argv, interp::MpiSession* session) {
  Flags flags;
  if (std::optional<int> exit_code = ParseFlags(argc, argv, &flags)) return *exit_code;
  if (!flags.dump_snapshot.empty() && !EncodingOfSnapshot(flags.dump_snapshot)) {
    return cli::UsageError("hlo-run", StrCat("--dump-snapshot: ", flags.dump_snapshot,
                                             ": expected a suffix of protocol buffers: .pb, .pbtxt or .pb.json"));
  }
  cli::DiagnosticReporter diagnostics(flags.input);
  if (session != nullptr) {
    if (const std::string why = UnsupportedWithMpi(flags); !why.empty()) return cli::UsageError("hlo-run", why);
  }
  if (flags.simulation.list_devices || !flags.simulation.print_device.empty()) {
    return ShowDevices(flags.simulation, &diagnostics);
  }
  // Passes may rely on verified properties.
  if (!flags.verify) flags.simulation.pipeline.clear();
  const size_t place = flags.path.find(kSweepPlaceholder);
  if (!flags.simulation.sweep.empty() && place != std::string::npos) {
    const SweepPrograms read = [&](const std::string& value) {
      std::string path = flags.path;
      std::optional<Input> one =
          ReadModule(path.replace(place, kSweepPlaceholder.size(), value), flags, nullptr, &diagnostics);
      return one ? ForDevices(flags, *one->module, nullptr) : nullptr;
    };
    SweepModules(flags.simulation, read, true, &diagnostics, session);
    return diagnostics.exit_code();
  }
  const std::optional<Input> input = ReadModule(flags.path, flags, nullptr, &diagnostics);
  if (!input) return diagnostics.exit_code();
  if (!flags.simulation.sweep.empty()) {
    const SweepPrograms copy = [&](const std::string&) { return ForDevices(flags, *input->module, nullptr); };
    SweepModules(flags.simulation, copy, false, &diagnostics, session);
    return diagnostics.exit_code();
  }
  const bool has_arguments = !flags.args.empty() || !flags.args_npy.empty() || flags.seed;
  std::unique_ptr<ProtoFile> snapshot;
  if (!flags.simulation.device.empty()) {
    // What the run afterwards lacks is said before the estimate.
    if (!flags.simulation.timing_only && !has_arguments && flags.bisect_passes.empty() && flags.replay.empty()) {
      if (!OpenSnapshot(input->part, &diagnostics, &snapshot)) return diagnostics.exit_code();
      int64_t count = 0;
      const Computation entry = input->module->entry();
      for (int64_t k = 0; k < entry.parameter_count(); ++k) count += entry.parameter(k).shape().leaf_count();
      if (snapshot == nullptr && count > 0) {
        ShowMissingArguments(flags, count, &diagnostics);
        return diagnostics.exit_code();
      }
    }
    flags.simulation.command = "hlo-run";
    for (int a = 1; a < argc; ++a) StrAppend(&flags.simulation.command, " ", argv[a]);
    DiagnosticSink warnings;
    const std::unique_ptr<Module> module = ForDevices(flags, *input->module, &warnings);
    diagnostics.Show(warnings, *input->part.source);
    SimulateModule(flags.simulation, *module, *input->part.source, &diagnostics);
    if (flags.simulation.timing_only || diagnostics.exit_code() != cli::kOk) return diagnostics.exit_code();
  }

  if (!flags.bisect_passes.empty()) {
    BisectModule(flags, *input->module, &diagnostics);
    return diagnostics.exit_code();
  }
  if (!has_arguments && snapshot == nullptr && !OpenSnapshot(input->part, &diagnostics, &snapshot))
    return diagnostics.exit_code();
  if (snapshot != nullptr && !flags.devices_given()) ChooseDevices(*snapshot, *input->module, &flags.options);
  if (session != nullptr) {
    const std::string why =
        ChooseDevicesOfProcesses(*input->module, session->size(), flags.devices_given(), &flags.options);
    if (!why.empty()) return cli::UsageError("hlo-run", why);
    flags.options.world = session;
  }
  cli::ProgressLine progress;
  interp::EvaluatorOptions options = flags.options;
  options.limits.begin = std::chrono::steady_clock::now();
  options.cancel = cli::InstallInterruptHandler();
  if (flags.progress && cli::ProgressLine::IsEnabled()) {
    options.progress = [&](const interp::RunProgress& p) { ShowProgress(p, &progress); };
  }
  if (!flags.replay.empty()) {
    ReplayDirectory(flags, {*input->module, *input->part.source}, options, &diagnostics);
    return diagnostics.exit_code();
  }
  interp::FileHostIo host(flags.host_io, &input->module->context(), options.num_replicas * options.num_partitions);
  interp::EvaluatorOptions plain_options = options;
  if (!flags.host_io.empty()) options.host_io = &host;
  const auto compile_begin = std::chrono::steady_clock::now();
  const interp::CompileOptions compile = CompileOptionsOf(flags);
  std::optional<interp::LoweredProgram> lowered = Lower(*input, compile, options, &diagnostics);
  if (!lowered) return diagnostics.exit_code();
  const bool is_divided = lowered->division.has_value();
  if (!is_divided && (flags.results_by_device || flags.padding_given)) {
    return cli::UsageError("hlo-run", StrCat(flags.results_by_device ? "--results-by-device" : "--padding",
                                             " requires a program that is partitioned first: one with shardings, and "
                                             "--partitions"));
  }
  if (is_divided) {
    // The whole program runs in the first process alone.
    plain_options.num_partitions = 1;
    plain_options.world = nullptr;
  }
  RunObservers instruments(flags, *lowered->module);
  if (!instruments.OpenFiles(&diagnostics)) return diagnostics.exit_code();
  instruments.Attach(&options);
  RunTimes times;
  const std::unique_ptr<Executable> executable = Compile(*input, *std::move(lowered), compile, options, &diagnostics);
  times.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - compile_begin).count();
  if (executable == nullptr) return diagnostics.exit_code();
  const interp::CodeInspection* const code = executable->engine().code();
  if (const std::string& directory = flags.engine_flags.dump;
      !directory.empty() && !cli::DumpEngine(directory, *code, &diagnostics)) {
    return diagnostics.exit_code();
  }
  if (flags.engine_flags.explain) cli::ExplainEngine(*code);
  // How a snapshot divides the arguments of a program before partitioning.
  std::optional<interp::ShardedArrays> parts;
  if (snapshot != nullptr && is_divided) {
    parts = executable->division()->arrays.parameters;
  } else if (snapshot != nullptr && snapshot->argument_lists() > 1 && FirstUnpartitioned(*input->module).valid()) {
    absl::StatusOr<interp::ShardedArrays> divided =
        interp::ShardedArrays::OfParameters(*input->module, snapshot->argument_lists());
    if (divided.ok()) parts = *std::move(divided);
  }
  RecordedValues recorded;
  if (snapshot != nullptr && !ReadRecordedValues(input->part.label(), *snapshot, *input->module, *executable,
                                                 parts ? &*parts : nullptr, options, &diagnostics, &recorded)) {
    return diagnostics.exit_code();
  }
  snapshot = nullptr;
  // Each process reads its parts only, unless the first one runs the whole program to compare with.
  const bool in_arrays = flags.args.empty() ? !flags.args_npy.empty() : interp::ArrayFormatOf(flags.args).has_value();
  if (session != nullptr && is_divided && in_arrays && !recorded.arguments && flags.compare.empty()) {
    executable->TakeParts();
  }
  const std::optional<std::vector<Literal>> arguments =
      recorded.arguments ? std::move(recorded.arguments)
                         : ReadRunArguments(flags, options, *input->module, *executable, &diagnostics);
  if (!arguments) return diagnostics.exit_code();
  if (flags.isolate) {
    Isolate(flags, *input, plain_options, *arguments, &diagnostics);
    return diagnostics.exit_code();
  }

  Reference reference;
  if (flags.expect.empty() && flags.compare.empty()) {
    if (flags.tolerance_given && !recorded.result) {
      return cli::UsageError("hlo-run", "--tolerance requires --expect, --compare or a snapshot with a result");
    }
    reference.values = std::move(recorded.result);
  }
  if (!ReadReference(flags, plain_options, *input, *executable, &diagnostics, &reference)) {
    return diagnostics.exit_code();
  }

  const bool is_first = session == nullptr || session->rank() == 0;
  if (session != nullptr) session->EndSetup();
  executable->set_gathers(flags.print_results || flags.output != "-" || !flags.results_npy.empty() ||
                          reference.values || reference.executable != nullptr);
  std::optional<cli::CrashReport> crashes;
  crashes.emplace("hlo-run", executable->module());
  std::optional<std::vector<Literal>> results;
  for (int64_t run = 0; run < flags.repeat && (run == 0 || results); ++run) {
    instruments.BeginRun();
    results = RunOnce(*input, executable.get(), *arguments, &progress, &diagnostics);
    times.run_seconds.push_back(executable->statistics().seconds);
  }
  crashes.reset();
  // Reports the profile of a failed run too.
  instruments.Report(executable->statistics(), times, code, &diagnostics);
  if (results && !flags.host_io.empty()) {
    if (const absl::Status status = host.Finish(); !status.ok()) {
      diagnostics.ShowOutputError(status);
    }
  }
  if (results && !instruments.CommitFiles(&diagnostics)) return diagnostics.exit_code();
  if (!results) return diagnostics.exit_code();
  if (reference.executable != nullptr) {
    crashes.emplace("hlo-run", reference.executable->module());
  }
  if (is_first &&
      !WriteResults(flags, *results, executable->result_shapes(), executable->result_devices(), &diagnostics)) {
    return diagnostics.exit_code();
  }
  if (session != nullptr && (!is_first || !executable->gathers())) {
    // Other processes take part in the program to compare with.
    if (reference.executable != nullptr && plain_options.world != nullptr) {
      RunOnce(*reference.program, reference.executable.get(), *arguments, &progress, &diagnostics);
    }
    return diagnostics.exit_code();
  }
  const auto recordable =
      executable->result_devices() == 1 ? std::optional(absl::MakeConstSpan(*results)) : std::nullopt;
  if (!flags.dump_snapshot.empty() &&
      !WriteRunSnapshot(flags.dump_snapshot, *input->module, executable->argument_devices(), *arguments, recordable,
                        &diagnostics)) {
    return diagnostics.exit_code();
  }
  DiagnosticSink sink;
  WarnOfNonfinite(flags, *input->module, *results, &sink);
  diagnostics.Show(sink, *input->part.source);
  if (reference.executable != nullptr) {
    reference.values = RunOnce(*reference.program, reference.executable.get(), *arguments, &progress, &diagnostics);
  }
  if (reference.values) Check(flags, *results, *reference.values, &diagnostics);
  return diagnostics.exit_code();
}

// The session begins before the flags are parsed: errors in them, too, are printed once.
int Run(int argc, char** argv) {
  interp::MpiSessionOptions options;
  options.tool = "hlo-run";
  if (!cli::WantsMpi(argc, argv, &options.timeout_seconds)) return RunProcess(argc, argv, nullptr);
  absl::StatusOr<std::unique_ptr<interp::MpiSession>> started = interp::MpiSession::Start(options);
  if (!started.ok()) return cli::UsageError("hlo-run", StrCat("--mpi: ", std::string(started.status().message())));
  return (*started)->End(RunProcess(argc, argv, started->get()));
}

}  // namespace
}  // namespace hlokit::run

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::run::Run, argc, argv); }
