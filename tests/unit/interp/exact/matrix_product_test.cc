// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

// Returns a dot of two vectors of equal numbers.
double Dot(int64_t size, float number) {
  const std::string n = std::to_string(size);
  const TextRun run =
      RunText("HloModule m\nENTRY e {\n c = f32[] constant(" + std::to_string(number) + ")\n v = f32[" + n +
              "] broadcast(c), dimensions={}\n ROOT r = f32[] dot(v, v), lhs_contracting_dims={0}, " +
              "rhs_contracting_dims={0}\n}\n");
  EXPECT_EQ(run.error, "");
  if (run.results.size() != 1) return 0;
  return std::stod(run.results[0].substr(run.results[0].rfind(' ') + 1));
}

TEST(MatrixProductTest, SumsOfUpTo128ProductsAreThePlainLoop) {
  float sum = 0;
  for (int i = 0; i < 128; ++i) sum += 0.1f * 0.1f;
  EXPECT_EQ(static_cast<float>(Dot(128, 0.1f)), sum);
}

TEST(MatrixProductTest, LongSumsLoseLessThanThePlainLoop) {
  constexpr int64_t kSize = 1 << 16;
  float plain = 0;
  for (int64_t i = 0; i < kSize; ++i) plain += 0.1f * 0.1f;
  const double exact = 0.01 * kSize;
  EXPECT_GT(std::abs(plain - exact), 1e-4 * exact);
  EXPECT_NEAR(Dot(kSize, 0.1f), exact, 2e-5 * exact);
}

}  // namespace
}  // namespace hlokit::interp
