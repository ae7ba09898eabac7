// SPDX-License-Identifier: Apache-2.0
// Diagnostics of a compilation or an execution as a status.
#ifndef HLOKIT_RUNTIME_CLIENT_FIRST_ERROR_H_
#define HLOKIT_RUNTIME_CLIENT_FIRST_ERROR_H_

#include <string_view>

#include "absl/status/status.h"
#include "ir/core/diagnostic.h"

namespace hlokit::runtime {

// Returns the first error as "WHAT: message". `is_invalid`: one of a program that does not verify is that of an
// argument.
absl::Status FirstError(const DiagnosticSink& sink, std::string_view what, bool is_invalid = false);

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_FIRST_ERROR_H_
