// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/run_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "interp/compiled/explanation.h"
#include "io/arrays/array_file.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "tools/cli/crash/crash_report.h"
#include "tools/cli/flags/engine_flags.h"
#include "tools/cli/output_file.h"
#include "tools/hlo_run/bisection.h"
#include "tools/hlo_run/isolation.h"
#include "tools/hlo_run/snapshot.h"
#include "tools/hlo_run/sweep.h"
#include "tools/hlo_run/values.h"

namespace hlokit::run {
namespace {

// Shows how far the run is, once it takes longer than two seconds.
void ShowProgress(const interp::RunProgress& run, cli::ProgressLine* line) {
  constexpr double kDelaySeconds = 2;
  if (run.seconds < kDelaySeconds) return;
  line->Show(absl::StrFormat("%.1f s: %d instructions, %d loop iterations, %.1f MB", run.seconds, run.steps,
                             run.loop_iterations, static_cast<double>(run.bytes) * 1e-6));
}

// Returns what the flags ask for that processes cannot do together; empty if nothing.
std::string UnsupportedWithMpi(const Flags& flags) {
  if (flags.path == "-" || flags.args == "-" || flags.expect == "-" || flags.compare == "-") {
    return "--mpi: standard input goes to one process only: name a file";
  }
  if (!interp::RowOf(flags.engine).runs_in_processes) {
    return StrCat("--mpi requires --engine=", interp::EngineNamesWith(&interp::EngineRow::runs_in_processes));
  }
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
  return StrCat("--mpi: ", processes, " processes for ", Counted(devices, "device"),
                " (--replicas times --partitions): start at most as many");
}

}  // namespace

RunSession::RunSession(const Flags& flags, std::string command, interp::MpiSession* processes)
    : flags_(flags), command_(std::move(command)), processes_(processes), diagnostics_(flags.input) {
  // Passes may rely on verified properties.
  if (!flags_.verify) flags_.simulation.pipeline.clear();
}

int RunSession::Run() {
  if (processes_ != nullptr) {
    if (const std::string why = UnsupportedWithMpi(flags_); !why.empty()) return cli::UsageError("hlo-run", why);
  }
  if (flags_.simulation.list_devices || !flags_.simulation.print_device.empty()) {
    return ShowDevices(flags_.simulation, &diagnostics_);
  }
  if (ReadInput() && Simulate() && ChooseRunOptions() && LowerAndCompile() && ShowCode() && ReadArguments() &&
      ReadReferenceValues() && Execute() && WriteFiles()) {
    Compare();
  }
  return diagnostics_.exit_code();
}

bool RunSession::Usage(std::string_view message) {
  diagnostics_.Fail(static_cast<cli::ExitCode>(cli::UsageError("hlo-run", message)));
  return false;
}

std::unique_ptr<Module> RunSession::ForDevices(const Module& module, DiagnosticSink* warnings) const {
  auto copy = std::make_unique<Module>(module.Clone());
  if (flags_.partitions_given) {
    copy->header().num_partitions = flags_.options.num_partitions;
  } else if (!flags_.simulation.pipeline.empty()) {
    TakePartitionsOfShardings(copy.get(), warnings);
  }
  if (flags_.replicas_given) copy->header().replica_count = flags_.options.num_replicas;
  return copy;
}

// With --sweep the input may be a family of programs.
bool RunSession::ReadInput() {
  const bool sweeps = !flags_.simulation.sweep.empty();
  const size_t place = flags_.path.find(kSweepPlaceholder);
  if (sweeps && (place != std::string::npos || flags_.sweeps_size)) {
    const std::string what = flags_.simulation.sweep.substr(0, flags_.simulation.sweep.find('='));
    const SweepPrograms read = [&](const std::string& value) {
      std::string path = flags_.path;
      std::vector<std::string> sizes;
      if (flags_.sweeps_size) {
        sizes = {StrCat(what, "=", value)};
      } else {
        path.replace(place, kSweepPlaceholder.size(), value);
      }
      std::optional<Program> one = ReadProgram(path, flags_, nullptr, &diagnostics_, sizes);
      return one ? ForDevices(*one->module, nullptr) : nullptr;
    };
    SweepModules(flags_.simulation, read, true, &diagnostics_, processes_);
    return false;
  }
  program_ = ReadProgram(flags_.path, flags_, nullptr, &diagnostics_);
  if (!program_ || !sweeps) return program_.has_value();
  const SweepPrograms copy = [&](const std::string&) { return ForDevices(*program_->module, nullptr); };
  SweepModules(flags_.simulation, copy, false, &diagnostics_, processes_);
  return false;
}

bool RunSession::HasArguments() const { return !flags_.args.empty() || !flags_.args_npy.empty() || flags_.seed; }

// What the run after an estimate lacks is said before it.
bool RunSession::CheckArgumentsOfRun() {
  if (HasArguments() || !flags_.bisect_passes.empty() || !flags_.replay.empty()) return true;
  if (!OpenSnapshot(program_->part, &diagnostics_, &snapshot_)) return false;
  int64_t count = 0;
  const Computation entry = program_->module->entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) count += entry.parameter(k).shape().leaf_count();
  if (snapshot_ != nullptr || count == 0) return true;
  ShowMissingArguments(flags_, count, &diagnostics_);
  return false;
}

