// SPDX-License-Identifier: Apache-2.0
// What the host of a TPU takes for the work that a profile counted (runtime/observe/host_work.h).
//
// Times of the recording process depend on what else its machine does. These depend on the program only.
#ifndef HLOKIT_SIMULATOR_EXPORT_HOST_COSTS_H_
#define HLOKIT_SIMULATOR_EXPORT_HOST_COSTS_H_

#include <cstdint>

#include "runtime/observe/host_work.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// Seconds of one unit of work: the tracer's on one core of an AMD EPYC (bench/host_costs.py); calls and the rate of
// transfers are those of the target.
struct HostCosts {
  double op = 0.155e-6;      // dispatching an op
  double node = 0.13e-6;     // recording a node
  double sync = 13e-6;       // a step marker or a fetch: live tensors, the look-up
  double visited = 0.03e-6;  // collecting and hashing a node
  double lowered = 1e-6;     // lowering a node to HLO
  double call = 33e-6;       // calling an executable: the target's latency of a queued call
  double buffer = 0.02e-6;   // an argument or result of a call
  double transfer = 1.2e-6;  // starting a transfer or a fetch
  double host_rate = 16e9;   // bytes per second between host and device
};
// Whose costs they are.
enum class HostSystem : uint8_t {
  kTracer,    // this tracer's
  kTorchXla,  // PyTorch/XLA's
};
// Returns the costs on the host of a target.
HostCosts HostCostsOf(const DeviceDescription& machine, HostSystem system = HostSystem::kTracer);

double SecondsOf(const HostCosts& costs, const runtime::HostWork& work);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_HOST_COSTS_H_
