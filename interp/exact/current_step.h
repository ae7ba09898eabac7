// SPDX-License-Identifier: Apache-2.0
// The instruction whose step began last in this process, for reports of crashes. With several programs at once it is
// that of any of them.
#ifndef HLOKIT_INTERP_EXACT_CURRENT_STEP_H_
#define HLOKIT_INTERP_EXACT_CURRENT_STEP_H_

#include <atomic>
#include <cstdint>

namespace hlokit::interp {

// The id of the instruction; read by signal handlers.
inline std::atomic<uint32_t> current_step{UINT32_MAX};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_CURRENT_STEP_H_
