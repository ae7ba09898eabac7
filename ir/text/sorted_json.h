// SPDX-License-Identifier: Apache-2.0
// JSON with the members of its objects in order, as XLA writes backend_config into dumps.
#ifndef HLOKIT_IR_TEXT_SORTED_JSON_H_
#define HLOKIT_IR_TEXT_SORTED_JSON_H_

#include <optional>
#include <string>
#include <string_view>

namespace hlokit {

// Returns the value without white space and with the members of each object sorted by their text; arrays keep their
// order. Nothing if `text` is no JSON, or nested too deeply to be one that XLA writes.
std::optional<std::string> SortedJson(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_SORTED_JSON_H_
