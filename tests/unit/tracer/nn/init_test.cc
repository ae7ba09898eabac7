// SPDX-License-Identifier: Apache-2.0
// torch.nn.init: distributions against their definitions, deterministic values against those of torch 1.13.
#include "tracer/nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/dispatch/functions.h"
#include "tracer/nn/distributions.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {
namespace {

using Numbers = std::vector<double>;

class InitTest : public TracingTest {
 protected:
  void SetUp() override { init::manual_seed(3); }
  Tensor Zeros(Dims dims, ElementType type = ElementType::kF32) {
    return tracer.FromGenerator(tracer.device()->ArrayShape(type, dims), [](Literal*) {});
  }
  std::string Error() {
    const std::string message(tracer.status().message());
    tracer.ClearStatus();
    return message;
  }
  // Returns the largest distance of the samples' distribution from the one that has this probability of less than x.
  static double DistanceFrom(Numbers samples, const std::function<double(double)>& probability) {
    std::sort(samples.begin(), samples.end());
    double distance = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const double p = probability(samples[i]), n = static_cast<double>(samples.size());
      distance =
          std::max({distance, std::abs(p - static_cast<double>(i) / n), std::abs(p - static_cast<double>(i + 1) / n)});
    }
    return distance;
  }
  static std::function<double(double)> UniformIn(double low, double high) {
    return [=](double x) { return std::clamp((x - low) / (high - low), 0.0, 1.0); };
  }
  static std::function<double(double)> NormalWith(double mean, double std) {
    return [=](double x) { return 0.5 * std::erfc(-(x - mean) / std / std::numbers::sqrt2); };
  }
};

// Kolmogorov: a distance of 2 / sqrt(n) has a probability of 7e-4.
constexpr double kFar = 2.0 / 141.4;  // of 20000 samples

