// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/quantities.h"

#include <cstddef>
#include <iterator>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::cli {

std::string HumanCount(double count) {
  constexpr double kExact = 1e5;
  constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E", " Z"};
  if (count < kExact) return FormatFixed(count, 0);
  size_t prefix = 0;
  while (count >= 999.95 && prefix + 1 < std::size(kPrefixes)) {
    count /= 1000;
    ++prefix;
  }
  return StrCat(FormatFixed(count, 1), kPrefixes[prefix]);
}

}  // namespace hlokit::cli
