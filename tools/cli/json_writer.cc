// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/json_writer.h"

#include <nlohmann/json.hpp>

namespace hlokit::cli {

std::string JsonQuoted(std::string_view s) {
  return nlohmann::json(s).dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hlokit::cli
