// SPDX-License-Identifier: Apache-2.0
#include "ir/types/element_type.h"

namespace hlokit {

std::optional<ElementType> ElementTypeFromText(std::string_view text) {
  // Names are short and the table is short: compare lengths first, then bytes.
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    if (kElementTypeInfo[i].text == text) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

}  // namespace hlokit
