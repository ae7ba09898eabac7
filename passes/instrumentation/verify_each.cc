// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/verify_each.h"

#include <string>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"

namespace hlokit {

absl::Status VerifyEach::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  if (!changed) return absl::OkStatus();
  DiagnosticSink sink;
  VerifyModule(module, options_, &sink);
  if (!sink.has_errors()) return absl::OkStatus();
  std::string text = StrCat("invalid module after pass `", run.info.name, "` (run ", run.number, ")");
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) StrAppend(&text, "\n  ", d.message);
  }
  return absl::InternalError(text);
}

}  // namespace hlokit
