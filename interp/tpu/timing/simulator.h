// SPDX-License-Identifier: Apache-2.0
// Time of a program on a simulated TPU: each instruction of the compiled module in turn on the core, asynchronous
// collectives and copies beside them on the interconnect and the DMA engines, loops by their trips.
//
// The module is timed as it stands, in the order of its text: fusions are its kernels, layouts say which arrays are in
// vector memory, and everything else is in HBM. A computation is simulated once, however often it runs; what calls it
// takes its time as a whole. What a kernel leaves of the HBM bandwidth streams in operands of the next ones.
#ifndef HLOKIT_INTERP_TPU_TIMING_SIMULATOR_H_
#define HLOKIT_INTERP_TPU_TIMING_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interp/tpu/memory/residency.h"
#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/timing/device_timelines.h"
#include "ir/graph/module.h"
#include "passes/target/cost_model.h"
#include "passes/target/tpu_target.h"

namespace hlokit::tpu {

struct SimulationOptions {
  DeviceDescription machine;
  Topology topology;
  int64_t default_trip_count = 1;  // of loops whose trips cannot be counted
  PerformanceVariation variation;  // of the devices
  double dispatch = -1;            // host seconds for each execution; negative: as the machine says for queued calls
};

// What the options say of a target; devices that share the work as the module has it.
inline TpuTarget TargetOf(const SimulationOptions& options, const Module& module) {
  return {options.machine, options.topology, ImplicitPartitionCount(module)};
}

struct StepTime : OpTime {
  double start = 0;      // seconds since its computation began
  double stall = 0;      // of the core, before start, for operands that another resource brings
  double trips = 1;      // of a loop
  ComputationId branch;  // of a conditional, and of a call of one computation: what runs
  bool on_core = true;
};

struct ComputationTime {
  std::vector<StepTime> steps;  // as in the plan
  double duration = 0;
  double core_busy = 0;
  double stall = 0;  // of the core, for collectives, copies and the host
  ResourceTimes busy{};
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double runs = 0;                    // in one execution of the entry
  std::vector<double> vmem;           // by step: bytes of vector memory in use, tiles of the kernel included
  double vmem_held = 0;               // most that arrays take there, those of what is called included
  std::vector<Resident> vmem_arrays;  // that stay there between kernels
};

// What a step adds up to over one execution of the module. Loops and calls have no row; what they run has.
struct OpRow {
  InstructionId name;
  double runs = 0;
  double seconds = 0;  // all runs together
  double stall = 0;
  Resource bound = Resource::kOverhead;
  ScheduleUnitKind kind = ScheduleUnitKind::kKernel;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  ResourceTimes times{};
};

struct Simulation {
  std::vector<ComputationTime> computations;  // as in the plan
  std::vector<OpRow> rows;                    // longest first; of a device like most
  DeviceTimelines devices;
  double device_seconds = 0;             // until the last device is done
  double step_seconds = 0;               // with the host's share, calls queued
  Resource bound = Resource::kOverhead;  // of the step
  ResourceTimes busy{};
  double core_busy = 0;  // mean of the devices; waited: what is left of device_seconds
  double stall = 0;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double vmem_peak = 0;                      // bytes of vector memory in use at a time
  InstructionId vmem_peak_at;                // the step that runs then
  std::vector<double> vmem_timeline;         // bytes in use at each step of the entry's plan
  std::vector<Resident> vmem_live;           // arrays there then, largest first; tiles of the kernel are the rest
  double implicit_partitions = 1;            // devices that share the work of an unpartitioned module
  std::map<std::string, int64_t> unmodeled;  // what the estimate lacks, and how often
};

Simulation Simulate(const Module& module, const KernelPlan& plan, const SimulationOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_SIMULATOR_H_
