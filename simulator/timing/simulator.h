// SPDX-License-Identifier: Apache-2.0
// Simulates the time of a program on a TPU: the instructions of the compiled module in order on the core, asynchronous
// collectives and copies concurrently on the interconnect and the DMA engines, loops by their trip counts.
//
// The module is timed as given, in text order: fusions are kernels, arrays whose layouts assign vector memory are
// there, all others are in HBM. Each computation is simulated once and its callers use the total. HBM bandwidth that a
// kernel leaves idle prefetches operands of later kernels.
#ifndef HLOKIT_SIMULATOR_TIMING_SIMULATOR_H_
#define HLOKIT_SIMULATOR_TIMING_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/cost_model.h"
#include "passes/target/tpu_target.h"
#include "simulator/memory/residency.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/timing/device_timelines.h"

namespace hlokit::tpu {

struct SimulationOptions {
  DeviceDescription machine;
  Topology topology;
  int64_t default_trip_count = 1;  // for loops without a known trip count
  PerformanceVariation variation;  // between devices
  double dispatch = -1;  // host seconds per execution; negative: the device description's latency of queued calls
};

// Returns the target that the options describe. Its `parts` is the number of devices that share the module's work.
inline TpuTarget TargetOf(const SimulationOptions& options, const Module& module) {
  return {options.machine, options.topology, ImplicitPartitionCount(module)};
}

struct StepTime : OpTime {
  double start = 0;        // since the start of its computation
  double stall = 0;        // core stall before the start, for operands from other resources
  double trip_count = 1;   // for loops
  double kernel_time = 0;  // for a collective in a fusion: the core's part of the duration
  ComputationId branch;    // for conditionals and calls: the computation that runs
  bool on_core = true;
};

// Returns true for transfers between device and host, which share one link.
inline bool OverHostLink(const StepTime& transfer) { return transfer.times[static_cast<size_t>(Resource::kHost)] > 0; }

// Returns how long a copy occupies the DMA engines: the latency of one overlaps the transfer of the next.
inline double OccupancyOf(const StepTime& copy) {
  return copy.duration - copy.times[static_cast<size_t>(Resource::kOverhead)];
}

struct ComputationTime {
  std::vector<StepTime> steps;  // parallel to the plan
  double duration = 0;
  double core_busy = 0;
  double stall = 0;  // core stall, for collectives, copies and the host
  ResourceTimes busy{};
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double runs = 0;                    // per execution of the entry
  double core_runs = 0;               // those of `runs` that are not in an asynchronous call, beside the core
  std::vector<double> vmem;           // by step: vector memory in use, including the kernel's tiles
  double vmem_reserved = 0;           // peak of arrays in vector memory, including callees
  std::vector<Resident> vmem_arrays;  // arrays that stay in vector memory between kernels
};

// Totals of a step over one execution of the module. Loops and calls have no row; the steps inside them have.
struct OpRow {
  InstructionId name;
  double runs = 0;
  double seconds = 0;       // summed over runs
  double core_seconds = 0;  // of `seconds`: work of the core, which with its stalls is the device time
  double stall = 0;
  Resource bound = Resource::kOverhead;
  ScheduleUnitKind kind = ScheduleUnitKind::kKernel;
  InstructionId collective = {};  // as in ScheduleUnit
  bool scatters = false;
  bool on_core = true;  // otherwise the core works meanwhile
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  ResourceTimes times{};
};

struct Simulation {
  std::vector<ComputationTime> computations;  // parallel to the plan
  std::vector<OpRow> rows;                    // longest first; for a device of nominal speed
  DeviceTimelines devices;
  double device_seconds = 0;             // until the last device finishes
  double first_run_seconds = 0;          // device_seconds of the first run, if only it waits for prefetches; else 0
  int64_t prefetches = 0;                // that a run starts for the next one
  double step_seconds = 0;               // including the host, with queued calls
  Resource bound = Resource::kOverhead;  // resource that bounds the step
  ResourceTimes busy{};
  double core_busy = 0;  // mean of the devices; stalls make up the rest of device_seconds
  double stall = 0;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double vmem_peak = 0;                      // peak of vector memory in use
  InstructionId vmem_peak_at;                // the step at the peak
  std::vector<double> vmem_timeline;         // vector memory in use at each step of the entry's plan
  std::vector<Resident> vmem_live;           // arrays at the peak, largest first; the kernel's tiles are the rest
  double implicit_partitions = 1;            // devices that share the work of an unpartitioned module
  std::map<std::string, int64_t> unmodeled;  // properties that the estimate does not model, with counts
};

Simulation Simulate(const Module& module, const KernelPlan& plan, const SimulationOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_SIMULATOR_H_
