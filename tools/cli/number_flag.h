// SPDX-License-Identifier: Apache-2.0
// Flags whose value is a number. Values are decimal, finite and in a range; ParseFlags rejects programs with a numeric
// flag that was declared in another way.
#ifndef HLOKIT_TOOLS_CLI_NUMBER_FLAG_H_
#define HLOKIT_TOOLS_CLI_NUMBER_FLAG_H_

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace hlokit::cli {

// The values of a flag. Limits that are only those of the flag's type are not named in messages and in the help.
template <typename T>
struct FlagRange {
  T least;
  T most;
  bool names_least;
  bool names_most;
};

CLI::Validator IntegerInRange(const FlagRange<int64_t>& range);
CLI::Validator UnsignedInRange(const FlagRange<uint64_t>& range);
CLI::Validator RealInRange(const FlagRange<double>& range);

template <typename T>
struct NumberOf {
  using Type = T;
};
template <typename T>
struct NumberOf<std::optional<T>> {
  using Type = T;
};

// Adds an option whose value is from `least` to `most`, inclusively.
template <typename T, typename Number = typename NumberOf<T>::Type>
CLI::Option* AddNumber(CLI::App* app, const std::string& names, T* value, const std::string& description,
                       std::type_identity_t<Number> least = std::numeric_limits<Number>::lowest(),
                       std::type_identity_t<Number> most = std::numeric_limits<Number>::max()) {
  CLI::Option* option = app->add_option(names, *value, description);
  const bool names_least = least != std::numeric_limits<Number>::lowest();
  const bool names_most = most != std::numeric_limits<Number>::max();
  if constexpr (std::floating_point<Number>) {
    return option->transform(RealInRange({least, most, names_least, names_most}));
  } else if constexpr (std::unsigned_integral<Number>) {
    return option->transform(UnsignedInRange({least, most, /*names_least=*/true, names_most}));
  } else {
    return option->transform(IntegerInRange({least, most, names_least, names_most}));
  }
}

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_NUMBER_FLAG_H_
