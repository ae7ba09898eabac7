// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/report/number_text.h"

#include <cstdio>
#include <iterator>

#include "ir/core/str_cat.h"

namespace hlokit::tpu {

std::string Fixed(double value, int digits) {
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

std::string Short(double value) {
  const double size = value < 0 ? -value : value;
  return Fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return StrCat(unit == 0 ? Fixed(bytes, 0) : Fixed(bytes, 2), " ", kUnits[unit]);
}

void PrintCell(std::string_view text, size_t width, TextWriter* out) {
  for (size_t n = text.size(); n < width; ++n) *out << ' ';
  *out << text << "  ";
}

}  // namespace hlokit::tpu
