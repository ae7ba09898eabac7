// SPDX-License-Identifier: Apache-2.0
// Speed of the TPU simulation: a program for many devices with every device simulated, and with one that represents
// all. Prints device steps per second and the time of a simulation, relative to the targets: a million steps per
// second, two seconds for a training step of 405 billion parameters on 512 chips.
//
//   hlokit_bench_tpu_simulation [--device=v5p] [--rounds=N] FILE...
//
// CPU time, the median of the rounds, including the passes before the simulation.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "io/files/read_file.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/simulator.h"

namespace hlokit {
namespace {

constexpr double kTargetEvents = 1e6;   // per second
constexpr double kTargetSeconds = 2.0;  // per simulation

struct Result {
  double milliseconds = 0;
  double events = 0;
  int64_t devices = 0;
};

Result Simulate(const Module& original, const tpu::SimulationOptions& options, int rounds) {
  Result result;
  std::vector<double> times;
  for (int r = 0; r < rounds; ++r) {
    const double before = bench::ProcessMilliseconds();
    Module module = original.Clone();
    if (!module.header().is_scheduled) {
      absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("tpu");
      if (!pipeline.ok() || !pipeline->Run(module).ok()) std::exit(1);
    }
    const tpu::SimulatedModule simulated(module, options);
    times.push_back(bench::ProcessMilliseconds() - before);
    result.events = simulated.simulation.devices.events;
    result.devices = simulated.simulation.devices.devices;
  }
  result.milliseconds = bench::Median(times);
  return result;
}

int Run(int argc, char** argv) {
  std::string device = "v5p";
  int rounds = 5;
  std::vector<std::string> files;
  for (int a = 1; a < argc; ++a) {
    const std::string_view flag = argv[a];
    if (flag.starts_with("--device=")) {
      device = flag.substr(9);
    } else if (flag.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[a] + 9));
    } else {
      files.push_back(argv[a]);
    }
  }
  const std::optional<tpu::DeviceDescription> machine = tpu::BuiltinDeviceDescription(device);
  if (files.empty() || !machine) {
    std::fprintf(stderr, "usage: hlokit_bench_tpu_simulation [--device=NAME] [--rounds=N] FILE...\n");
    return 2;
  }
  std::printf("%-36s %8s %10s %12s %14s %10s %10s\n", "program", "devices", "alike ms", "walked ms", "steps walked",
              "steps/s", "x target");
  int slow = 0;
  for (const std::string& file : files) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = source.ok() ? ParseModule(*source, {}, &sink) : nullptr;
    if (module == nullptr || sink.has_errors()) {
      std::fprintf(stderr, "%s: not a module\n", file.c_str());
      return 1;
    }
    tpu::SimulationOptions options;
    options.machine = *machine;
    const int64_t per_chip = machine->devices_per_chip();
    options.topology = tpu::TopologyFor(*machine, (tpu::DevicesOf(*module) + per_chip - 1) / per_chip);
    const Result alike = Simulate(*module, options, rounds);
    options.variation.jitter = 0.05;
    const Result walked = Simulate(*module, options, rounds);
    const double rate = walked.events / std::max(walked.milliseconds - alike.milliseconds, 1e-3) * 1e3;
    std::printf("%-36.36s %8lld %10.2f %12.2f %14.0f %10.3g %10.1f\n", bench::ProgramName(file).c_str(),
                static_cast<long long>(walked.devices), alike.milliseconds, walked.milliseconds, walked.events, rate,
                rate / kTargetEvents);
    if (rate < kTargetEvents || alike.milliseconds > 1e3 * kTargetSeconds) slow = 1;
  }
  return slow;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
