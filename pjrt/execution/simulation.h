// SPDX-License-Identifier: Apache-2.0
// The functions of the extension for estimates (c_api/simulation_args.h).
#ifndef HLOKIT_PJRT_EXECUTION_SIMULATION_H_
#define HLOKIT_PJRT_EXECUTION_SIMULATION_H_

#include "absl/status/status.h"
#include "pjrt/c_api/simulation_args.h"

namespace hlokit::pjrt {

absl::Status CreateSimulation(HlokitSimulation_Create_Args* args);
absl::Status DestroySimulation(HlokitSimulation_Destroy_Args* args);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_SIMULATION_H_