bool RunSession::Simulate() {
  if (flags_.simulation.device.empty()) return true;
  if (!flags_.simulation.timing_only && !CheckArgumentsOfRun()) return false;
  flags_.simulation.command = command_;
  DiagnosticSink warnings;
  const std::unique_ptr<Module> module = ForDevices(*program_->module, &warnings);
  diagnostics_.Show(warnings, *program_->part.source);
  SimulateModule(flags_.simulation, *module, *program_->part.source, &diagnostics_);
  return !flags_.simulation.timing_only && diagnostics_.exit_code() == cli::kOk;
}

// Bisects or replays instead of a run, if the flags ask for that.
bool RunSession::ChooseRunOptions() {
  const Module& module = *program_->module;
  if (!flags_.bisect_passes.empty()) {
    BisectModule(flags_, module, &diagnostics_);
    return false;
  }
  if (!HasArguments() && snapshot_ == nullptr && !OpenSnapshot(program_->part, &diagnostics_, &snapshot_)) return false;
  if (snapshot_ != nullptr && !flags_.devices_given()) interp::ChooseDevices(*snapshot_, module, &flags_.options);
  if (processes_ != nullptr) {
    const std::string why =
        ChooseDevicesOfProcesses(module, processes_->size(), flags_.devices_given(), &flags_.options);
    if (!why.empty()) return Usage(why);
    flags_.options.world = processes_;
  }
  options_ = flags_.options;
  options_.limits.begin = std::chrono::steady_clock::now();
  options_.cancel = cli::InstallInterruptHandler();
  if (flags_.progress && cli::ProgressLine::IsEnabled()) {
    options_.progress = [this](const interp::RunProgress& p) { ShowProgress(p, &progress_); };
  }
  if (!flags_.replay.empty()) {
    ReplayDirectory(flags_, *program_, options_, &diagnostics_);
    return false;
  }
  reference_options_ = options_;
  if (!flags_.host_io.empty()) {
    host_.emplace(flags_.host_io, &module.context(), options_.num_replicas * options_.num_partitions);
    options_.host_io = &*host_;
  }
  return true;
}

bool RunSession::LowerAndCompile() {
  const auto begin = std::chrono::steady_clock::now();
  const interp::CompileOptions compile = CompileOptionsOf(flags_);
  std::optional<interp::LoweredProgram> lowered = LowerProgram(*program_, compile, options_, &diagnostics_);
  if (!lowered) return false;
  const bool is_divided = lowered->division.has_value();
  if (!is_divided && flags_.padding_given) {
    return Usage("--padding requires a program that is partitioned first: one with shardings, and --partitions");
  }
  if (is_divided) {
    // The whole program runs in the first process alone.
    reference_options_.num_partitions = 1;
    reference_options_.world = nullptr;
  }
  observers_.emplace(flags_, *lowered->module);
  if (!observers_->OpenFiles(&diagnostics_)) return false;
  observers_->Attach(&options_);
  executable_ = CompileProgram(*program_, *std::move(lowered), compile, options_, &diagnostics_);
  times_.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return executable_ != nullptr;
}

bool RunSession::ShowCode() {
  const interp::CodeInspection* const code = executable_->engine().code();
  if (const std::string& directory = flags_.engine_flags.dump;
      !directory.empty() && !cli::DumpEngine(directory, *code, &diagnostics_)) {
    return false;
  }
  if (flags_.engine_flags.explain) cli::ExplainEngine(*code);
  return true;
}

