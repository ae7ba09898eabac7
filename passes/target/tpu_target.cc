// SPDX-License-Identifier: Apache-2.0
#include "passes/target/tpu_target.h"

#include <algorithm>
#include <optional>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::tpu {

double TpuTarget::VmemForArrays() const {
  return machine.OnChipBytes() - machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
}

double ImplicitPartitionCount(const Module& module) {
  return AwaitsPartitioning(module) ? static_cast<double>(module.header().num_partitions) : 1;
}

int64_t DevicesOf(const Module& module) {
  const int64_t replicas = std::max<int64_t>(module.header().replica_count, 1);
  const int64_t partitions = std::max<int64_t>(module.header().num_partitions, 1);
  int64_t devices = 0;
  constexpr int64_t kMaxDevices = int64_t{1} << 20;
  if (__builtin_mul_overflow(replicas, partitions, &devices)) return kMaxDevices;
  // Dumps of one partition do not always state the number of partitions; collective groups do.
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!HasTrait(i.opcode(), kCollective)) continue;
      const ListId groups = AttrReader(i).list_id(Attr::kReplicaGroups);
      devices = std::max(devices, CountReplicaGroups(module.context(), groups).devices);
      for (int64_t d : i.list_attr(Attr::kSourceTargetPairs)) devices = std::max(devices, std::min(d, kMaxDevices) + 1);
    }
  }
  return std::min(devices, kMaxDevices);
}

TpuTarget TargetFor(std::string_view device, const Module& module) {
  TpuTarget target;
  if (std::optional<DeviceDescription> machine = BuiltinDeviceDescription(device)) target.machine = *std::move(machine);
  const int64_t per_chip = std::max<int64_t>(target.machine.devices_per_chip(), 1);
  target.topology = TopologyFor(target.machine, (DevicesOf(module) + per_chip - 1) / per_chip);
  target.parts = ImplicitPartitionCount(module);
  return target;
}

OptionInfo DeviceOption() {
  return {.name = "device",
          .type = OptionInfo::Type::kString,
          .default_text = "v5e",
          .doc = "TPU generation to compile for, if the tool has no --device",
          .choices = BuiltinDeviceDescriptions()};
}

TpuTarget TargetOf(const Pass& pass, const Module& module) {
  if (pass.context().target == nullptr) return TargetFor(pass.options().String("device"), module);
  TpuTarget target = *pass.context().target;
  target.parts = ImplicitPartitionCount(module);  // an earlier pass may have partitioned it
  return target;
}

}  // namespace hlokit::tpu
