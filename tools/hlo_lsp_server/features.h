// SPDX-License-Identifier: Apache-2.0
// The requests on a document, each as a function that writes the result. A status that is not OK is the error that the
// client gets instead; it shows the message to the user.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_FEATURES_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_FEATURES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/core/json_writer.h"
#include "tools/hlo_lsp_server/document.h"
#include "tools/hlo_lsp_server/json_rpc.h"
#include "tools/hlo_lsp_server/settings.h"

namespace hlokit::lsp {

struct Request {
  Document& document;
  const Json& params;
  const Settings& settings;
};
using Feature = absl::Status (*)(const Request& request, JsonWriter* result);

// navigation.cc
absl::Status Definition(const Request& request, JsonWriter* result);
absl::Status References(const Request& request, JsonWriter* result);
absl::Status DocumentHighlight(const Request& request, JsonWriter* result);
absl::Status PrepareRename(const Request& request, JsonWriter* result);
absl::Status Rename(const Request& request, JsonWriter* result);
// call_hierarchy.cc
absl::Status PrepareCallHierarchy(const Request& request, JsonWriter* result);
absl::Status IncomingCalls(const Request& request, JsonWriter* result);
absl::Status OutgoingCalls(const Request& request, JsonWriter* result);
// symbols.cc
absl::Status DocumentSymbols(const Request& request, JsonWriter* result);
absl::Status FoldingRanges(const Request& request, JsonWriter* result);
// hover.cc
absl::Status Hover(const Request& request, JsonWriter* result);
// completion.cc
absl::Status Completion(const Request& request, JsonWriter* result);
// semantic_tokens.cc
absl::Status SemanticTokens(const Request& request, JsonWriter* result);
void WriteSemanticTokensLegend(JsonWriter* json);
// inlay_hints.cc
absl::Status InlayHints(const Request& request, JsonWriter* result);
// formatting.cc
absl::Status Formatting(const Request& request, JsonWriter* result);
// code_actions.cc
absl::Status CodeActions(const Request& request, JsonWriter* result);
// code_lenses.cc
absl::Status CodeLenses(const Request& request, JsonWriter* result);
// diagnostics.cc
void WriteDiagnostic(const Document& document, const Diagnostic& diagnostic, JsonWriter* json);
void WriteDiagnostics(Document& document, JsonWriter* json);
absl::Status DocumentDiagnostics(const Request& request, JsonWriter* result);

// The costs of an instruction, as hover and hints show them; "" without any.
std::string CostText(const Analysis& analysis, Instruction instruction);
// The text of a number with a decimal prefix: "1.2 M".
std::string Scaled(double value);
std::string BytesText(double bytes);

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_FEATURES_H_
