#include "interp/tpu/compile.h"

#include <algorithm>
#include <cstdint>

#include "ir/str_cat.h"

namespace hlokit::tpu {

double PartsOf(const Module& module) {
  if (module.header().num_partitions <= 1) return 1;
  bool shardings = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) return 1;
      shardings |= i.has(Attr::kSharding);
    }
  }
  return shardings ? static_cast<double>(module.header().num_partitions) : 1;
}

std::string PipelineFor(const Machine& machine, std::string_view pipeline, double parts) {
  if (pipeline != "tpu") return std::string(pipeline);
  const double scoped = machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
  const auto whole = [](double value) { return static_cast<int64_t>(std::clamp(value, 1.0, 1e18)); };
  return StrCat("tpu{vmem-bytes=", whole((machine.OnChipBytes() - scoped) * parts),
                ",hbm-bytes=", whole(machine.HbmBytes() * parts),
                ",hbm-gbps=", whole(machine.HbmRate() * machine.hbm_efficiency * parts / 1e9),
                ",tflops=", whole(machine.PeakFlops() * machine.mxu_efficiency * parts / 1e12),
                ",ici-gbps=", whole(2 * machine.ici_rate * machine.ici_efficiency / 1e9), "}");
}

}  // namespace hlokit::tpu
