// SPDX-License-Identifier: Apache-2.0
// Profiles of a program for its framework's profiler: an XSpace with the threads of the host as they were, and, if the
// client's device is simulated, with what its devices would have done.
#ifndef HLOKIT_PJRT_CLIENT_PROFILER_H_
#define HLOKIT_PJRT_CLIENT_PROFILER_H_

#include <string>

#include "pjrt/c_api/profiler_args.h"

namespace hlokit::pjrt {

// Returns the interface, which is constant.
PLUGIN_Profiler_Api* ProfilerApi();

// Sets the device of profiles from now on: that of the newest client, "cpu" or "v5p:4x4x4".
void SetProfiledDevice(const std::string& device);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_PROFILER_H_
