// SPDX-License-Identifier: Apache-2.0
#include "interp/runtime/observe/trace_event_json.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace hlokit::runtime {

std::string TraceNumber(double value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 15).ptr);
}

std::string TraceString(std::string_view s) {
  return nlohmann::json(std::string(s)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace hlokit::runtime
