// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/simulation.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "passes/view/graph_document.h"
#include "passes/view/remark_lines.h"
#include "runtime/observe/profile_directory.h"
#include "simulator/export/advice_json.h"
#include "simulator/export/host_profile.h"
#include "simulator/export/report_document.h"
#include "simulator/export/timeline.h"
#include "simulator/export/xplane.h"
#include "simulator/report/advice_text.h"
#include "simulator/report/instruction_times.h"
#include "simulator/report/report.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/host.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/cli/pages/web_page.h"
#include "tools/hlo_run/device_options.h"
#include "tools/hlo_run/sweep.h"

namespace hlokit::run {

namespace {

bool WriteText(const std::string& path, std::string_view text, cli::DiagnosticReporter* diagnostics) {
  return cli::WriteOutputFile(path, diagnostics, [text](TextWriter& out) { out << text; });
}

bool WriteTimeline(const SimulationFlags& flags, const tpu::ReportInput& input, const tpu::KernelPlan& plan,
                   cli::DiagnosticReporter* diagnostics) {
  return cli::WriteOutputFile(flags.timeline, diagnostics, [&](TextWriter& out) {
    tpu::WriteChromeTrace(input, plan, flags.timeline_events, flags.timeline_devices, &out);
  });
}

// Returns the host model of the flags; without any, queued calls back to back.
std::optional<tpu::HostModel> HostFor(const SimulationFlags& flags, const tpu::SimulationOptions& options,
                                      cli::DiagnosticReporter* diagnostics) {
  constexpr std::string_view kProfile = "profile:";
  if (flags.host.compare(0, kProfile.size(), kProfile) == 0) {
    const std::string path = flags.host.substr(kProfile.size());
    if (path.empty()) {
      diagnostics->ShowError("--host", "expected the name of a file after `profile:`", cli::kUsage);
      return std::nullopt;
    }
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> file = ReadFile(path, diagnostics->input().max_bytes);
    if (!file.ok()) {
      diagnostics->ShowError("--host", std::string(file.status().message()), cli::kUsage);
      return std::nullopt;
    }
    absl::StatusOr<tpu::HostModel> plan = tpu::HostModelOfProfile((*file)->text());
    if (plan.ok()) return *std::move(plan);
    diagnostics->ShowError(path, std::string(plan.status().message()), cli::kRejected);
    return std::nullopt;
  }
  const double call = options.dispatch < 0 ? options.machine.queued_dispatch_latency : options.dispatch;
  absl::StatusOr<tpu::HostModel> plan = tpu::ParseHostModel(flags.host, call, options.machine.host_rate);
  if (plan.ok()) return *std::move(plan);
  diagnostics->ShowError("--host", std::string(plan.status().message()), cli::kUsage);
  return std::nullopt;
}

// Writes report.json and index.html, which shows the graph too.
bool WritePage(const SimulationFlags& flags, const tpu::ReportInput& input, const tpu::KernelPlan& plan,
               const tpu::HostModel& host, cli::DiagnosticReporter* diagnostics) {
  tpu::ReportDocumentOptions options;
  options.max_events = flags.timeline_events;
  options.command = flags.command;
  options.flags = flags.names;
  const std::string json = tpu::ReportDocument(input, plan, host, options);
  GraphDocumentOptions graph;
  graph.device = flags.device;
  graph.seconds = tpu::SecondsByInstruction(input.module, input.simulation);
  if (input.remarks != nullptr) graph.remarks = RemarkLinesOf(input.module, input.remarks->remarks());
  return cli::WriteReportPage(flags.page, json, GraphsJson({{&input.module, graph}}), diagnostics);
}

}  // namespace

void SimulationFlags::AddTo(CLI::App* app) {
  const std::string group(kGroup);
  app->add_option("--device,--target", device,
                  "simulate this target: its name, or the file of a description, and after `:` the chips, as in v5e, "
                  "v5p:4x4x4, mine.tpu:16; without chips as many as the module requires")
      ->type_name("DEVICE")
      ->group(group);
  app->add_flag("--timing-only", timing_only, "only estimate the time: compute no values, require no arguments")
      ->group(group);
  app->add_flag("--json", json, "print the report of --device as JSON")->group(group);
  app->add_option("--report-output", report,
                  "output file of the report; - is standard output (with values: standard error)")
      ->type_name("FILE")
      ->capture_default_str()
      ->group(group);
  app->add_option(
         "--report,--report-html", page,
         "write the report as a page to this directory: index.html, which requires no network and shows the graph of "
         "the module too (docs/hlo-view.md), and report.json")
      ->type_name("DIR")
      ->group(group);
  app->add_option("--host", host,
                  "host work of each step, as trace=12ms,compile=3s,execute=35us,transfer=8MB,input=5ms,"
                  "fetch=1ms,fetch_every=10,graphs=1,mode=lazy; or as recorded in a profile, profile:FILE.xplane.pb "
                  "(docs/report.md)")
      ->type_name("HOST")
      ->group(group);
  cli::AddNumber(app, "--top", &top, "rows of operations in the text report")->capture_default_str()->group(group);
  app->add_flag("--memory", memory,
                "print live arrays at the peak of HBM by operation, scope and source line, and simulated changes that "
                "lower it")
      ->group(group);
  app->add_flag("--advise", advise,
                "print what would make the step faster too: simulated changes of the program, resources twice as fast, "
                "other targets; the page of --report has them always")
      ->group(group);
  app->add_option(
         "--scale", scale,
         "PARAMETER=FACTOR: scale a parameter of the target, or hbm, mxu, vpu, vmem, ici, dcn, host, to see what "
         "bounds next")
      ->type_name("PARAMETER=FACTOR")
      ->group(group);
  app->add_option("--timeline", timeline,
                  "write the events of one execution to this file, as JSON for ui.perfetto.dev and chrome://tracing")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--xplane", xplane,
                  "write the steps of --host as a profile for TensorBoard's profile plugin, below this log directory")
      ->type_name("DIR")
      ->group(group);
  cli::AddNumber(app, "--timeline-events", &timeline_events,
                 "limit on the events of --timeline; longer loops are truncated", 1, size_t{1} << 32)
      ->capture_default_str()
      ->group(group);
  cli::AddNumber(app, "--timeline-devices", &timeline_devices, "limit on the devices of --timeline, where they differ",
                 1, int64_t{1} << 20)
      ->capture_default_str()
      ->group(group);
  variation.AddTo(app, group);
  app->add_option(
         "--sweep", sweep,
         "WHAT=VALUE,VALUE,...: a table and a plot of step times for several targets (device=v5e,v6e:2x2), chips "
         "(chips=4,16), types (dtype=f32,bf16), factors of a parameter (hbm=0.5,1,2), or programs: batch=8,16 with "
         "an input named step.{}.hlo")
      ->type_name("SWEEP")
      ->group(group);
  app->add_option(
         "--pipeline", pipeline,
         "passes to run before, on modules without a schedule, as for hlo-opt --passes; '' runs none; the target "
         "sets options that are not specified")
      ->type_name("PIPELINE")
      ->capture_default_str()
      ->group(group);
  app->add_option("--print-after", print_hlo,
                  "print, on standard error, the module after passes whose whole name matches the regular expression; "
                  "memory-space-assignment is the last of the default ones")
      ->type_name("PASS")
      ->group(group);
  cli::AddNumber(app, "--default-trip-count", &default_trip_count, "trip count of loops that cannot be counted", 0,
                 int64_t{1} << 40)
      ->capture_default_str()
      ->group(group);
  cli::AddNumber(app, "--host-dispatch-us", &dispatch_us,
                 "host time of each execution (default: that of queued calls on the target)", 0, 1e9)
      ->group(group);
  remarks.AddFlags(app, group);
  app->add_flag("--list-devices", list_devices, "print the names of the targets of --device and exit")->group(group);
  app->add_option("--print-device", print_device, "print the description of a target and exit")
      ->type_name("TARGET")
      ->group(group);
}

