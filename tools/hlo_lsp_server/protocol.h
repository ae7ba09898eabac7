// SPDX-License-Identifier: Apache-2.0
// Reading of parameters and writing of results of the Language Server Protocol. Parameters are whatever the client
// sends: reading what is missing or of another type yields a default.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_PROTOCOL_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_PROTOCOL_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "ir/core/json_writer.h"
#include "tools/hlo_lsp_server/json_rpc.h"
#include "tools/hlo_lsp_server/text_document.h"

namespace hlokit::lsp {

// Returns the member at the end of a path of keys; null if there is none.
const Json* Find(const Json& json, std::initializer_list<const char*> path);
std::string StringAt(const Json& json, std::initializer_list<const char*> path, std::string_view absent = "");
int64_t IntAt(const Json& json, std::initializer_list<const char*> path, int64_t absent = 0);
bool BoolAt(const Json& json, std::initializer_list<const char*> path, bool absent = false);

struct TextRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};
uint32_t OffsetAt(const TextDocument& document, const Json& position);
// Of a range, or of the whole text without one.
TextRange RangeAt(const TextDocument& document, const Json* range);

void WritePosition(const TextDocument& document, uint32_t offset, JsonWriter* json);
void WriteRange(const TextDocument& document, uint32_t begin, uint32_t end, JsonWriter* json);
// {"uri", "range"}
void WriteLocation(std::string_view uri, const TextDocument& document, uint32_t begin, uint32_t end, JsonWriter* json);
// {"kind": "markdown", "value"}
void WriteMarkdown(std::string_view text, JsonWriter* json);

// Returns the path of a file: URI, or "".
std::string PathOfUri(std::string_view uri);
std::string UriOfPath(std::string_view path);

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_PROTOCOL_H_
