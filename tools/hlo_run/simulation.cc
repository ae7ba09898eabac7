#include "tools/hlo_run/simulation.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "interp/tpu/host.h"
#include "interp/tpu/report.h"
#include "interp/tpu/report_document.h"
#include "interp/tpu/timeline.h"
#include "interp/tpu/xplane.h"
#include "ir/str_cat.h"
#include "passes/pipeline.h"
#include "tools/cli/output_file.h"
#include "tools/cli/report_page.h"

namespace hlokit::run {

namespace {

// A machine by installed name or from a file.
std::optional<tpu::Machine> ReadMachine(const std::string& name, cli::Diagnostics* diagnostics) {
  if (std::optional<tpu::Machine> machine = tpu::InstalledMachine(name)) return machine;
  if (name.find('/') == std::string::npos && name.find('.') == std::string::npos) {
    std::string message = StrCat("no machine is called '", name, "'; there are");
    for (std::string_view known : tpu::InstalledMachines()) StrAppend(&message, " ", known);
    diagnostics->ShowError("--device", StrCat(message, ", and files with a '.' or '/' in their names"), cli::kUsage);
    return std::nullopt;
  }
  const std::vector<cli::InputPart> parts = diagnostics->Read(name);
  if (parts.empty()) return std::nullopt;
  DiagnosticSink sink;
  std::optional<tpu::Machine> machine = tpu::ParseMachine(*parts[0].source, &sink);
  diagnostics->Show(sink, *parts[0].source);
  return machine;
}

// "v5p:4x4x4" -> "v5p", "4x4x4".
std::pair<std::string, std::string> SplitDevice(const std::string& device) {
  const size_t colon = device.rfind(':');
  if (colon == std::string::npos) return {device, ""};
  return {device.substr(0, colon), device.substr(colon + 1)};
}

bool ApplyScale(const std::string& text, tpu::Machine* machine, cli::Diagnostics* diagnostics) {
  const size_t equal = text.find('=');
  const std::string name = text.substr(0, equal);
  // Short names for what one asks about most.
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"hbm", "hbm_rate"},   {"mxu", "mxu_rows_per_cycle"}, {"ici", "ici_rate"}, {"dcn", "dcn_rate"},
      {"host", "host_rate"}, {"vmem", "vmem_rate"},         {"vpu", "vpu_alus"}};
  std::string_view field_name = name;
  for (const auto& [from, to] : kShort) {
    if (name == from) field_name = to;
  }
  const tpu::MachineField* field = tpu::FindMachineField(field_name);
  if (field == nullptr) {
    std::vector<std::string_view> names;
    for (const tpu::MachineField& f : tpu::MachineFields()) names.push_back(f.name);
    const std::string_view near = Nearest(name, names);
    std::string hint;
    if (!near.empty()) hint = StrCat("; did you mean '", near, "'?");
    diagnostics->ShowError("--scale", StrCat("no figure is called '", name, "'", hint), cli::kUsage);
    return false;
  }
  double factor = 0;
  const char* begin = text.data() + (equal == std::string::npos ? text.size() : equal + 1);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), factor);
  if (error != std::errc() || end != text.data() + text.size() || !(factor > 0) || factor > 1e6) {
    diagnostics->ShowError("--scale", StrCat("'", text, "': expected FIGURE=FACTOR with a factor above 0"),
                           cli::kUsage);
    return false;
  }
  double& value = machine->*field->member;
  value *= factor;
  if (value < field->minimum || value > field->maximum) {
    diagnostics->ShowError("--scale", StrCat("'", text, "' leaves the range of ", field->name), cli::kUsage);
    return false;
  }
  return true;
}

