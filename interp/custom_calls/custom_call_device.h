// SPDX-License-Identifier: Apache-2.0
// The device on which a registered function of a custom call runs.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALL_DEVICE_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALL_DEVICE_H_

#include <cstdint>

namespace hlokit::interp {

// Of the run, counted by replica and then partition; of the function that this thread is in.
inline thread_local int64_t device_of_custom_call = 0;

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALL_DEVICE_H_
