// SPDX-License-Identifier: Apache-2.0
// Random ops: their distributions, and the sequence of seeds.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/unit/tracer/tracing.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

class RandomTest : public TracingTest {
 protected:
  static constexpr int64_t kMany = 40000;

  struct Moments {
    double mean = 0, variance = 0, least = 0, most = 0;
  };
  Moments MomentsOf(const Tensor& t) {
    const std::vector<double> v = Values(t);
    Moments m;
    m.least = *std::min_element(v.begin(), v.end());
    m.most = *std::max_element(v.begin(), v.end());
    for (double x : v) m.mean += x / static_cast<double>(v.size());
    for (double x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
    return m;
  }
  Tensor Many() { return Zeros({kMany}, ElementType::kF32); }
};

TEST_F(RandomTest, Uniform) {
  Tensor t = Many();
  lazy::InvokeOp(Op::uniform_inplace, t, -1.0, 3.0);
  const Moments m = MomentsOf(t);
  EXPECT_NEAR(m.mean, 1, 0.03);
  EXPECT_NEAR(m.variance, 16.0 / 12, 0.03);
  EXPECT_GE(m.least, -1);
  EXPECT_LT(m.most, 3);
  EXPECT_LT(m.least, -0.99);
  EXPECT_GT(m.most, 2.99);
}

TEST_F(RandomTest, Normal) {
  Tensor t = Many();
  lazy::InvokeOp(Op::normal_inplace, t, 2.0, 0.5);
  const Moments m = MomentsOf(t);
  EXPECT_NEAR(m.mean, 2, 0.01);
  EXPECT_NEAR(m.variance, 0.25, 0.01);
  double beyond = 0;
  for (double x : Values(t)) beyond += std::abs(x - 2) > 1;  // two deviations
  EXPECT_NEAR(beyond / kMany, 0.0455, 0.004);
  EXPECT_EQ(Values(lazy::InvokeOp(Op::randn, IntList{3, 1})).size(), 3);  // an odd count
}

TEST_F(RandomTest, BernoulliAndDropout) {
  const Moments m = MomentsOf(lazy::InvokeOp(Op::bernoulli_p, Many(), 0.3));
  EXPECT_NEAR(m.mean, 0.3, 0.01);
  EXPECT_NEAR(m.variance, 0.21, 0.005);
  const Tensor ones = Full({kMany}, 1, ElementType::kF32);
  const std::vector<double> dropped = Values(lazy::InvokeOp(Op::dropout, ones, 0.25, true));
  EXPECT_EQ(std::set<double>(dropped.begin(), dropped.end()).size(), 2);
  EXPECT_NEAR(std::count(dropped.begin(), dropped.end(), 0) / static_cast<double>(kMany), 0.25, 0.01);
  EXPECT_NEAR(*std::max_element(dropped.begin(), dropped.end()), 1 / 0.75, 1e-6);
  EXPECT_EQ(Values(lazy::InvokeOp(Op::dropout, ones, 0.25, false)), std::vector<double>(kMany, 1));
  const std::vector<double> each = Values(lazy::InvokeOp(Op::bernoulli, Vector({0, 1, 0, 1})));
  EXPECT_EQ(each, (std::vector<double>{0, 1, 0, 1}));
}

TEST_F(RandomTest, NativeDropoutDividesByWhatIsKept) {
  Tensor x = Full({kMany}, 2, ElementType::kF32);
  x.set_requires_grad(true);
  const Outputs out = InvokeOpMultiOutput(Op::native_dropout, x, 0.2, true);
  EXPECT_NEAR(MomentsOf(out[0]).mean, 2, 0.03);
  ASSERT_TRUE(Sum(out[0]).Backward().ok());
  const std::vector<double> y = Values(out[0]), g = Values(x.grad());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(g[i], y[i] / 2, 1e-6);
}

TEST_F(RandomTest, ExponentialAndWholeNumbers) {
  Tensor t = Many();
  lazy::InvokeOp(Op::exponential_inplace, t, 2.0);
  const Moments m = MomentsOf(t);
  EXPECT_NEAR(m.mean, 0.5, 0.01);
  EXPECT_NEAR(m.variance, 0.25, 0.02);
  EXPECT_GT(m.least, 0);
  const Moments whole = MomentsOf(lazy::InvokeOp(Op::randint_low, -3, 5, IntList{kMany}));
  EXPECT_EQ(whole.least, -3);
  EXPECT_EQ(whole.most, 4);
  EXPECT_NEAR(whole.mean, 0.5, 0.05);
  EXPECT_NEAR(whole.variance, 63.0 / 12, 0.1);
  Tensor bytes = Zeros({kMany}, ElementType::kU8);
  lazy::InvokeOp(Op::random_inplace, bytes);
  EXPECT_NEAR(MomentsOf(bytes).mean, 127.5, 1.5);
}

TEST_F(RandomTest, PermutationsHoldEachPlaceOnce) {
  std::vector<double> p = Values(lazy::InvokeOp(Op::randperm, 1000));
  double in_place = 0;
  for (size_t i = 0; i < p.size(); ++i) in_place += p[i] == static_cast<double>(i);
  EXPECT_LT(in_place, 10);
  std::sort(p.begin(), p.end());
  for (size_t i = 0; i < p.size(); ++i) ASSERT_EQ(p[i], static_cast<double>(i));
}

TEST_F(RandomTest, MultinomialFollowsTheWeights) {
  const std::vector<double> drawn = Values(lazy::InvokeOp(Op::multinomial, Vector({1, 0, 3}), 8000, true));
  ASSERT_EQ(drawn.size(), 8000);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 1), 0);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 2) / 8000.0, 0.75, 0.02);
  std::vector<double> all = Values(lazy::InvokeOp(Op::multinomial, Vector({1, 2, 3}), 3, false));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<double>{0, 1, 2}));
}

