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

// The limits of a type are no limits in messages and in the help.
CLI::Validator IntegerInRange(int64_t least, int64_t most);
CLI::Validator UnsignedInRange(uint64_t least, uint64_t most);
CLI::Validator RealInRange(double least, double most);

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
  if constexpr (std::floating_point<Number>) {
    return option->transform(RealInRange(least, most));
  } else if constexpr (std::unsigned_integral<Number>) {
    return option->transform(UnsignedInRange(least, most));
  } else {
    return option->transform(IntegerInRange(least, most));
  }
}

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_NUMBER_FLAG_H_
