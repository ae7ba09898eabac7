// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/contractions/line_fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace hlokit::interp {
namespace {

std::complex<double> Root(size_t k, size_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

TEST(LineFftTest, IsTheSumOfItsDefinitionForEachPowerOfTwo) {
  for (size_t n = 1; n <= 2048; n *= 2) {
    std::vector<std::complex<double>> x(n);
    for (size_t i = 0; i < n; ++i) {
      x[i] = {std::sin(1.7 * static_cast<double>(i)) + 0.1, std::cos(0.3 * static_cast<double>(i * i))};
    }
    std::vector<std::complex<double>> y = x;
    LineFft(n, Root).Run(y.data());
    double worst = 0;
    for (size_t k = 0; k < n; ++k) {
      std::complex<double> sum = 0;
      for (size_t i = 0; i < n; ++i) sum += x[i] * Root(i * k % n, n);
      worst = std::max(worst, std::abs(sum - y[k]));
    }
    EXPECT_LE(worst, 1e-15 * static_cast<double>(n)) << n;
  }
}

}  // namespace
}  // namespace hlokit::interp
