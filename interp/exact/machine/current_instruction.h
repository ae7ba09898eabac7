// SPDX-License-Identifier: Apache-2.0
// The instruction whose thunk began last in the runs of this process, for reports of crashes. With several programs at
// once it is that of any of them, or none. The reference engine sets none.
#ifndef HLOKIT_INTERP_EXACT_MACHINE_CURRENT_INSTRUCTION_H_
#define HLOKIT_INTERP_EXACT_MACHINE_CURRENT_INSTRUCTION_H_

#include <atomic>
#include <cstdint>

namespace hlokit::interp {

inline constexpr uint32_t kNoInstruction = UINT32_MAX;

// The id of the instruction, kNoInstruction outside of runs; read by signal handlers.
inline std::atomic<uint32_t> current_instruction{kNoInstruction};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MACHINE_CURRENT_INSTRUCTION_H_
