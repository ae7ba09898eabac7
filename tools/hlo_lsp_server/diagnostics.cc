// SPDX-License-Identifier: Apache-2.0
// Errors and warnings, with the texts of the tools: the message, and the hint on a line of its own.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {

void WriteDiagnostic(const Document& document, const Diagnostic& diagnostic, JsonWriter* json) {
  constexpr int kError = 1, kWarning = 2;
  const auto size = static_cast<uint32_t>(document.text().text().size());
  const bool placed = diagnostic.range.offset != SourceRange::kNoOffset;
  const uint32_t begin = placed ? std::min(diagnostic.range.offset, size) : 0;
  const uint32_t end = placed ? begin + std::min(diagnostic.range.size, size - begin) : 0;
  json->BeginObject().Key("range");
  WriteRange(document.text(), begin, end, json);
  json->Member("severity", diagnostic.severity == Severity::kError ? kError : kWarning);
  json->Member("code", ToString(diagnostic.kind)).Member("source", "hlokit");
  json->Member("message",
               diagnostic.hint.empty() ? diagnostic.message : StrCat(diagnostic.message, "\nhint: ", diagnostic.hint));
  json->EndObject();
}

void WriteDiagnostics(Document& document, JsonWriter* json) {
  json->BeginArray();
  for (const Diagnostic& d : document.analysis().diagnostics()) WriteDiagnostic(document, d, json);
  json->EndArray();
}

absl::Status DocumentDiagnostics(const Request& request, JsonWriter* result) {
  result->BeginObject().Member("kind", "full").Key("items");
  WriteDiagnostics(request.document, result);
  result->EndObject();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp
