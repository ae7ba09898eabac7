// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/distributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "absl/types/span.h"

namespace hlokit::lazy::nn {
namespace {

using Numbers = std::vector<double>;

Numbers Drawn(const Distribution& distribution, uint64_t seed = 3, uint64_t stream = 0) {
  Numbers values(20000);
  Fill(distribution, seed, stream, absl::MakeSpan(values));
  return values;
}

// Returns the largest distance of the samples' distribution from the one that has this probability of less than x.
double DistanceFrom(Numbers samples, const std::function<double(double)>& probability) {
  std::sort(samples.begin(), samples.end());
  double distance = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double p = probability(samples[i]), n = static_cast<double>(samples.size());
    distance =
        std::max({distance, std::abs(p - static_cast<double>(i) / n), std::abs(p - static_cast<double>(i + 1) / n)});
  }
  return distance;
}

std::function<double(double)> UniformIn(double low, double high) {
  return [=](double x) { return std::clamp((x - low) / (high - low), 0.0, 1.0); };
}

std::function<double(double)> NormalWith(double mean, double std) {
  return [=](double x) { return 0.5 * std::erfc(-(x - mean) / std / std::numbers::sqrt2); };
}

// Kolmogorov: a distance of 2 / sqrt(n) has a probability of 7e-4.
constexpr double kFar = 2.0 / 141.4;  // of 20000 samples

TEST(DistributionsTest, NumbersAreDistributedAsTheirNamesSay) {
  EXPECT_LT(DistanceFrom(Drawn(Distribution::Uniform(-3, 5)), UniformIn(-3, 5)), kFar);
  EXPECT_LT(DistanceFrom(Drawn(Distribution::Normal(2, 0.1)), NormalWith(2, 0.1)), kFar);
  EXPECT_GT(DistanceFrom(Drawn(Distribution::Normal(2, 0.1)), NormalWith(2, 0.11)), kFar);
  EXPECT_EQ(Drawn(Distribution::Constant(1.5)), Numbers(20000, 1.5));
}

TEST(DistributionsTest, TruncatedNormalNumbersAreWithinTheirLimits) {
  for (const auto& [mean, std, a, b] :
       {std::array<double, 4>{0, 1, -2, 2}, {1, 2, 0.5, 7}, {0, 1, 9, 10}, {0, 1, -10, -9}, {5, 0.1, 0, 5}}) {
    const Numbers values = Drawn(Distribution::TruncatedNormal(mean, std, a, b));
    EXPECT_GE(*std::min_element(values.begin(), values.end()), a);
    EXPECT_LE(*std::max_element(values.begin(), values.end()), b);
    // By the nearer tail, which is exact far from the mean.
    const double sign = a > mean ? -1 : 1;
    const auto tail = [&, m = mean, s = std](double x) {
      return 0.5 * std::erfc(-sign * (x - m) / s / std::numbers::sqrt2);
    };
    const double low = tail(a), high = tail(b);
    EXPECT_LT(DistanceFrom(values, [&](double x) { return (tail(x) - low) / (high - low); }), kFar) << a;
  }
}

TEST(DistributionsTest, SeedsAndStreamsSelectTheNumbers) {
  const Distribution normal = Distribution::Normal(0, 1);
  EXPECT_EQ(Drawn(normal, 7, 1), Drawn(normal, 7, 1));
  EXPECT_NE(Drawn(normal, 7, 1), Drawn(normal, 8, 1));
  EXPECT_NE(Drawn(normal, 7, 1), Drawn(normal, 7, 2));
}

TEST(DistributionsTest, TheInverseOfTheNormalProbability) {
  for (double x : {-30.0, -8.0, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 7.0}) {
    const double p = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    EXPECT_NEAR(InverseNormal(p), x, 1e-9 * std::max(1.0, std::abs(x)) + (x > 4 ? 1e-4 : 0)) << x;
  }
}

}  // namespace
}  // namespace hlokit::lazy::nn
