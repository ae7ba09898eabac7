// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/protocol.h"

#include <algorithm>
#include <limits>

#include "ir/core/str_cat.h"

namespace hlokit::lsp {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

const Json* Find(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* const key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string StringAt(const Json& json, std::initializer_list<const char*> path, std::string_view absent) {
  const Json* const found = Find(json, path);
  return found != nullptr && found->is_string() ? found->get_ref<const std::string&>() : std::string(absent);
}

int64_t IntAt(const Json& json, std::initializer_list<const char*> path, int64_t absent) {
  const Json* const found = Find(json, path);
  if (found == nullptr || !found->is_number()) return absent;
  if (found->is_number_float()) {
    const double value = found->get<double>();
    return value >= -9e15 && value <= 9e15 ? static_cast<int64_t>(value) : absent;
  }
  if (found->is_number_unsigned()) {
    return static_cast<int64_t>(std::min<uint64_t>(found->get<uint64_t>(), std::numeric_limits<int64_t>::max()));
  }
  return found->get<int64_t>();
}

bool BoolAt(const Json& json, std::initializer_list<const char*> path, bool absent) {
  const Json* const found = Find(json, path);
  return found != nullptr && found->is_boolean() ? found->get<bool>() : absent;
}

uint32_t OffsetAt(const TextDocument& document, const Json& position) {
  return document.OffsetAt({IntAt(position, {"line"}), IntAt(position, {"character"})});
}

TextRange RangeAt(const TextDocument& document, const Json* range) {
  if (range == nullptr || !range->is_object()) return {0, static_cast<uint32_t>(document.text().size())};
  const Json none;
  const Json* const start = Find(*range, {"start"});
  const Json* const end = Find(*range, {"end"});
  const uint32_t begin = OffsetAt(document, start == nullptr ? none : *start);
  return {begin, std::max(begin, OffsetAt(document, end == nullptr ? none : *end))};
}

void WritePosition(const TextDocument& document, uint32_t offset, JsonWriter* json) {
  const Position p = document.PositionAt(std::min<uint32_t>(offset, static_cast<uint32_t>(document.text().size())));
  json->BeginObject().Member("line", p.line).Member("character", p.character).EndObject();
}

void WriteRange(const TextDocument& document, uint32_t begin, uint32_t end, JsonWriter* json) {
  json->BeginObject().Key("start");
  WritePosition(document, begin, json);
  json->Key("end");
  WritePosition(document, end, json);
  json->EndObject();
}

void WriteLocation(std::string_view uri, const TextDocument& document, uint32_t begin, uint32_t end, JsonWriter* json) {
  json->BeginObject().Member("uri", uri).Key("range");
  WriteRange(document, begin, end, json);
  json->EndObject();
}

void WriteMarkdown(std::string_view text, JsonWriter* json) {
  json->BeginObject().Member("kind", "markdown").Member("value", text).EndObject();
}

std::string PathOfUri(std::string_view uri) {
  constexpr std::string_view kFile = "file://";
  if (!uri.starts_with(kFile)) return "";
  uri.remove_prefix(kFile.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return "";
  uri.remove_prefix(slash);  // a host
  std::string path;
  for (size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] == '%' && i + 2 < uri.size() && HexDigit(uri[i + 1]) >= 0 && HexDigit(uri[i + 2]) >= 0) {
      path += static_cast<char>(HexDigit(uri[i + 1]) * 16 + HexDigit(uri[i + 2]));
      i += 2;
    } else {
      path += uri[i];
    }
  }
  return path.find('\0') == std::string::npos ? path : "";
}

std::string UriOfPath(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string uri = "file://";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      uri += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      StrAppend(&uri, '%', kDigits[byte >> 4], kDigits[byte & 15]);
    }
  }
  return uri;
}

}  // namespace hlokit::lsp