std::optional<tpu::SimulationOptions> OptionsFor(const SimulationFlags& flags, const Module& module,
                                                 cli::Diagnostics* diagnostics) {
  const auto [name, topology] = SplitDevice(flags.device);
  std::optional<tpu::Machine> machine = ReadMachine(name, diagnostics);
  if (!machine) return std::nullopt;
  for (const std::string& scale : flags.scale) {
    if (!ApplyScale(scale, &*machine, diagnostics)) return std::nullopt;
  }
  tpu::SimulationOptions options;
  options.machine = *std::move(machine);
  options.unknown_trips = flags.unknown_trips;
  options.dispatch = flags.dispatch_us < 0 ? -1 : flags.dispatch_us * 1e-6;
  const int64_t devices = tpu::DevicesOf(module);
  const int64_t per_chip = options.machine.devices_per_chip();
  if (topology.empty()) {
    options.topology = tpu::TopologyFor(options.machine, (devices + per_chip - 1) / per_chip);
    return options;
  }
  absl::StatusOr<tpu::Topology> parsed = tpu::ParseTopology(options.machine, topology);
  if (!parsed.ok()) {
    diagnostics->ShowError("--device", std::string(parsed.status().message()), cli::kUsage);
    return std::nullopt;
  }
  options.topology = *std::move(parsed);
  if (options.topology.Chips() * per_chip < devices) {
    diagnostics->ShowError("--device",
                           StrCat("the module is made for ", devices, " devices, ", flags.device, " has ",
                                  options.topology.Chips() * per_chip),
                           cli::kRejected);
    return std::nullopt;
  }
  return options;
}

std::string Fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

// The rows of --sweep, one simulation each; the module has been compiled.
std::optional<std::string> Sweep(const SimulationFlags& flags, const Module& original, const Module& module,
                                 const tpu::KernelPlan& plan, cli::Diagnostics* diagnostics) {
  const size_t equal = flags.sweep.find('=');
  const std::string what = flags.sweep.substr(0, equal);
  if (equal == std::string::npos || equal + 1 == flags.sweep.size()) {
    diagnostics->ShowError("--sweep", StrCat("'", flags.sweep, "': expected WHAT=VALUE,VALUE,..."), cli::kUsage);
    return std::nullopt;
  }
  std::string table = "        step us      device us     busy %   HBM GiB  fits  bound by        ";
  StrAppend(&table, what, "\n");
  size_t at = equal + 1;
  while (at <= flags.sweep.size()) {
    const size_t comma = std::min(flags.sweep.find(',', at), flags.sweep.size());
    const std::string value = flags.sweep.substr(at, comma - at);
    at = comma + 1;
    SimulationFlags one = flags;
    if (what == "device") {
      one.device = value;
    } else if (what == "chips") {
      one.device = StrCat(SplitDevice(flags.device).first, ":", value);
    } else {
      one.scale.push_back(StrCat(what, "=", value));
    }
    const std::optional<tpu::SimulationOptions> options = OptionsFor(one, original, diagnostics);
    if (!options) return std::nullopt;
    const tpu::Simulation simulation = tpu::Simulate(module, plan, *options);
    const tpu::MemoryPlan memory = tpu::PlanMemory(options->machine, module, plan, simulation.parts);
    const double busy = simulation.device_seconds > 0 ? 100 * simulation.core_busy / simulation.device_seconds : 0;
    const auto cell = [&table](const std::string& text, size_t width) {
      table.append(width > text.size() ? width - text.size() : 0, ' ');
      table.append(text);
    };
    cell(Fixed(simulation.step_seconds * 1e6, 2), 15);
    cell(Fixed(simulation.device_seconds * 1e6, 2), 15);
    cell(Fixed(busy, 1), 11);
    cell(Fixed(static_cast<double>(memory.peak_bytes) / (1 << 30), 2), 10);
    cell(memory.fits() ? "yes" : "no", 6);
    std::string bound(tpu::NameOf(simulation.bound));
    bound.resize(std::max<size_t>(bound.size(), 14), ' ');
    StrAppend(&table, "  ", bound, "  ", value, "\n");
  }
  return table;
}

bool WriteText(const std::string& path, std::string_view text, cli::Diagnostics* diagnostics) {
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(path);
  if (!file.ok()) {
    diagnostics->ShowError(path, std::string(file.status().message()), cli::kUsage);
    return false;
  }
  (*file)->writer() << text;
  if (const absl::Status status = (*file)->Commit(); !status.ok()) {
    diagnostics->ShowError(path, std::string(status.message()), cli::kUsage);
    return false;
  }
  return true;
}

bool WriteTimeline(const SimulationFlags& flags, const tpu::ReportInput& input, const tpu::KernelPlan& plan,
                   cli::Diagnostics* diagnostics) {
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(flags.timeline);
  if (!file.ok()) {
    diagnostics->ShowError(flags.timeline, std::string(file.status().message()), cli::kUsage);
    return false;
  }
  tpu::WriteChromeTrace(input, plan, flags.timeline_events, &(*file)->writer());
  const absl::Status status = (*file)->Commit();
  if (!status.ok()) diagnostics->ShowError(flags.timeline, std::string(status.message()), cli::kUsage);
  return status.ok();
}

