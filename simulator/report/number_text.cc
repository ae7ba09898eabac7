// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/number_text.h"

#include <iterator>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

std::string FormatSignificant(double value) {
  const double size = value < 0 ? -value : value;
  return FormatFixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

std::string FormatSeconds(double seconds) {
  const double size = seconds < 0 ? -seconds : seconds;
  if (size == 0) return "0 us";
  constexpr std::pair<double, const char*> kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  // 999.96 ms is printed as 1.000 s.
  const auto* unit = std::begin(kUnits);
  while (unit + 1 != std::end(kUnits) && size < 0.99995 * unit->first) ++unit;
  const double value = seconds / unit->first;
  const double digits = size / unit->first;
  return StrCat(FormatFixed(value, digits >= 999.95   ? 0
                                   : digits >= 99.995 ? 1
                                   : digits >= 9.9995 ? 2
                                                      : 3),
                " ", unit->second);
}

std::string FormatBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return StrCat(unit == 0 ? FormatFixed(bytes, 0) : FormatFixed(bytes, 2), " ", kUnits[unit]);
}

void PrintCell(std::string_view text, size_t width, TextWriter* out) {
  for (size_t n = text.size(); n < width; ++n) *out << ' ';
  *out << text << "  ";
}

}  // namespace hlokit::tpu