TEST_F(RandomTest, TheSeedDecides) {
  const auto draw = [&](int64_t seed) {
    tracer.device()->SetSeed(seed);
    const Tensor a = lazy::InvokeOp(Op::rand, IntList{4}), b = lazy::InvokeOp(Op::rand, IntList{4});
    return std::pair(Values(a), Values(b));
  };
  const auto first = draw(7), again = draw(7), other = draw(8);
  EXPECT_EQ(first, again);
  EXPECT_NE(first.first, first.second);  // chained
  EXPECT_NE(first.first, other.first);
}

TEST_F(RandomTest, SeedsAreChainedInAStepAndChangeBetweenSteps) {
  const Tensor a = lazy::InvokeOp(Op::rand, IntList{2}), b = lazy::InvokeOp(Op::rand, IntList{2});
  const std::string text = TensorsToString({a, b}, {});
  // The second seed is 2531011 + 214013 seed.
  EXPECT_NE(text.find("prim::Constant(), xla_shape=s64[], value=214013"), std::string::npos) << text;
  EXPECT_NE(text.find("prim::Constant(), xla_shape=s64[], value=2531011"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::uniform("), std::string::npos) << text;
  ASSERT_TRUE(tracer.MarkStep().ok());
  const std::vector<double> before = Values(a);
  const Tensor c = lazy::InvokeOp(Op::rand, IntList{2}), d = lazy::InvokeOp(Op::rand, IntList{2});
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_NE(Values(c), before);
  EXPECT_EQ(Counter("UncachedCompile"), 1);  // the seed is data
}

TEST_F(RandomTest, WrongParametersAreErrors) {
  lazy::InvokeOp(Op::uniform_inplace, Vector({1}), 2.0, 1.0);
  EXPECT_EQ(tracer.status().message(),
            "aten::uniform_: uniform_ expects to return a [from, to) range, but found from > to");
}

TEST_F(RandomTest, Cauchy) {
  Tensor t = Many();
  lazy::InvokeOp(Op::cauchy_inplace, t, 1.0, 2.0);
  double below = 0, near = 0;
  for (double x : Values(t)) {
    below += x < 1;
    near += std::abs(x - 1) < 2;
  }
  EXPECT_NEAR(below / kMany, 0.5, 0.01);
  EXPECT_NEAR(near / kMany, 0.5, 0.01);  // the quartiles are one sigma away
}

TEST_F(RandomTest, Geometric) {
  const Moments m = MomentsOf(lazy::InvokeOp(Op::geometric, Many(), 0.25));
  EXPECT_NEAR(m.mean, 4, 0.08);
  EXPECT_NEAR(m.variance, 12, 0.6);
  EXPECT_EQ(m.least, 1);
  Tensor whole = Zeros({kMany}, ElementType::kS64);
  lazy::InvokeOp(Op::geometric_inplace, whole, 0.5);
  EXPECT_NEAR(MomentsOf(whole).mean, 2, 0.05);
}

TEST_F(RandomTest, LogNormal) {
  Tensor t = Many();
  lazy::InvokeOp(Op::log_normal_inplace, t, 0.5, 0.25);
  const Moments m = MomentsOf(lazy::InvokeOp(Op::log, t));
  EXPECT_NEAR(m.mean, 0.5, 0.01);
  EXPECT_NEAR(m.variance, 0.0625, 0.003);
}

TEST_F(RandomTest, Poisson) {
  for (const double rate : {0.0, 0.5, 30.0, 400.0, 1e4}) {
    const Moments m = MomentsOf(lazy::InvokeOp(Op::poisson, Full({kMany}, rate, ElementType::kF32)));
    EXPECT_NEAR(m.mean, rate, 5 * std::sqrt(rate / kMany)) << rate;
    EXPECT_NEAR(m.variance, rate, 0.05 * rate) << rate;
    EXPECT_EQ(m.most, std::floor(m.most)) << rate;
  }
}

TEST_F(RandomTest, NormalOfTensors) {
  const Tensor mean = Full({kMany}, 3, ElementType::kF32), std = Full({kMany}, 0.5, ElementType::kF32);
  for (const Tensor& t :
       {lazy::InvokeOp(Op::normal_Tensor_Tensor, mean, std), lazy::InvokeOp(Op::normal_Tensor_float, mean, 0.5),
        lazy::InvokeOp(Op::normal_float_Tensor, 3.0, std),
        lazy::InvokeOp(Op::normal_float_float, 3.0, 0.5, IntList{kMany})}) {
    const Moments m = MomentsOf(t);
    EXPECT_NEAR(m.mean, 3, 0.02);
    EXPECT_NEAR(m.variance, 0.25, 0.01);
  }
}

TEST_F(RandomTest, IntegersLikeATensor) {
  const Tensor t = lazy::InvokeOp(Op::randint_like_low_dtype, Zeros({kMany}, ElementType::kS32), -2, 5);
  EXPECT_EQ(t.dtype(), ElementType::kS32);
  const Moments m = MomentsOf(t);
  EXPECT_EQ(m.least, -2);
  EXPECT_EQ(m.most, 4);
  EXPECT_NEAR(m.mean, 1, 0.05);
}

}  // namespace
}  // namespace hlokit::lazy
