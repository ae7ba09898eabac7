// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/number_flag.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

// Larger limits say nothing to a reader.
constexpr double kLargeLimit = 1e15;

std::string Text(int64_t value) { return std::to_string(value); }
std::string Text(uint64_t value) { return std::to_string(value); }
std::string Text(double value) { return FormatDouble(value); }

template <typename T>
constexpr std::string_view kNoun = std::is_floating_point_v<T> ? "a number" : "an integer";

template <typename T>
CLI::Validator InRange(T least, T most, const std::string& type) {
  const auto check = [least, most](std::string& text) {
    T value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    bool good = error == std::errc() && rest == end && value >= least && value <= most;  // false for NaN
    if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
    if (good) {
      // CLI11 would read a leading zero as octal.
      if constexpr (!std::is_floating_point_v<T>) text = Text(value);
      return std::string();
    }
    const bool from = least != std::numeric_limits<T>::lowest();
    const bool to = static_cast<double>(most) < kLargeLimit || (rest == end && error == std::errc::result_out_of_range);
    std::string range;
    if (to) {
      range = StrCat(" from ", Text(least), " to ", Text(most));
    } else if (from || std::is_unsigned_v<T>) {
      range = StrCat(" of at least ", Text(least));
    }
    return StrCat("expected ", kNoun<T>, range, ", found `", text, "`");
  };
  const bool bounded = least != std::numeric_limits<T>::lowest() || most != std::numeric_limits<T>::max();
  return CLI::Validator(check, bounded ? StrCat(type, " in [", Text(least), " - ", Text(most), "]") : type);
}

}  // namespace

CLI::Validator IntegerInRange(int64_t least, int64_t most) { return InRange(least, most, "INT"); }
CLI::Validator UnsignedInRange(uint64_t least, uint64_t most) { return InRange(least, most, "INT"); }
CLI::Validator RealInRange(double least, double most) { return InRange(least, most, "NUMBER"); }

}  // namespace hlokit::cli