int ShowDevices(const SimulationFlags& flags, cli::DiagnosticReporter* diagnostics) {
  std::string text;
  if (!flags.print_device.empty()) {
    const std::optional<tpu::DeviceDescription> machine =
        cli::LoadDeviceDescription(flags.print_device, diagnostics, "--print-device");
    if (!machine) return diagnostics->exit_code();
    text = tpu::ToString(*machine);
  } else {
    for (std::string_view name : tpu::BuiltinDeviceDescriptions()) {
      const std::optional<tpu::DeviceDescription> machine = tpu::BuiltinDeviceDescription(name);
      if (!machine) continue;
      std::string line(name);
      line.resize(6, ' ');
      StrAppend(&text, line, cli::DeviceSummary(*machine), "\n");
    }
  }
  WriteText("-", text, diagnostics);
  return diagnostics->exit_code();
}

void SweepModules(const SimulationFlags& flags, const SweepPrograms& programs, bool family,
                  cli::DiagnosticReporter* diagnostics, interp::MpiSession* session) {
  const std::optional<std::string> table = Sweep(flags, programs, family, diagnostics, session);
  if (table && (session == nullptr || session->rank() == 0)) WriteText(flags.report, *table, diagnostics);
}

void SimulateModule(const SimulationFlags& flags, const Module& original, const SourceBuffer& source,
                    cli::DiagnosticReporter* diagnostics) {
  const std::optional<tpu::SimulationOptions> options = OptionsFor(flags, original, diagnostics);
  if (!options) return;
  const std::optional<tpu::HostModel> host = HostFor(flags, *options, diagnostics);
  if (!host) return;
  Module compiled = original.Clone();
  DiagnosticSink warnings;
  tpu::WarnOfShardings(original, &warnings);
  const bool made = CompileFor(flags, *options, &compiled, &warnings, diagnostics);
  diagnostics->Show(warnings, source);
  if (!made) return;
  tpu::SimulatedModule simulated(compiled, *options);
  if (!flags.host.empty()) simulated.AddHost(*host);
  const tpu::KernelPlan& plan = simulated.plan;
  tpu::ReportInput input = simulated.Input(&original, flags.pipeline);
  if (!flags.remarks.given().empty() || !flags.page.empty()) input.remarks = flags.remarks.collector();
  if (!flags.timeline.empty() && !WriteTimeline(flags, input, plan, diagnostics)) return;
  if (!flags.xplane.empty()) {
    const int64_t devices = std::min(flags.timeline_devices, input.simulation.devices.devices);
    const tpu::ProfileSpace space = tpu::BuildProfileSpace({&input, &plan}, *host, devices, flags.timeline_events);
    const std::filesystem::path directory = runtime::ProfileRunDirectory(flags.xplane, "simulated");
    const absl::Status status = runtime::WriteProfileDirectory(directory, "hlokit", tpu::XSpaceBytes(space));
    if (!status.ok()) {
      diagnostics->ShowOutputError(status);
      return;
    }
  }
  if (!flags.page.empty() && !WritePage(flags, input, plan, *host, diagnostics)) return;
  std::string text;
  if (flags.json) {
    text = flags.advise ? tpu::ReportAndAdviceJson(input, flags.memory, *host, "hlo-run", flags.names)
                        : tpu::ReportJson(input, flags.memory);
  } else {
    TextWriter writer(&text);
    tpu::PrintReport(input, flags.top, flags.memory, &writer);
    if (flags.advise) tpu::PrintAdvice(input, *host, &writer);
  }
  if (flags.report == "-" && !flags.timing_only) {
    TextWriter([](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stderr); }) << text;
  } else {
    WriteText(flags.report, text, diagnostics);
  }
  flags.remarks.Write(/*elsewhere=*/flags.json, diagnostics);
}

}  // namespace hlokit::run
