// SPDX-License-Identifier: Apache-2.0
// Variables of the environment, under the names and with the meanings they have for PyTorch/XLA.
#ifndef HLOKIT_TRACER_STEP_ENVIRONMENT_H_
#define HLOKIT_TRACER_STEP_ENVIRONMENT_H_

#include <string>

#include "absl/status/status.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

// Sets options from entries "NAME=VALUE"; `environment` ends with a null pointer. A name in PyTorch/XLA's part of the
// namespace that it does not have is an error with a suggestion, and so is a value that cannot be. Names it has that
// mean nothing here are passed over.
absl::Status ApplyEnvironment(const char* const* environment, TracerOptions* options);

// The variables that mean something here, a line each, then the names of the others that are known.
std::string DescribeEnvironment();

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_ENVIRONMENT_H_
