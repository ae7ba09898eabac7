// SPDX-License-Identifier: Apache-2.0
#include "io/stores/xml_elements.h"

#include <pugixml.hpp>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

struct TextCollector : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node& node) override {
    if (node.name() != element) return true;
    std::string& text = texts.emplace_back();
    for (const pugi::xml_node part : node.children()) {
      if (part.type() == pugi::node_pcdata || part.type() == pugi::node_cdata) text += part.value();
    }
    return true;
  }

  std::string_view element;
  std::vector<std::string> texts;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> XmlTexts(std::string_view xml, const char* element) {
  pugi::xml_document document;
  const pugi::xml_parse_result result =
      document.load_buffer(xml.data(), xml.size(),
                           pugi::parse_escapes | pugi::parse_cdata | pugi::parse_ws_pcdata_single, pugi::encoding_utf8);
  if (!result) return absl::DataLossError(StrCat("no XML: ", result.description(), " at byte ", result.offset));
  TextCollector collector;
  collector.element = element;
  document.traverse(collector);
  return std::move(collector.texts);
}

std::string XmlText(std::string_view xml, const char* element) {
  const absl::StatusOr<std::vector<std::string>> texts = XmlTexts(xml, element);
  return texts.ok() && !texts->empty() ? texts->front() : "";
}

}  // namespace hlokit
