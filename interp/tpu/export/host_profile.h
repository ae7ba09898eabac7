// SPDX-License-Identifier: Apache-2.0
// A recorded profile as the host of a simulation: what the program's thread did in each step of an XSpace, written by
// this program, by PyTorch/XLA or by JAX.
//
// Steps end where the root events of steps do (step markers, StepTraceAnnotation); without any, where calls of
// executables do. In a step, time belongs to the phase of the innermost span around it; waits for the device are left
// out, for the simulation has its own. Batches that another thread makes and sends count for a loader two batches
// ahead, the same time in each step.
#ifndef HLOKIT_INTERP_TPU_EXPORT_HOST_PROFILE_H_
#define HLOKIT_INTERP_TPU_EXPORT_HOST_PROFILE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "interp/tpu/timing/host.h"

namespace hlokit::tpu {

// The plan of a program that runs once in each recorded step that called anything; its time on the device is divided
// among the step's calls. An error if `xspace` is no profile, or holds neither steps nor calls.
absl::StatusOr<HostModel> HostModelOfProfile(std::string_view xspace);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_HOST_PROFILE_H_
