// SPDX-License-Identifier: Apache-2.0
#include "io/stores/xml_elements.h"

#include <charconv>
#include <cstdint>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

void AppendUtf8(uint32_t code, std::string* out) {
  const auto tail = [&](int shift) { out->push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f))); };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (code >> 12)));
    tail(6);
    tail(0);
  } else if (code < 0x110000) {
    out->push_back(static_cast<char>(0xf0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Appends what the entity between '&' and ';' stands for. Returns false if it is unknown.
bool AppendEntity(std::string_view name, std::string* out) {
  constexpr struct {
    std::string_view name;
    char value;
  } kEntities[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& entity : kEntities) {
    if (name == entity.name) {
      out->push_back(entity.value);
      return true;
    }
  }
  if (!name.starts_with('#')) return false;
  const bool hexadecimal = name.starts_with("#x");
  name.remove_prefix(hexadecimal ? 2 : 1);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size()) return false;
  AppendUtf8(code, out);
  return true;
}

std::string Unescaped(std::string_view text) {
  constexpr size_t kMaxEntity = 10;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      const size_t end = text.substr(0, std::min(text.size(), i + kMaxEntity)).find(';', i);
      if (end != std::string_view::npos && AppendEntity(text.substr(i + 1, end - i - 1), &out)) {
        i = end;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

}  // namespace

std::vector<std::string> XmlTexts(std::string_view xml, std::string_view element) {
  const std::string open = StrCat("<", element, ">"), close = StrCat("</", element, ">");
  std::vector<std::string> texts;
  for (size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    const size_t end = xml.find(close, at);
    if (end == std::string_view::npos) break;
    texts.push_back(Unescaped(xml.substr(at, end - at)));
    at = end + close.size();
  }
  return texts;
}

std::string XmlText(std::string_view xml, std::string_view element) {
  const size_t at = xml.find(StrCat("<", element, ">"));
  if (at == std::string_view::npos) return "";
  std::vector<std::string> texts = XmlTexts(xml.substr(at), element);
  return texts.empty() ? "" : texts.front();
}

}  // namespace hlokit
