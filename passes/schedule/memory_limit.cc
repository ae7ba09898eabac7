// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/memory_limit.h"

#include <algorithm>

namespace hlokit {

int64_t ToBytes(double bytes) { return static_cast<int64_t>(std::clamp(bytes, 1.0, 1e18)); }

OptionInfo HbmBytesOption() {
  return {.name = "hbm-bytes",
          .type = OptionInfo::Type::kInt,
          .default_text = "-1",
          .doc = "limit of the program's peak memory; -1: that of the device",
          .min = -1};
}

int64_t HbmBytes(const Pass& pass, const tpu::TpuTarget& target) {
  const int64_t given = pass.options().Int("hbm-bytes");
  return given >= 0 ? given : ToBytes(target.machine.HbmBytes() * target.parts);
}

}  // namespace hlokit