TEST_F(InitTest, DistributionsAreThoseOfTheirNames) {
  const Tensor t = Zeros({100, 200});
  EXPECT_LT(DistanceFrom(Values(init::uniform_(t)), UniformIn(0, 1)), kFar);
  EXPECT_LT(DistanceFrom(Values(init::uniform_(t, -3, 5)), UniformIn(-3, 5)), kFar);
  EXPECT_LT(DistanceFrom(Values(init::normal_(t)), NormalWith(0, 1)), kFar);
  EXPECT_LT(DistanceFrom(Values(init::normal_(t, 2, 0.1)), NormalWith(2, 0.1)), kFar);
  EXPECT_GT(DistanceFrom(Values(init::normal_(t, 2, 0.1)), NormalWith(2, 0.11)), kFar);
  for (const auto& [mean, std, a, b] :
       {std::array<double, 4>{0, 1, -2, 2}, {1, 2, 0.5, 7}, {0, 1, 9, 10}, {0, 1, -10, -9}, {5, 0.1, 0, 5}}) {
    const Numbers values = Values(init::trunc_normal_(t, mean, std, a, b));
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

TEST_F(InitTest, ScalesAreThoseOfTheFans) {
  const Tensor t = Zeros({40, 20, 5, 5});  // fans: 500 and 1000
  const double uniform = std::sqrt(6.0 / 1500), normal = std::sqrt(2.0 / 1500);
  EXPECT_LT(DistanceFrom(Values(init::xavier_uniform_(t)), UniformIn(-uniform, uniform)), kFar);
  EXPECT_LT(DistanceFrom(Values(init::xavier_normal_(t, 3)), NormalWith(0, 3 * normal)), kFar);
  const double leaky = std::sqrt(6 / (1 + 0.25) / 500);
  EXPECT_LT(DistanceFrom(Values(init::kaiming_uniform_(t, 0.5)), UniformIn(-leaky, leaky)), kFar);
  EXPECT_LT(DistanceFrom(Values(init::kaiming_normal_(t)), NormalWith(0, std::sqrt(2.0 / 500))), kFar);
  const Tensor fan_out = init::kaiming_normal_(t, 0, init::FanMode::kFanOut, "tanh");
  EXPECT_LT(DistanceFrom(Values(fan_out), NormalWith(0, 5.0 / 3 / std::sqrt(1000.0))), kFar);
}

TEST_F(InitTest, GainsAreTorchs) {
  EXPECT_EQ(*init::calculate_gain("conv_transpose2d"), 1);
  EXPECT_EQ(*init::calculate_gain("sigmoid"), 1);
  EXPECT_DOUBLE_EQ(*init::calculate_gain("tanh"), 5.0 / 3);
  EXPECT_DOUBLE_EQ(*init::calculate_gain("relu"), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(*init::calculate_gain("leaky_relu"), 1.4141428569978354);
  EXPECT_DOUBLE_EQ(*init::calculate_gain("leaky_relu", 0.2), 1.3867504905630728);
  EXPECT_DOUBLE_EQ(*init::calculate_gain("selu"), 0.75);
  EXPECT_EQ(init::calculate_gain("gelu").status().message(), "Unsupported nonlinearity gelu");
}

TEST_F(InitTest, FixedValuesAreTorchs) {
  EXPECT_EQ(Values(init::eye_(Zeros({2, 3}))), (Numbers{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(Values(init::constant_(Zeros({2}), 1.5)), (Numbers{1.5, 1.5}));
  EXPECT_EQ(Values(init::ones_(Zeros({2}))), (Numbers{1, 1}));
  EXPECT_EQ(Values(init::zeros_(init::ones_(Zeros({2})))), (Numbers{0, 0}));
  EXPECT_EQ(Values(init::dirac_(Zeros({2, 2, 3}))), (Numbers{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(Values(init::dirac_(Zeros({4, 1, 2}), 2)), (Numbers{0, 1, 0, 0, 0, 1, 0, 0}));
  Numbers wide(3 * 2 * 9);
  wide[4] = wide[(1 * 2 + 1) * 9 + 4] = 1;
  EXPECT_EQ(Values(init::dirac_(Zeros({3, 2, 3, 3}))), wide);
}

TEST_F(InitTest, OrthogonalMatrices) {
  for (const IntList& dims : {IntList{5, 3}, {3, 5}, {4, 4}, {2, 3, 2}}) {
    const Tensor t = Reshape(init::orthogonal_(Zeros(dims), 2), {dims[0], -1});
    const Tensor square = t.size(0) < t.size(1) ? Matmul(t, Transpose(t, 0, 1)) : Matmul(Transpose(t, 0, 1), t);
    const Numbers values = Values(square);
    const auto n = static_cast<size_t>(square.size(0));
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], i % (n + 1) == 0 ? 4 : 0, 1e-5) << i;
  }
}

TEST_F(InitTest, SparseMatricesHaveThisShareOfZerosInEachColumn) {
  const Numbers values = Values(init::sparse_(Zeros({50, 40}), 0.33, 2));
  Numbers others;
  bool same = true;
  for (size_t j = 0; j < 40; ++j) {
    int zeros = 0;
    for (size_t i = 0; i < 50; ++i) {
      zeros += values[i * 40 + j] == 0;
      if (values[i * 40 + j] != 0) others.push_back(values[i * 40 + j]);
      same &= (values[i * 40 + j] == 0) == (values[i * 40] == 0);
    }
    EXPECT_EQ(zeros, 17);
  }
  EXPECT_FALSE(same);
  EXPECT_LT(DistanceFrom(others, NormalWith(0, 2)), 2 / std::sqrt(1320.0));
}

TEST_F(InitTest, SeedsSelectTheNumbersAndTypesRoundThem) {
  const auto twice = [&](ElementType type) {
    init::manual_seed(7);
    Numbers values = Values(init::normal_(Zeros({3}, type)));
    for (double v : Values(init::uniform_(Zeros({3}, type)))) values.push_back(v);
    return values;
  };
  const Numbers f32 = twice(ElementType::kF32), f64 = twice(ElementType::kF64), bf16 = twice(ElementType::kBF16);
  EXPECT_EQ(twice(ElementType::kF32), f32);
  for (size_t i = 0; i < f32.size(); ++i) {
    EXPECT_NEAR(f32[i], f64[i], 1e-6);
    EXPECT_NEAR(bf16[i], f64[i], 0.01 * std::abs(f64[i]));
  }
  EXPECT_NE(f32, f64);
  init::manual_seed(8);
  EXPECT_NE(Values(init::normal_(Zeros({3}))), Numbers(f32.begin(), f32.begin() + 3));
}

TEST_F(InitTest, NothingIsDrawnBeforeItIsRead) {
  const Tensor t = Zeros({int64_t{1} << 20, int64_t{1} << 20}).set_requires_grad(true);
  EXPECT_TRUE(init::kaiming_uniform_(t).requires_grad());
  EXPECT_TRUE(init::orthogonal_(t).defined());
  EXPECT_TRUE(tracer.status().ok());
}

TEST_F(InitTest, ErrorsAreTorchs) {
  EXPECT_FALSE(init::kaiming_normal_(Zeros({3})).defined());
  EXPECT_EQ(Error(), "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  EXPECT_FALSE(init::eye_(Zeros({3})).defined());
  EXPECT_EQ(Error(), "Only tensors with 2 dimensions are supported");
  (void)init::sparse_(Zeros({3, 2, 2}), 0.1);
  EXPECT_EQ(Error(), "Only tensors with 2 dimensions are supported");
  (void)init::dirac_(Zeros({3, 3}));
  EXPECT_EQ(Error(), "Only tensors with 3, 4, or 5 dimensions are supported");
  (void)init::dirac_(Zeros({3, 3, 3}), 2);
  EXPECT_EQ(Error(), "dim 0 must be divisible by groups");
  (void)init::orthogonal_(Zeros({3}));
  EXPECT_EQ(Error(), "Only tensors with 2 or more dimensions are supported");
  (void)init::kaiming_normal_(Zeros({3, 3}), 0, init::FanMode::kFanIn, "gelu");
  EXPECT_EQ(Error(), "Unsupported nonlinearity gelu");
}

TEST(DistributionsTest, TheInverseOfTheNormalProbability) {
  for (double x : {-30.0, -8.0, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 7.0}) {
    const double p = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    EXPECT_NEAR(InverseNormal(p), x, 1e-9 * std::max(1.0, std::abs(x)) + (x > 4 ? 1e-4 : 0)) << x;
  }
}

}  // namespace
}  // namespace hlokit::lazy::nn
