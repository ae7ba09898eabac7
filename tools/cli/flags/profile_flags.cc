// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/profile_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "runtime/observe/profile_directory.h"
#include "simulator/export/profile_graphs.h"
#include "simulator/export/profile_simulation.h"
#include "simulator/export/report_document.h"
#include "simulator/report/number_text.h"
#include "simulator/timing/device_selection.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/pages/web_page.h"

namespace hlokit::cli {

namespace {

constexpr int64_t kPlanes = 8;  // devices with planes

// Simulates the programs of a profile on the device of the flags.
absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> SimulateProfile(const ProfileFlags& flags,
                                                                        const tpu::DeviceDescription& machine,
                                                                        const runtime::Profile& profile) {
  const std::string chips = tpu::SplitDeviceName(flags.device).second;
  tpu::ProfileSimulation::Options options;
  options.replicas = flags.replicas;
  // Models have no code of their own, whose work nothing counts.
  options.times = flags.host_times == "measured" ? tpu::HostTimes::kMeasured : tpu::HostTimes::kCounted;
  if (flags.host_times == "torch_xla") options.host = tpu::HostSystem::kTorchXla;
  options.machine = [&](const Module& module) -> absl::StatusOr<tpu::SimulationOptions> {
    tpu::SimulationOptions simulation;
    simulation.machine = machine;
    absl::StatusOr<tpu::Topology> topology = tpu::TopologyFor(machine, chips, module, flags.device);
    if (!topology.ok()) return topology.status();
    simulation.topology = *std::move(topology);
    simulation.variation = flags.performance;
    if (absl::Status s = tpu::CheckStragglers(simulation); !s.ok()) return s;
    return simulation;
  };
  return tpu::ProfileSimulation::Create(profile, options);
}

void ShowSimulationError(const ProfileFlags& flags, const absl::Status& status, DiagnosticReporter* diagnostics) {
  if (absl::IsNotFound(status)) {
    diagnostics->ShowError(flags.report.empty() ? "--profile" : "--report",
                           "the program executes nothing on the device: there is nothing to report on", kRejected);
    return;
  }
  const bool straggler = absl::IsOutOfRange(status);  // of CheckStragglers
  diagnostics->ShowError(straggler ? "--straggler" : "--device", std::string(status.message()),
                         straggler ? kUsage : kRejected);
}

std::string SpaceBytes(const tpu::ProfileSimulation& simulated, const ProfileFlags& flags) {
  tpu::ProfileSpace space = simulated.ToSpace(kPlanes, flags.events);
  space.hostname = runtime::ProfileHostName();
  return tpu::XSpaceBytes(space);
}

}  // namespace

void ProfileFlags::AddTo(CLI::App* app) {
  const std::string group = "Profile";
  app->add_option(
         "--profile,--xplane", profile,
         "record the host, run the programs on the simulated --device, and write both below this log directory "
         "for TensorBoard's profile plugin")
      ->type_name("DIR")
      ->group(group);
  app->add_option("--report,--report-html", report,
                  "write the same as a page to this directory, with the graphs of the programs (docs/report.md)")
      ->type_name("DIR")
      ->group(group);
  AddNumber(app, "--profiler-port", &port,
            "serve profiles of the run on this port of localhost (0: any), to hlo-profile capture and TensorBoard", 0,
            65535)
      ->group(group);
  app->add_option("--device,--target", device, "target of --profile and --report, and its chips, as in hlo-run")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->group(group);
  app->add_option(
         "--host-times", host_times,
         "times of the host in --profile and --report: modeled, from the work that was counted, the same in every "
         "run; torch_xla, the same at the costs of PyTorch/XLA (docs/profiler.md); or measured, CPU time of the "
         "threads")
      ->check(CLI::IsMember({"modeled", "torch_xla", "measured"}))
      ->capture_default_str()
      ->group(group);
  AddNumber(app, "--replicas,--num-replicas", &replicas,
            "number of simulated devices of --profile and --report that train together, each as this one does", 1,
            int64_t{1} << 20)
      ->group(group);
  variation.AddTo(app, group);
}

bool ProfileFlags::Check(DiagnosticReporter* diagnostics) {
  if (!variation.given()) return true;
  if (!wanted() && port < 0) {
    diagnostics->ShowError("--straggler, --jitter", "they require --profile or --report", kUsage);
    return false;
  }
  return variation.Read(&performance, diagnostics);
}

std::unique_ptr<runtime::ProfilerServer> ServeProfiles(const ProfileFlags& flags, DiagnosticReporter* diagnostics) {
  runtime::Profiler::SetThreadName("main");
  const std::optional<tpu::DeviceDescription> machine =
      LoadDeviceDescription(tpu::SplitDeviceName(flags.device).first, diagnostics);
  if (!machine) return nullptr;
  absl::StatusOr<std::unique_ptr<runtime::ProfilerServer>> server = runtime::ProfilerServer::Start(
      flags.port, [flags, machine = *machine](const runtime::Profile& profile) -> absl::StatusOr<std::string> {
        absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> simulated = SimulateProfile(flags, machine, profile);
        if (!simulated.ok()) return simulated.status();
        return SpaceBytes(**simulated, flags);
      });
  if (!server.ok()) {
    diagnostics->ShowError("--profiler-port", std::string(server.status().message()), kUsage);
    return nullptr;
  }
  std::fprintf(stderr, "profiler: listening on localhost:%d\n", (*server)->port());
  return *std::move(server);
}

bool StartProfile(DiagnosticReporter* diagnostics) {
  runtime::Profiler::SetThreadName("main");
  const absl::Status status = runtime::Profiler::Start();
  if (!status.ok()) diagnostics->ShowError("--profile", std::string(status.message()), kInternal);
  return status.ok();
}

void FinishProfile(const ProfileFlags& flags, DiagnosticReporter* diagnostics) {
  absl::StatusOr<runtime::Profile> profile = runtime::Profiler::Stop();
  if (!profile.ok()) {
    diagnostics->ShowError("--profile", std::string(profile.status().message()), kInternal);
    return;
  }
  const std::optional<tpu::DeviceDescription> machine =
      LoadDeviceDescription(tpu::SplitDeviceName(flags.device).first, diagnostics);
  if (!machine) return;
  absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> simulated = SimulateProfile(flags, *machine, *profile);
  if (!simulated.ok()) {
    ShowSimulationError(flags, simulated.status(), diagnostics);
    return;
  }
  for (size_t p = 0; p < (*simulated)->program_count(); ++p) {
    const tpu::ReportInput& input = (*simulated)->input(p);
    if (input.memory.fits()) continue;
    diagnostics->ShowWarning(
        "--device", StrCat(std::string(input.module.name()), " does not fit: its peak is ",
                           tpu::FormatBytes(static_cast<double>(input.memory.peak_bytes)), " of HBM, and a device of ",
                           flags.device, " has ", tpu::FormatBytes(input.memory.limit_bytes),
                           flags.report.empty() ? "" : "; the report lists what is alive and ways to fit"));
  }
  if (!flags.profile.empty()) {
    const std::filesystem::path directory =
        runtime::ProfileRunDirectory(flags.profile, runtime::ProfileRunName(profile->start_unix_ns));
    const absl::Status status =
        runtime::WriteProfileDirectory(directory, runtime::ProfileHostName(), SpaceBytes(**simulated, flags));
    if (!status.ok()) {
      diagnostics->ShowOutputError(status);
      return;
    }
  }
  if (flags.report.empty()) return;
  const tpu::Replay& replay = (*simulated)->replay();
  if (replay.plan.steps.empty()) {
    diagnostics->ShowError("--report", "the program marked no step: there is nothing to report on", kRejected);
    return;
  }
  if (!tpu::HasSteadyState(replay.plan)) diagnostics->ShowWarning("--report", std::string(tpu::kNoSteadyState));
  tpu::ReportDocumentOptions document;
  document.max_events = flags.events;
  document.title = flags.title;
  document.command = flags.command;
  document.tool = "ir-dump";
  document.flags = flags.names;
  const tpu::RecordedRun run = (*simulated)->recorded_run();
  document.run = &run;
  const std::string json = tpu::ReportDocument((*simulated)->input(replay.main_program),
                                               (*simulated)->plan(replay.main_program), replay.plan, document);
  WriteReportPage(flags.report, json, tpu::ProfileGraphs(**simulated, flags.device), diagnostics);
}

}  // namespace hlokit::cli
