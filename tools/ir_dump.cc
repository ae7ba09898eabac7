// SPDX-License-Identifier: Apache-2.0
// ir-dump: traces ops and models, and shows the graphs that the tracer records.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/processes/mpi_session.h"
#include "ir/core/str_cat.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/mpi_flag.h"
#include "tools/cli/flags/print_flags.h"
#include "tools/cli/flags/profile_flags.h"
#include "tools/cli/output_file.h"
#include "tools/ir_dump/flags.h"
#include "tools/ir_dump/session.h"
#include "tools/ir_dump/show_graphs.h"
#include "tools/ir_dump/value_kinds.h"
#include "tracer/step/environment.h"
#include "tracer/text/op_list.h"

namespace hlokit {
namespace {

// One invocation, whose flags have been checked: opens the output, starts what profiles, traces, writes. Its steps
// print errors, and return false after one.
class IrDump {
 public:
  // `command` and `flag_names`: of the command line, for reports.
  IrDump(IrDumpFlags* flags, std::string command, std::vector<std::string> flag_names)
      : flags_(*flags),
        command_(std::move(command)),
        flag_names_(std::move(flag_names)),
        diagnostics_(flags_.input),
        model_(flags_.model.request) {}

  // Returns the exit code.
  int Run() {
    if (flags_.engine_flags.wanted()) ShowPrograms();
    if (!OpenOutput() || !Profile()) return diagnostics_.exit_code();
    bool traced = false;
    if (flags_.has_model()) {
      traced = RunModel();
    } else if (!flags_.form.path.empty()) {
      traced = flags_.emit.any() ? RunGraphs() : ListGraphs();
    } else {
      traced = flags_.cases.empty() ? RunOp() : RunCases();
    }
    if (traced) Finish();
    return diagnostics_.exit_code();
  }

 private:
  bool Usage(std::string_view message) {
    diagnostics_.Fail(static_cast<cli::ExitCode>(cli::UsageError("ir-dump", message)));
    return false;
  }

  // Explains or dumps the code of each program that an engine prepares.
  void ShowPrograms() {
    flags_.tracer.client.on_prepared = [this](const Module& module, const interp::Engine& prepared) {
      const std::lock_guard<std::mutex> lock(programs_mutex_);
      const std::string number = StrCat(programs_++);
      if (flags_.engine_flags.explain) {
        std::fprintf(stderr, "program %s, %s\n", number.c_str(), std::string(module.name()).c_str());
        cli::ExplainEngine(*prepared.code());
      }
      if (!flags_.engine_flags.dump.empty()) {
        cli::DumpEngine(StrCat(flags_.engine_flags.dump, "/", number), *prepared.code(), &diagnostics_);
      }
    };
  }

  bool OpenOutput() {
    absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(flags_.output.path);
    if (!file.ok()) {
      diagnostics_.ShowOutputError(file.status());
      return false;
    }
    file_ = *std::move(file);
    session_.emplace(&diagnostics_, &file_->writer());
    session_->match_torch_xla = !flags_.compatible_with.empty();
    session_->json = flags_.output.json;
    session_->module_format = flags_.output.module_format;
    session_->options = flags_.tracer;
    session_->emit = flags_.emit;
    if (!session_->json) session_->print = cli::PrintOptionsFor(flags_.output.path);
    const bool compares = !flags_.expected.empty();
    if (flags_.emit_list.empty() && !flags_.op.empty() && !compares) session_->emit.values = true;
    return true;
  }

  // Starts to record a profile, or to serve profiles, if the flags ask for one.
  bool Profile() {
    cli::ProfileFlags& profile = flags_.profile;
    if (profile.wanted() && profile.port >= 0) {
      return Usage("--profiler-port cannot be used with --profile and --report");
    }
    if (!profile.Check(&diagnostics_)) return false;
    if (profile.replicas > 0 && model_.devices > 1) {
      return Usage("--replicas cannot be used with --devices: as many devices are simulated as run");
    }
    if (!flags_.profiles()) return true;
    if (!flags_.has_model()) {
      return Usage(profile.wanted() ? "--profile and --report require --model" : "--profiler-port requires --model");
    }
    // Scopes connect the host's spans with the programs.
    session_->options.debug = true;
    session_->options.replicas = std::max<int64_t>(profile.replicas, 1);
    if (!profile.wanted()) {
      server_ = cli::ServeProfiles(profile, &diagnostics_);
      return server_ != nullptr;
    }
    profile.title = StrCat(model_.config.name, ", batch ", model_.config.batch);
    profile.names = flag_names_;
    profile.command = command_;
    return cli::StartProfile(&diagnostics_);
  }

  // Reads a file of one part; null after an error.
  std::shared_ptr<const SourceBuffer> ReadText(const std::string& path) {
    const std::vector<cli::InputPart> parts = diagnostics_.Read(path);
    return parts.empty() ? nullptr : parts[0].source;
  }

  // Adds a file of arguments or expected results to a call.
  bool ReadCase(const std::string& path, lazy::OpTestCase* test_case) {
    const std::shared_ptr<const SourceBuffer> source = ReadText(path);
    if (source == nullptr) return false;
    DiagnosticSink sink;
    const bool ok = lazy::ReadOpTestCase(*source, &context_, test_case, &sink);
    diagnostics_.Show(sink, *source);
    return ok;
  }

