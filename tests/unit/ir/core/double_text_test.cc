// SPDX-License-Identifier: Apache-2.0
#include "ir/core/double_text.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

// Zeros, the limits of the type, non-finite values, powers of ten and random bits.
std::vector<double> Values() {
  using Limits = std::numeric_limits<double>;
  std::vector<double> values = {0,
                                -0.0,
                                1,
                                0.1,
                                1.5,
                                Limits::min(),
                                Limits::max(),
                                Limits::lowest(),
                                Limits::denorm_min(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN()};
  for (int e = -320; e <= 308; ++e) values.push_back(std::pow(10.0, e));
  std::mt19937_64 random(15);
  for (int i = 0; i < 2000; ++i) values.push_back(std::bit_cast<double>(random()));
  return values;
}

std::string Printed(const char* format, int digits, double value) {
  char text[400];
  std::snprintf(text, sizeof(text), format, digits, value);
  return text;
}

TEST(DoubleTextTest, ShortestTextReadsBack) {
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(1e300), "1e+300");
  for (double value : Values()) {
    if (std::isnan(value)) continue;
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(FormatDouble(value).c_str(), nullptr)),
              std::bit_cast<uint64_t>(value));
  }
}

TEST(DoubleTextTest, DigitsAreThoseOfC) {
  EXPECT_EQ(FormatDouble(1.0 / 3, 4), "0.3333");
  EXPECT_EQ(FormatDouble(2500000, 6), "2.5e+06");
  for (double value : Values()) {
    for (int digits : {1, 4, 6, 9, 15, 17}) EXPECT_EQ(FormatDouble(value, digits), Printed("%.*g", digits, value));
  }
}

TEST(DoubleTextTest, DecimalsAreThoseOfC) {
  EXPECT_EQ(FormatFixed(2.0 / 3, 2), "0.67");
  EXPECT_EQ(FormatFixed(0.5, 0), "0");
  for (double value : Values()) {
    for (int decimals : {0, 1, 3, 17}) EXPECT_EQ(FormatFixed(value, decimals), Printed("%.*f", decimals, value));
  }
}

}  // namespace
}  // namespace hlokit
