// SPDX-License-Identifier: Apache-2.0
// Time of a program on a simulated TPU: each step of the kernel plan in turn on the core, collectives and copies beside
// them on the interconnect and the DMA engines, loops by their trips.
//
// A computation is simulated once, however often it runs; what calls it takes its time as a whole. Kernels run in the
// order of the text if the module is scheduled. Otherwise the core takes the first kernel whose operands are there, so
// that collectives run behind compute as the latency-hiding scheduler of the compiler would have it; collectives of a
// loop body that depend on nothing the trip computes are issued a trip ahead.
//
// Arrays between kernels stay in vector memory where they fit until their last use; what a kernel leaves of the HBM
// bandwidth brings operands of the next ones there.
#ifndef HLOKIT_INTERP_TPU_TIMING_SIMULATOR_H_
#define HLOKIT_INTERP_TPU_TIMING_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interp/tpu/cost/collective_cost.h"
#include "interp/tpu/cost/kernel_cost.h"
#include "interp/tpu/cost/kernel_plan.h"
#include "interp/tpu/devices/machine.h"
#include "interp/tpu/devices/topology.h"
#include "interp/tpu/memory/residency.h"
#include "interp/tpu/timing/device_timelines.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Links that collectives share: those of each axis of the mesh, and those between slices.
inline constexpr size_t kLanes = 4;
inline constexpr size_t kDcnLane = 3;

struct SimulationOptions {
  Machine machine;
  Topology topology;
  int64_t unknown_trips = 1;  // of loops whose trips cannot be counted
  Variation variation;        // of the devices
  double dispatch = -1;       // host seconds for each execution; negative: as the machine says for queued calls
};

struct StepTime {
  double start = 0;  // seconds since its computation began
  double duration = 0;
  double waited = 0;  // of the core, before start, for operands that another resource brings
  ResourceTimes times{};
  Resource bound = Resource::kOverhead;
  double flops = 0;  // of all that it runs
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double ideal = 0;   // of a collective: at the nominal rates of all links it can use
  double trips = 1;   // of a loop
  uint8_t lanes = 0;  // of a collective: bit i for the links of axis i, kDcnLane for those between slices
  bool on_core = true;
  bool ahead = false;  // issued while the trip before runs
};

struct ComputationTime {
  std::vector<StepTime> steps;  // as in the plan
  std::vector<uint32_t> order;  // steps as they were issued
  double duration = 0;
  double core_busy = 0;
  double waited = 0;  // of the core, for collectives, copies and the host
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
  double waited = 0;
  Resource bound = Resource::kOverhead;
  StepKind kind = StepKind::kKernel;
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
  double waited = 0;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
  double vmem_peak = 0;                    // bytes of vector memory in use at a time
  InstructionId vmem_peak_at;              // the step that runs then
  std::vector<double> vmem_timeline;       // bytes in use at each step of the entry's plan
  std::vector<Resident> vmem_live;         // arrays there then, largest first; tiles of the kernel are the rest
  double parts = 1;                        // devices that share the work of an unpartitioned module
  std::map<std::string, int64_t> missing;  // what the estimate lacks, and how often
};

Simulation Simulate(const Module& module, const KernelPlan& plan, const SimulationOptions& options);

// Devices that the module is made for: replicas times partitions, or as many as its collectives name.
int64_t DevicesOf(const Module& module);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_SIMULATOR_H_