// The host that the flags describe; without any, calls that are queued back to back.
std::optional<tpu::HostPlan> HostFor(const SimulationFlags& flags, const tpu::SimulationOptions& options,
                                     cli::Diagnostics* diagnostics) {
  const double call = options.dispatch < 0 ? options.machine.dispatch_queued : options.dispatch;
  absl::StatusOr<tpu::HostPlan> plan = tpu::ParseHostPlan(flags.host, call, options.machine.host_rate);
  if (plan.ok()) return *std::move(plan);
  diagnostics->ShowError("--host", std::string(plan.status().message()), cli::kUsage);
  return std::nullopt;
}

bool MakeFolder(const std::filesystem::path& folder, cli::Diagnostics* diagnostics) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) diagnostics->ShowError(folder.string(), error.message(), cli::kUsage);
  return !error;
}

// report.json and index.html.
bool WritePage(const SimulationFlags& flags, const tpu::ReportInput& input, const tpu::KernelPlan& plan,
               const tpu::HostPlan& host, cli::Diagnostics* diagnostics) {
  const std::filesystem::path folder(flags.page);
  if (!MakeFolder(folder, diagnostics)) return false;
  tpu::ReportDocumentOptions options;
  options.max_events = flags.timeline_events;
  options.command = flags.command;
  const std::string json = tpu::ReportDocument(input, plan, host, options);
  if (!WriteText((folder / "report.json").string(), json, diagnostics)) return false;
  const std::string page = (folder / "index.html").string();
  const absl::Status status = cli::WriteReportPage(page, json);
  if (!status.ok()) diagnostics->ShowError(page, std::string(status.message()), cli::kUsage);
  return status.ok();
}

// A module with a schedule has been compiled; others get what a compiler would do first.
bool Compile(const SimulationFlags& flags, Module* module, cli::Diagnostics* diagnostics) {
  if (flags.pipeline.empty() || module->header().is_scheduled) return true;
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(flags.pipeline);
  if (!pipeline.ok()) {
    diagnostics->ShowError("--pipeline", std::string(pipeline.status().message()), cli::kUsage);
    return false;
  }
  const absl::StatusOr<Pipeline::Result> result = pipeline->Run(*module);
  if (!result.ok()) diagnostics->ShowError("--pipeline", std::string(result.status().message()), cli::kRejected);
  return result.ok();
}

}  // namespace

void SimulationFlags::AddTo(CLI::App* app) {
  const std::string group = "Simulated TPU";
  app->add_option("--device", device,
                  "simulate this machine: a name, or the file of a description, and after ':' the chips, as in v5e, "
                  "v5p:4x4x4, mine.tpu:16; without chips as many as the module is made for")
      ->group(group);
  app->add_flag("--timing-only", timing_only, "only estimate the time: compute no values, need no arguments")
      ->group(group);
  app->add_flag("--json", json, "the report of --device as JSON")->group(group);
  app->add_option("--report-to", report, "where the report goes; - is standard output (with values: standard error)")
      ->capture_default_str()
      ->group(group);
  app->add_option("--report", page,
                  "write the report as a page to this folder: index.html, which needs no network, and report.json")
      ->group(group);
  app->add_option("--host", host,
                  "what the host does in each step, as trace=12ms,compile=3s,execute=35us,transfer=8MB,input=5ms,"
                  "fetch=1ms,fetch_every=10,graphs=1,mode=lazy (docs/report.md)")
      ->group(group);
  app->add_option("--top", top, "rows of operations in the text report")->capture_default_str()->group(group);
  app->add_option("--scale", scale,
                  "FIGURE=FACTOR: change a figure of the machine, or hbm, mxu, vpu, vmem, ici, dcn, host; see what "
                  "bounds next")
      ->group(group);
  app->add_option("--timeline", timeline,
                  "write the events of one execution to this file, as JSON for ui.perfetto.dev and chrome://tracing")
      ->group(group);
  app->add_option("--xplane", xplane,
                  "write the same as a profile for TensorBoard's profile plugin, below this log folder")
      ->group(group);
  app->add_option("--timeline-events", timeline_events, "at most so many; longer loops are cut short")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->capture_default_str()
      ->group(group);
  app->add_option("--sweep", sweep,
                  "WHAT=VALUE,VALUE,...: a table of step times for several machines (device=v5e,v6e:2x2), chips "
                  "(chips=4,16) or factors of a figure (hbm=0.5,1,2)")
      ->group(group);
  app->add_option("--pipeline", pipeline,
                  "passes to run before, on modules without a schedule, as for hlo-opt --passes; '' runs none")
      ->capture_default_str()
      ->group(group);
  app->add_option("--unknown-trips", unknown_trips, "trips of loops that cannot be counted")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str()
      ->group(group);
  app->add_option("--dispatch-us", dispatch_us, "host time of each execution (default: the machine's, calls queued)")
      ->check(CLI::Range(0.0, 1e9))
      ->group(group);
  app->add_flag("--list-devices", list_devices, "name the machines that --device knows")->group(group);
  app->add_option("--print-device", print_device, "print a machine's description, to be copied and changed")
      ->group(group);
}

