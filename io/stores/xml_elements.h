// SPDX-License-Identifier: Apache-2.0
// Texts of elements in answers of object stores.
#ifndef HLOKIT_IO_STORES_XML_ELEMENTS_H_
#define HLOKIT_IO_STORES_XML_ELEMENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hlokit {

// Returns the text of each element of this name, in order. Returns an error unless `xml` is well-formed.
absl::StatusOr<std::vector<std::string>> XmlTexts(std::string_view xml, const char* element);
// Returns the first of them, or "".
std::string XmlText(std::string_view xml, const char* element);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_XML_ELEMENTS_H_
