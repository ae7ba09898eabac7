// SPDX-License-Identifier: Apache-2.0
// Errors as the caller holds them.
#ifndef HLOKIT_PJRT_VALUES_ERROR_H_
#define HLOKIT_PJRT_VALUES_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "pjrt/c_api/types.h"

struct PJRT_Error {
  const PJRT_Error_FunctionTable* functions;  // first, for code that has no table of ours
  PJRT_Error_Code code;
  std::string message;
};

namespace hlokit::pjrt {

// Returns a new error that the caller owns; null for OK.
PJRT_Error* NewError(const absl::Status& status);
// Returns the status that a caller's code and message, which may be null, stand for. A code out of range is UNKNOWN.
absl::Status StatusOf(PJRT_Error_Code code, const char* message, size_t message_size);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_ERROR_H_
