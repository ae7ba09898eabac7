// SPDX-License-Identifier: Apache-2.0
// Commands above the entry computation.
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {

absl::Status CodeLenses(const Request& request, JsonWriter* result) {
  Document& document = request.document;
  result->BeginArray();
  if (request.settings.lenses && document.is_program()) {
    const std::pair<std::string, const char*> kLenses[] = {
        {StrCat("simulate on ", request.settings.device), "hlo.simulate"},
        {"run", "hlo.run"},
        {"graph", "hlo.graph"},
        {"report", "hlo.report"},
    };
    for (const Symbol& s : document.index().symbols()) {
      if (s.kind != SymbolKind::kComputation || !s.entry) continue;
      for (const auto& [title, command] : kLenses) {
        result->BeginObject().Key("range");
        WriteRange(document.text(), s.name.offset, s.name.offset + s.name.size, result);
        result->Key("command").BeginObject().Member("title", title).Member("command", command);
        result->Key("arguments").BeginArray().Value(document.uri()).EndArray().EndObject().EndObject();
      }
    }
  }
  result->EndArray();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp
