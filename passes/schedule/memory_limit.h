// SPDX-License-Identifier: Apache-2.0
// The memory that schedules may use: that of the target's devices, or what an option says.
#ifndef HLOKIT_PASSES_SCHEDULE_MEMORY_LIMIT_H_
#define HLOKIT_PASSES_SCHEDULE_MEMORY_LIMIT_H_

#include <cstdint>

#include "passes/core/pass.h"
#include "passes/target/tpu_target.h"

namespace hlokit {

// Returns the number of bytes, at least 1.
int64_t ToBytes(double bytes);

// The option `hbm-bytes`.
OptionInfo HbmBytesOption();
// Returns its value, or the HBM capacity of the target's devices for the module.
int64_t HbmBytes(const Pass& pass, const tpu::TpuTarget& target);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_MEMORY_LIMIT_H_
