// SPDX-License-Identifier: Apache-2.0
// The compilation target: description, topology and partitioning of the TPUs that a program will run on. Shared by the
// passes, through their context, and by the simulator.
#ifndef HLOKIT_PASSES_TARGET_TPU_TARGET_H_
#define HLOKIT_PASSES_TARGET_TPU_TARGET_H_

#include <cstdint>
#include <string_view>

#include "ir/graph/module_fwd.h"
#include "passes/core/pass.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"

namespace hlokit::tpu {

struct TpuTarget {
  DeviceDescription machine;
  Topology topology;
  // Devices that share each array and the work on it: 1 unless the module has yet to be partitioned.
  double parts = 1;

  // Returns the bytes of a device's vector memory for arrays, without the tiles of kernels.
  double VmemForArrays() const;
  // Returns the bytes per second that HBM streams reach.
  double HbmRate() const { return machine.HbmRate() * machine.hbm_efficiency; }
};

// Returns the number of devices that share the work. A module with shardings but without collectives is not partitioned
// yet: its shapes are global.
double ImplicitPartitionCount(const Module& module);
// Returns the number of devices of the module: replicas times partitions, or as many as its collectives name.
int64_t DevicesOf(const Module& module);

// Returns a slice of this generation (a built-in description) with one device for each device of the module.
TpuTarget TargetFor(std::string_view device, const Module& module);

// The option `device` of passes that compile for a TPU.
OptionInfo DeviceOption();
// Returns the target of the pass context, or the one that the option `device` selects.
TpuTarget TargetOf(const Pass& pass, const Module& module);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_TPU_TARGET_H_
