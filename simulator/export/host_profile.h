// SPDX-License-Identifier: Apache-2.0
// Converts a recorded profile into a host model: the phases of the program's thread in each step of an XSpace, written
// by this program, by PyTorch/XLA or by JAX.
//
// Steps end with their root events (step markers, StepTraceAnnotation), or with calls of executables if there are none.
// Time belongs to the phase of the innermost enclosing span. Waits for the device are omitted, since the simulation
// computes them. Batches from another thread become a loader two batches ahead, with the same time in each step.
#ifndef HLOKIT_SIMULATOR_EXPORT_HOST_PROFILE_H_
#define HLOKIT_SIMULATOR_EXPORT_HOST_PROFILE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

// Returns the model of a program that runs once in each recorded step with calls; its device time is divided among the
// step's calls. Returns an error if `xspace` is not a profile, or has neither steps nor calls.
absl::StatusOr<HostModel> HostModelOfProfile(std::string_view xspace);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_HOST_PROFILE_H_
