// SPDX-License-Identifier: Apache-2.0
// Texts of elements in answers of object stores: flat XML without attributes of interest.
#ifndef HLOKIT_IO_STORES_XML_ELEMENTS_H_
#define HLOKIT_IO_STORES_XML_ELEMENTS_H_

#include <string>
#include <string_view>
#include <vector>

namespace hlokit {

// Returns the text of each element of this name, unescaped, in order; elements inside it stay as they are.
std::vector<std::string> XmlTexts(std::string_view xml, std::string_view element);
// Returns the first of them, or "".
std::string XmlText(std::string_view xml, std::string_view element);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_XML_ELEMENTS_H_
