// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/first_error.h"

#include <string>

#include "ir/core/str_cat.h"

namespace hlokit::runtime {

absl::Status FirstError(const DiagnosticSink& sink, std::string_view what, bool is_invalid) {
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity != Severity::kError) continue;
    std::string message = StrCat(what, ": ", d.message);
    if (is_invalid) return absl::InvalidArgumentError(message);
    if (d.kind == DiagnosticKind::kTooLarge) return absl::ResourceExhaustedError(message);
    if (d.kind == DiagnosticKind::kUnsupported) return absl::UnimplementedError(message);
    return absl::InternalError(message);
  }
  return absl::InternalError(std::string(what));
}

}  // namespace hlokit::runtime
