// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/number_flag.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

std::string Text(int64_t value) { return std::to_string(value); }
std::string Text(uint64_t value) { return std::to_string(value); }
std::string Text(double value) { return FormatDouble(value); }

template <typename T>
constexpr std::string_view kNoun = std::is_floating_point_v<T> ? "a number" : "an integer";

// Returns " from 1 to 8", " of at least 1", " of at most 8", or "".
template <typename T>
std::string RangeText(const FlagRange<T>& range) {
  if (range.names_least && range.names_most) return StrCat(" from ", Text(range.least), " to ", Text(range.most));
  if (range.names_least) return StrCat(" of at least ", Text(range.least));
  return range.names_most ? StrCat(" of at most ", Text(range.most)) : "";
}

template <typename T>
CLI::Validator InRange(const FlagRange<T>& range, const std::string& type) {
  const auto check = [range](std::string& text) {
    T value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    bool good = error == std::errc() && rest == end && value >= range.least && value <= range.most;  // false for NaN
    if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
    if (good) {
      // CLI11 would read a leading zero as octal.
      if constexpr (!std::is_floating_point_v<T>) text = Text(value);
      return std::string();
    }
    const bool number = rest == end && error != std::errc::invalid_argument;
    const bool above = number && (error == std::errc::result_out_of_range ? text[0] != '-' : value > range.most);
    std::string problem = StrCat("expected ", kNoun<T>, RangeText(range), ", found `", text, "`");
    if (above && !range.names_most) StrAppend(&problem, ", which is too large");
    return problem;
  };
  std::string help = type;
  if (range.names_least || range.names_most) {
    StrAppend(&help, " in [", range.names_least ? Text(range.least) : "", " - ",
              range.names_most ? Text(range.most) : "", "]");
  }
  return CLI::Validator(check, help);
}

}  // namespace

CLI::Validator IntegerInRange(const FlagRange<int64_t>& range) { return InRange(range, "INT"); }
CLI::Validator UnsignedInRange(const FlagRange<uint64_t>& range) { return InRange(range, "INT"); }
CLI::Validator RealInRange(const FlagRange<double>& range) { return InRange(range, "NUMBER"); }

}  // namespace hlokit::cli
