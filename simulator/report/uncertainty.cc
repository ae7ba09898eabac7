// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/uncertainty.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hlokit::tpu {

namespace {

struct FigureOfResource {
  std::string_view figure;
  Resource resource;
};
// The figures to which the time of a resource is proportional, or inversely so.
constexpr FigureOfResource kFigures[] = {
    {"mxu_efficiency", Resource::kMxu},
    {"vpu_efficiency", Resource::kVpu},
    {"transcendental_rate", Resource::kEup},
    {"xlu_rate", Resource::kXlu},
    {"vmem_rate", Resource::kVmem},
    {"vmem_efficiency", Resource::kVmem},
    {"scalar_op_latency", Resource::kScalar},
    {"gather_row_overhead", Resource::kScalar},
    {"hbm_rate", Resource::kHbm},
    {"hbm_efficiency", Resource::kHbm},
    {"ici_rate", Resource::kIci},
    {"ici_efficiency", Resource::kIci},
    {"dcn_rate", Resource::kDcn},
    {"host_rate", Resource::kHost},
    {"hbm_latency", Resource::kOverhead},
};
constexpr Resource kUnits[] = {Resource::kMxu, Resource::kVpu,  Resource::kEup,
                               Resource::kXlu, Resource::kVmem, Resource::kScalar};
// The clock scales all of these.
constexpr std::string_view kClock = "clock";

size_t Index(Resource r) { return static_cast<size_t>(r); }

// Divides the time of a row between the unit of the core that needs most and HBM, by how the duration of a kernel
// depends on each; the rest is overhead.
void AddKernel(const DeviceDescription& machine, const OpRow& row, ResourceTimes* seconds) {
  Resource unit = Resource::kMxu;
  for (Resource r : kUnits) {
    if (row.times[Index(r)] > row.times[Index(unit)]) unit = r;
  }
  const double overhead = std::min(row.times[Index(Resource::kOverhead)], row.seconds);
  const double p = machine.overlap_exponent;
  const double compute = row.times[Index(unit)], memory = row.times[Index(Resource::kHbm)];
  const double larger = std::max(compute, memory);
  (*seconds)[Index(Resource::kOverhead)] += overhead;
  if (larger <= 0) return;
  const double of_unit = std::pow(compute / larger, p), of_memory = std::pow(memory / larger, p);
  const double rest = row.seconds - overhead;
  (*seconds)[Index(unit)] += rest * of_unit / (of_unit + of_memory);
  (*seconds)[Index(Resource::kHbm)] += rest * of_memory / (of_unit + of_memory);
}

// Returns the seconds of the device time that change with each resource.
ResourceTimes Attribute(const DeviceDescription& machine, const Simulation& simulation) {
  ResourceTimes seconds{};
  ResourceTimes off_core{};
  double kernels = 0;
  for (const OpRow& row : simulation.rows) {
    if (row.kind == ScheduleUnitKind::kKernel && row.on_core) {
      AddKernel(machine, row, &seconds);
      kernels += row.seconds;
    } else {
      for (Resource r : {Resource::kIci, Resource::kDcn, Resource::kHost, Resource::kHbm}) {
        off_core[Index(r)] += row.times[Index(r)];
      }
    }
  }
  // Stalls are for what runs beside the core, in proportion to its time.
  double sum = 0;
  for (double t : off_core) sum += t;
  const double stall = std::max(simulation.device_seconds - kernels, 0.0);
  for (size_t r = 0; r < kResourceCount && sum > 0; ++r) seconds[r] += stall * off_core[r] / sum;
  return seconds;
}

}  // namespace

Uncertainty UncertaintyOf(const DeviceDescription& machine, const Simulation& simulation) {
  Uncertainty result;
  double variance = kModelError * kModelError;
  if (simulation.device_seconds > 0) {
    const ResourceTimes total = Attribute(machine, simulation);
    const auto add = [&](std::string_view figure, double seconds) {
      const double error = machine.ErrorOf(figure), share = std::min(seconds / simulation.device_seconds, 1.0);
      if (error <= 0 || share <= 0) return;
      result.sources.push_back({figure, error, share});
      variance += error * error * share * share;
    };
    double clocked = 0;
    for (Resource r : kUnits) clocked += total[Index(r)];
    add(kClock, clocked);
    for (const FigureOfResource& f : kFigures) add(f.figure, total[Index(f.resource)]);
  }
  std::stable_sort(
      result.sources.begin(), result.sources.end(),
      [](const UncertaintySource& a, const UncertaintySource& b) { return a.error * a.share > b.error * b.share; });
  result.relative = std::sqrt(variance);
  return result;
}

}  // namespace hlokit::tpu