// With --isolate, compares instructions on the arguments instead of a run.
bool RunSession::ReadArguments() {
  if (snapshot_ != nullptr) {
    absl::StatusOr<interp::SnapshotValues> recorded =
        interp::ReadSnapshotValues(*snapshot_, *program_->module, *executable_, options_);
    if (!recorded.ok()) {
      diagnostics_.ShowError(program_->part.label(), std::string(recorded.status().message()), cli::kRejected);
      return false;
    }
    recorded_ = *std::move(recorded);
    snapshot_ = nullptr;
  }
  // Each process reads its parts only, unless the first one runs the whole program to compare with.
  const bool in_arrays =
      flags_.args.empty() ? !flags_.args_npy.empty() : interp::ArrayFormatOf(flags_.args).has_value();
  if (processes_ != nullptr && executable_->division() != nullptr && in_arrays && !recorded_.arguments &&
      flags_.compare.empty()) {
    executable_->TakeParts();
  }
  std::optional<std::vector<Literal>> arguments =
      recorded_.arguments ? std::move(recorded_.arguments)
                          : ReadRunArguments(flags_, options_, *program_->module, *executable_, &diagnostics_);
  if (!arguments) return false;
  arguments_ = *std::move(arguments);
  if (!flags_.isolate) return true;
  Isolate(flags_, *program_, reference_options_, arguments_, &diagnostics_);
  return false;
}

bool RunSession::ReadReferenceValues() {
  if (flags_.expect.empty() && flags_.compare.empty()) {
    if (flags_.tolerance_given && !recorded_.result) {
      return Usage("--tolerance requires --expect, --compare or a snapshot with a result");
    }
    reference_.values = std::move(recorded_.result);
  }
  return ReadReference(flags_, reference_options_, *program_, *executable_, &diagnostics_, &reference_);
}

bool RunSession::Execute() {
  if (processes_ != nullptr) processes_->EndSetup();
  executable_->set_gathers(flags_.print_results || flags_.output != "-" || !flags_.results_npy.empty() ||
                           reference_.any());
  std::optional<std::vector<Literal>> results;
  {
    const cli::CrashReport crashes("hlo-run", executable_->module());
    for (int64_t run = 0; run < flags_.repeat && (run == 0 || results); ++run) {
      observers_->BeginRun();
      results = RunOnce(*program_, executable_.get(), arguments_, &progress_, &diagnostics_);
      times_.run_seconds.push_back(executable_->statistics().seconds);
    }
  }
  // Reports the profile of a failed run too.
  observers_->Report(executable_->statistics(), times_, executable_->engine().code(), &diagnostics_);
  if (!results) return false;
  if (host_) {
    if (const absl::Status status = host_->Finish(); !status.ok()) diagnostics_.ShowOutputError(status);
  }
  results_ = *std::move(results);
  return observers_->CommitFiles(&diagnostics_);
}

std::optional<std::vector<Literal>> RunSession::RunReference() {
  const cli::CrashReport crashes("hlo-run", reference_.executable->module());
  return RunOnce(*reference_.program, reference_.executable.get(), arguments_, &progress_, &diagnostics_);
}

bool RunSession::WriteFiles() {
  const bool is_first = processes_ == nullptr || processes_->rank() == 0;
  if (is_first && !WriteResults(flags_, options_, results_, executable_->result_shapes(), executable_->result_devices(),
                                executable_->division() != nullptr && !flags_.results_by_device, &diagnostics_)) {
    return false;
  }
  if (processes_ != nullptr && (!is_first || !executable_->gathers())) {
    // Other processes take part in the program to compare with.
    if (reference_.executable != nullptr && reference_options_.world != nullptr) RunReference();
    return false;
  }
  if (flags_.dump_snapshot.empty()) return true;
  const auto recordable =
      executable_->result_devices() == 1 ? std::optional(absl::MakeConstSpan(results_)) : std::nullopt;
  const absl::StatusOr<std::string> bytes =
      interp::FormatSnapshot(*program_->module, *EncodingOfSnapshot(flags_.dump_snapshot),
                             executable_->argument_devices(), arguments_, recordable);
  if (!bytes.ok()) {
    diagnostics_.ShowError(flags_.dump_snapshot, std::string(bytes.status().message()), cli::kRejected);
    return false;
  }
  return cli::WriteOutputFile(flags_.dump_snapshot, &diagnostics_, [&](TextWriter& out) { out << *bytes; });
}

void RunSession::Compare() {
  DiagnosticSink sink;
  WarnOfNonfinite(flags_, *program_->module, results_, &sink);
  diagnostics_.Show(sink, *program_->part.source);
  if (reference_.executable != nullptr) reference_.values = RunReference();
  if (reference_.values) CompareResults(flags_, results_, *reference_.values, &diagnostics_);
}

}  // namespace hlokit::run
