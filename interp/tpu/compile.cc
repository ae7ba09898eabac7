#include "interp/tpu/compile.h"

#include <algorithm>
#include <cstdint>

#include "ir/str_cat.h"

namespace hlokit::tpu {

std::string PipelineFor(const Machine& machine, std::string_view pipeline) {
  if (pipeline != "tpu") return std::string(pipeline);
  const double scoped = machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
  const auto whole = [](double value) { return static_cast<int64_t>(std::clamp(value, 1.0, 1e18)); };
  return StrCat("tpu{vmem-bytes=", whole(machine.OnChipBytes() - scoped), ",hbm-bytes=", whole(machine.HbmBytes()),
                ",hbm-gbps=", whole(machine.HbmRate() * machine.hbm_efficiency / 1e9),
                ",tflops=", whole(machine.PeakFlops() * machine.mxu_efficiency / 1e12),
                ",ici-gbps=", whole(2 * machine.ici_rate * machine.ici_efficiency / 1e9), "}");
}

}  // namespace hlokit::tpu
