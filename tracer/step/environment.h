// SPDX-License-Identifier: Apache-2.0
// Environment variables with the names and meanings of PyTorch/XLA.
#ifndef HLOKIT_TRACER_STEP_ENVIRONMENT_H_
#define HLOKIT_TRACER_STEP_ENVIRONMENT_H_

#include <string>

#include "absl/status/status.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

// Sets options from entries "NAME=VALUE"; `environment` ends with a null pointer. Returns an error with a suggestion
// for an unknown name in PyTorch/XLA's namespace, and for an invalid value. Skips names that have no meaning here.
absl::Status ApplyEnvironment(const char* const* environment, TracerOptions* options);

// Returns the supported variables, one a line, then the names of the ignored ones.
std::string DescribeEnvironment();

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_ENVIRONMENT_H_
