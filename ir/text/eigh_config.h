// SPDX-License-Identifier: Apache-2.0
// The backend_config of XLA's custom-call Eigh: "LOWER,SORT,SWEEPS,TOLERANCE", for example "1,1,100,1e-6".
#ifndef HLOKIT_IR_TEXT_EIGH_CONFIG_H_
#define HLOKIT_IR_TEXT_EIGH_CONFIG_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hlokit {

struct EighConfig {
  bool lower = true;    // the lower triangle is read, else the upper one
  bool sort = true;     // ascending eigenvalues
  int32_t sweeps = 0;   // the most sweeps
  float tolerance = 0;  // of the sum of squares off the diagonal, relative to that of all elements: its root
};

// Returns nullopt if `text` is something else.
inline std::optional<EighConfig> ParseEighConfig(std::string_view text) {
  EighConfig config;
  int32_t lower = 0, sort = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto parse = [&](auto* value, bool is_last) {
    const auto [next, error] = std::from_chars(at, end, *value);
    if (error != std::errc() || (is_last ? next != end : next == end || *next != ',')) return false;
    at = next + (is_last ? 0 : 1);
    return true;
  };
  if (!parse(&lower, false) || !parse(&sort, false) || !parse(&config.sweeps, false) ||
      !parse(&config.tolerance, true)) {
    return std::nullopt;
  }
  config.lower = lower != 0;
  config.sort = sort != 0;
  return config;
}

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_EIGH_CONFIG_H_
