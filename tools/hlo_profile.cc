// SPDX-License-Identifier: Apache-2.0
// hlo-profile: captures profiles of running programs, and converts them.
#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "runtime/observe/profile_files.h"
#include "runtime/observe/profiler_server.h"
#include "tools/cli/cli.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/cli/pages/report_comparison.h"

namespace hlokit {
namespace {

constexpr char kExamples[] = R"(Examples:
  ir-dump --model=bert --steps=1000 --profiler-port=9012 &
  hlo-profile capture --address=localhost:9012 --logdir=log --duration-ms=2000
                                            what it does for two seconds, for tensorboard --logdir=log
  hlo-profile monitor --address=localhost:9012
                                            the same as a few lines
  hlo-profile show log/plugins/profile/*/*.xplane.pb
                                            planes, lines, what takes longest
  hlo-profile trace FILE.xplane.pb -o trace.json
                                            for ui.perfetto.dev and chrome://tracing
  hlo-profile compare before after --report=comparison
                                            two directories of --report, as text and as a page side by side)";

struct Flags {
  runtime::ProfileCaptureOptions capture;
  int64_t monitor_ms = 1000;
  std::string file;
  std::string output = "-";
  size_t top = 10;
  cli::ReportComparisonOptions comparison;
  cli::InputOptions input;
};

// Returns the exit code for an error of the profiler.
cli::ExitCode CodeOf(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? cli::kUsage : cli::kRejected;
}

void Capture(const Flags& flags, cli::DiagnosticReporter* diagnostics, TextWriter* out) {
  const absl::StatusOr<std::string> path = runtime::CaptureProfile(flags.capture);
  if (path.ok()) {
    *out << *path << "\n";
  } else {
    diagnostics->ShowError("capture", std::string(path.status().message()), CodeOf(path.status()));
  }
}

void Monitor(const Flags& flags, cli::DiagnosticReporter* diagnostics, TextWriter* out) {
  const absl::StatusOr<std::string> text = runtime::MonitorProcess(flags.capture.address, flags.monitor_ms);
  if (text.ok()) {
    *out << *text;
  } else {
    diagnostics->ShowError("monitor", std::string(text.status().message()), CodeOf(text.status()));
  }
}

void Convert(const Flags& flags, bool trace, cli::DiagnosticReporter* diagnostics, TextWriter* out) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(flags.file);
  if (parts.empty()) return;
  const std::string_view bytes = parts[0].source->text();
  const absl::Status status = trace ? runtime::WriteProfileTrace(bytes, std::numeric_limits<size_t>::max(), out)
                                    : runtime::PrintProfile(bytes, flags.top, out);
  if (!status.ok()) diagnostics->ShowError(flags.file, std::string(status.message()), cli::kRejected);
}

int Run(int argc, char** argv) {
  CLI::App app("take profiles of running programs and show them (docs/profiler.md)", "hlo-profile");
  Flags flags;
  CLI::App* capture = app.add_subcommand("capture", "take a profile of the program that serves one at an address");
  CLI::App* monitor = app.add_subcommand("monitor", "summarize what that program does");
  CLI::App* show = app.add_subcommand("show", "print a profile as text");
  CLI::App* trace = app.add_subcommand("trace", "convert a profile to JSON for Perfetto and chrome://tracing");
  CLI::App* compare = app.add_subcommand("compare", "compare two reports of --report");
  app.require_subcommand(1);
  for (CLI::App* sub : {capture, monitor}) {
    sub->add_option("--address", flags.capture.address,
                    "address of the program: a loopback address and a port, localhost:9012")
        ->type_name("ADDRESS")
        ->required();
  }
  capture->add_option("--logdir", flags.capture.logdir, "log directory of the profile, for tensorboard --logdir")
      ->type_name("DIR")
      ->required();
  cli::AddNumber(capture, "--duration-ms", &flags.capture.duration_ms, "duration of the capture", 1, 600000)
      ->capture_default_str();
  capture->add_option("--run", flags.capture.run, "name of the run (default: the time)")->type_name("NAME");
  cli::AddNumber(capture, "--attempts", &flags.capture.attempts, "number of attempts while no event occurs", 1, 100)
      ->capture_default_str();
  cli::AddNumber(monitor, "--duration-ms", &flags.monitor_ms, "duration of the capture", 1, 600000)
      ->capture_default_str();
  for (CLI::App* sub : {show, trace}) {
    sub->add_option("file", flags.file, "an .xplane.pb file")->type_name("FILE")->required();
  }
  cli::AddNumber(show, "--top", &flags.top, "limit on the events of each line")->capture_default_str();
  compare->add_option("before", flags.comparison.before, "a report.json, or the directory with it")
      ->type_name("REPORT")
      ->required();
  compare->add_option("after", flags.comparison.after, "the report to compare with it")
      ->type_name("REPORT")
      ->required();
  compare->add_option("--report", flags.comparison.page, "also write a page with both to this directory")
      ->type_name("DIR");
  cli::AddNumber(compare, "--top", &flags.comparison.top, "limit on the rows of each table")->capture_default_str();
  for (CLI::App* sub : {show, trace, compare}) flags.input.AddMaxInputBytesFlag(sub);
  for (CLI::App* sub : {capture, monitor, show, trace, compare}) {
    sub->add_option("-o,--output", flags.output, "output file; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
  }
  app.footer(kExamples);
  capture->footer("Examples:\n  hlo-profile capture --address=localhost:9012 --logdir=log --duration-ms=2000");
  monitor->footer("Examples:\n  hlo-profile monitor --address=localhost:9012 --duration-ms=500");
  show->footer("Examples:\n  hlo-profile show --top=20 log/plugins/profile/*/*.xplane.pb");
  compare->footer("Examples:\n  hlo-profile compare before after --report=comparison");
  trace->footer("Examples:\n  hlo-profile trace host.xplane.pb -o trace.json");
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;

  cli::DiagnosticReporter diagnostics(flags.input);
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(flags.output);
  if (!file.ok()) {
    diagnostics.ShowOutputError(file.status());
    return diagnostics.exit_code();
  }
  TextWriter& out = (*file)->writer();
  if (capture->parsed()) Capture(flags, &diagnostics, &out);
  if (monitor->parsed()) Monitor(flags, &diagnostics, &out);
  if (show->parsed()) Convert(flags, /*trace=*/false, &diagnostics, &out);
  if (compare->parsed()) cli::CompareReports(flags.comparison, &diagnostics, &out);
  if (trace->parsed()) Convert(flags, /*trace=*/true, &diagnostics, &out);
  if (diagnostics.exit_code() != cli::kOk) return diagnostics.exit_code();
  if (const absl::Status status = (*file)->Commit(); !status.ok()) {
    diagnostics.ShowOutputError(status);
  }
  return diagnostics.exit_code();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
