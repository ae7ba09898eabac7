// SPDX-License-Identifier: Apache-2.0
// The message of a failure, where only one can be passed on.
#ifndef HLOKIT_IR_CORE_FIRST_ERROR_H_
#define HLOKIT_IR_CORE_FIRST_ERROR_H_

#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"

namespace hlokit {

// Returns the message of the first error, `none` if there is no error.
inline std::string FirstErrorOf(const DiagnosticSink& sink, std::string_view none = "no results") {
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) return d.message;
  }
  return std::string(none);
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_FIRST_ERROR_H_
