// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/given_flag.h"

#include <string>

namespace hlokit::cli {

bool IsGiven(const CLI::Option& flag) {
  if (flag.count() == 0) return false;
  const std::string& value = flag.results().back();
  return !value.empty() && !(flag.get_items_expected_max() == 0 && value == "false");
}

}  // namespace hlokit::cli