int ShowDevices(const SimulationFlags& flags, cli::Diagnostics* diagnostics) {
  std::string text;
  if (!flags.print_device.empty()) {
    const std::optional<tpu::Machine> machine = ReadMachine(flags.print_device, diagnostics);
    if (!machine) return diagnostics->exit_code();
    text = tpu::ToText(*machine);
  } else {
    for (std::string_view name : tpu::InstalledMachines()) {
      const std::optional<tpu::Machine> machine = tpu::InstalledMachine(name);
      if (!machine) continue;
      std::string line(name);
      line.resize(6, ' ');
      const double per_chip = static_cast<double>(machine->devices_per_chip());
      StrAppend(&line, static_cast<int64_t>(machine->PeakFlops() * per_chip / 1e12 + 0.5), " TFLOP/s bf16, ",
                static_cast<int64_t>(machine->hbm_size / (1 << 30) + 0.5), " GiB HBM at ",
                static_cast<int64_t>(machine->hbm_rate / 1e9 + 0.5), " GB/s, up to ",
                static_cast<int64_t>(machine->max_chips), " chips\n");
      text += line;
    }
  }
  WriteText("-", text, diagnostics);
  return diagnostics->exit_code();
}

void SimulateModule(const SimulationFlags& flags, const Module& original, cli::Diagnostics* diagnostics) {
  const std::optional<tpu::SimulationOptions> options = OptionsFor(flags, original, diagnostics);
  if (!options) return;
  const std::optional<tpu::HostPlan> host = HostFor(flags, *options, diagnostics);
  if (!host) return;
  Module compiled = original.Clone();
  if (!Compile(flags, &compiled, diagnostics)) return;
  const Module& module = compiled;
  const tpu::KernelPlan plan(module);
  if (!flags.sweep.empty()) {
    if (const std::optional<std::string> table = Sweep(flags, original, module, plan, diagnostics)) {
      WriteText(flags.report, *table, diagnostics);
    }
    return;
  }
  tpu::Simulation simulation = tpu::Simulate(module, plan, *options);
  if (!flags.host.empty()) {
    simulation.step_seconds = tpu::RunHost(*host, simulation.device_seconds).step_seconds;
    if (simulation.step_seconds > 1.001 * simulation.device_seconds) simulation.bound = tpu::Resource::kHost;
  }
  const tpu::MemoryPlan memory = tpu::PlanMemory(options->machine, module, plan, simulation.parts);
  const tpu::ReportInput input{module, *options, simulation, memory};
  if (!flags.timeline.empty() && !WriteTimeline(flags, input, plan, diagnostics)) return;
  if (!flags.xplane.empty()) {
    const std::filesystem::path folder = std::filesystem::path(flags.xplane) / "plugins" / "profile" / "simulated";
    if (!MakeFolder(folder, diagnostics)) return;
    const std::string path = (folder / "hlokit.xplane.pb").string();
    if (!WriteText(path, tpu::XSpaceBytes(input, plan, flags.timeline_events), diagnostics)) return;
  }
  if (!flags.page.empty() && !WritePage(flags, input, plan, *host, diagnostics)) return;
  std::string text;
  if (flags.json) {
    text = tpu::ReportJson(input);
  } else {
    TextWriter writer(&text);
    tpu::PrintReport(input, flags.top, &writer);
  }
  if (flags.report == "-" && !flags.timing_only) {
    TextWriter([](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stderr); }) << text;
  } else {
    WriteText(flags.report, text, diagnostics);
  }
}

}  // namespace hlokit::run
