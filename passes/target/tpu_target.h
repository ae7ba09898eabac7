// SPDX-License-Identifier: Apache-2.0
// What a compiler must know of the TPUs that a program will run on. Passes are given one through their environment; the
// simulator prices the compiled program on the same.
#ifndef HLOKIT_PASSES_TARGET_TPU_TARGET_H_
#define HLOKIT_PASSES_TARGET_TPU_TARGET_H_

#include <cstdint>
#include <string_view>

#include "ir/graph/module.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"

namespace hlokit::tpu {

struct TpuTarget {
  DeviceDescription machine;
  Topology topology;
  // Devices that share each array and the work on it: 1 but for modules that have yet to be partitioned.
  double parts = 1;

  // Bytes of a device's vector memory for arrays: what kernels need for their tiles is not in it.
  double VmemForArrays() const;
  // Bytes a second that streams to and from HBM reach.
  double HbmRate() const { return machine.HbmRate() * machine.hbm_efficiency; }
};

// Among how many devices the work is divided: a module with shardings but without collectives has not been partitioned,
// its shapes are those of all devices.
double ImplicitPartitionCount(const Module& module);
// Devices that the module is made for: replicas times partitions, or as many as its collectives name.
int64_t DevicesOf(const Module& module);

// A slice of this generation (an installed description) with a device for each that the module is made for.
TpuTarget TargetFor(std::string_view device, const Module& module);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_TPU_TARGET_H_