  bool RunModel() {
    if (!flags_.expected.empty()) {
      const std::shared_ptr<const SourceBuffer> source = ReadText(flags_.expected);
      if (source == nullptr) return false;
      model_.expected = std::string(source->text());
      model_.compare = true;
    }
    EmitOptions& emit = session_->emit;
    const bool shown = emit.metrics || emit.graphs || emit.values || model_.compare || !model_.save.empty() ||
                       !model_.training.save_checkpoint.empty() || flags_.profiles();
    if (flags_.model.steps_given() && !shown && !emit.any()) emit.metrics = true;
    // Options that observe a run require running the model.
    const lazy::TracerOptions& tracer = flags_.tracer;
    session_->run_steps = flags_.profiles() || flags_.explain || flags_.engine_flags.wanted() ||
                          tracer.debug_level > 0 || !tracer.save_graphs_file.empty() || !tracer.metrics_file.empty();
    if (!shown && !emit.any() && !session_->run_steps) {
      return Usage("--model requires --emit, --steps, --expect, --save or --save-checkpoint");
    }
    session_->RunModel(model_);
    return true;
  }

  // Records graphs of a file again.
  bool RunGraphs() {
    const std::shared_ptr<const SourceBuffer> source = ReadText(flags_.form.path);
    if (source == nullptr) return false;
    std::shared_ptr<const SourceBuffer> arguments;
    if (!flags_.arguments.empty()) {
      arguments = ReadText(flags_.arguments);
      if (arguments == nullptr) return false;
    }
    session_->RunGraphs(source, flags_.form.graph, arguments.get());
    return true;
  }

  bool ListGraphs() {
    InputForm& form = flags_.form;
    if (!form.other.empty() && !form.form.empty()) return Usage("--as cannot be used with --diff");
    if (!form.other.empty()) form.form = "diff";
    if (form.form.empty()) form.form = form.graph != 0 ? "print" : "list";
    ShowGraphs(form, &diagnostics_, file_->writer());
    return true;
  }

  // Runs recorded calls, and counts by family those with the expected results.
  bool RunCases() {
    TextWriter& out = file_->writer();
    std::map<std::string, std::pair<int, int>> families;  // passed, total
    int passed = 0;
    session_->gradients = true;
    for (const std::string& path : flags_.cases) {
      lazy::OpTestCase test_case;
      const bool ok = ReadCase(path, &test_case) && session_->RunOne(path, test_case, /*check=*/true);
      passed += ok;
      ++families[test_case.family].second;
      families[test_case.family].first += ok;
      if (flags_.summary) out << (ok ? "PASS " : "FAIL ") << path << "\n";
    }
    if (!flags_.summary) return true;
    for (const auto& [family, counts] : families) {
      out << family << ": " << counts.first << " of " << counts.second << "\n";
    }
    out << "all: " << passed << " of " << static_cast<int64_t>(flags_.cases.size()) << "\n";
    return true;
  }

  bool RunOp() {
    lazy::OpTestCase call;
    call.op = flags_.op;
    for (const std::string* path : {&flags_.arguments, &flags_.expected}) {
      if (!path->empty() && !ReadCase(*path, &call)) return false;
    }
    for (const std::string& attribute : flags_.attributes) {
      const size_t equal = attribute.find('=');
      if (equal == std::string::npos) return Usage("--attr: expected NAME=VALUE");
      call.attrs.emplace_back(attribute.substr(0, equal), attribute.substr(equal + 1));
    }
    if (flags_.gradients && call.requires_grad.empty()) {
      for (size_t i = 0; i < call.args.size(); ++i) {
        if (call.args[i] && IsFloat(call.args[i]->shape().element_type())) call.requires_grad.push_back(i);
      }
    }
    session_->gradients = flags_.gradients;
    session_->RunOne(flags_.op, call, !flags_.expected.empty());
    return true;
  }

  // Writes what is left, the profile and the output.
  void Finish() {
    session_->Finish();
    cli::ProfileFlags& profile = flags_.profile;
    if (session_->represented_devices() > 0) profile.replicas = session_->represented_devices();
    if (profile.wanted() && diagnostics_.exit_code() == cli::kOk) cli::FinishProfile(profile, &diagnostics_);
    // After an error there is no module to write; text up to it is.
    if (flags_.output.module_format != "hlo" && diagnostics_.exit_code() != cli::kOk) return;
    if (const absl::Status status = file_->Commit(); !status.ok()) diagnostics_.ShowOutputError(status);
  }

  IrDumpFlags& flags_;
  const std::string command_;
  const std::vector<std::string> flag_names_;
  cli::DiagnosticReporter diagnostics_;
  ModelRequest& model_;
  std::mutex programs_mutex_;
  int64_t programs_ = 0;
  std::unique_ptr<cli::OutputFile> file_;
  std::optional<Session> session_;
  std::unique_ptr<runtime::ProfilerServer> server_;
  Context context_;
};

int RunProcess(int argc, char** argv, interp::MpiSession* processes) {
  CLI::App app("trace ops and models as PyTorch/XLA does and dump their IR at any stage", "ir-dump");
  IrDumpFlags flags;
  flags.AddTo(&app);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv, ValueKinds())) return *exit_code;
  if (flags.list_variables) return cli::PrintText(lazy::DescribeEnvironment());
  if (flags.list_ops) return cli::PrintText(lazy::OpList());
  if (const std::optional<int> exit_code = flags.Check(processes)) return *exit_code;
  std::string command = "ir-dump";
  for (int a = 1; a < argc; ++a) StrAppend(&command, " ", argv[a]);
  return IrDump(&flags, std::move(command), cli::FlagNames(app)).Run();
}

int Run(int argc, char** argv) {
  interp::MpiSessionOptions options;
  options.tool = "ir-dump";
  if (!cli::WantsMpi(argc, argv, &options.timeout_seconds)) return RunProcess(argc, argv, nullptr);
  absl::StatusOr<std::unique_ptr<interp::MpiSession>> started = interp::MpiSession::Start(options);
  if (!started.ok()) return cli::UsageError("ir-dump", StrCat("--mpi: ", std::string(started.status().message())));
  return (*started)->End(RunProcess(argc, argv, started->get()));
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
