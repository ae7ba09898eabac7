// SPDX-License-Identifier: Apache-2.0
// Layers: what recorded calls (tests/torch_ops) do not show. Writes of running statistics, random layers, attention
// without keys.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class LayersTest : public TracingTest {
 protected:
  static constexpr int64_t kMany = 40000;

  // Returns mean and variance.
  std::pair<double, double> MomentsOf(const Tensor& t) {
    const std::vector<double> v = Values(t);
    double mean = 0, variance = 0;
    for (double x : v) mean += x / static_cast<double>(v.size());
    for (double x : v) variance += (x - mean) * (x - mean) / static_cast<double>(v.size());
    return {mean, variance};
  }
  void ExpectNear(const Tensor& t, const std::vector<double>& wanted) {
    const std::vector<double> got = Values(t);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
  }
};

// Values of torch 1.13.
TEST_F(LayersTest, NormsWriteRunningStatistics) {
  std::vector<float> values(12);
  for (int i = 0; i < 12; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i) / 4 - 1;
  const Tensor x = F32({2, 2, 3}, values);
  const Tensor mean = Vector({0.5, -0.5}), var = Vector({1, 2});
  lazy::InvokeOp(Op::instance_norm, x, Tensor(), Tensor(), mean, var, true, 0.25, 1e-5, false);
  ExpectNear(mean, {0.375, -0.1875});
  ExpectNear(var, {0.765625, 1.515625});
  lazy::InvokeOp(Op::batch_norm, x, Tensor(), Tensor(), mean, var, true, 0.25, 1e-5, false);
  ExpectNear(mean, {0.28125, 0.046875});
  ExpectNear(var, {0.7554687261581421, 1.317968726158142});
  // Evaluation writes nothing.
  lazy::InvokeOp(Op::instance_norm, x, Tensor(), Tensor(), mean, var, false, 0.25, 1e-5, false);
  ExpectNear(mean, {0.28125, 0.046875});
}

TEST_F(LayersTest, FeatureDropoutDropsWholeChannels) {
  Tensor x = Full({200, 50, 4}, 1, ElementType::kF32);
  x.set_requires_grad(true);
  const Tensor y = lazy::InvokeOp(Op::feature_dropout, x, 0.25, true);
  ASSERT_TRUE(Sum(y).Backward().ok());
  const std::vector<double> v = Values(y);
  EXPECT_EQ(std::set<double>(v.begin(), v.end()).size(), 2u);
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], v[i - i % 4]);
  EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), 0.0)) / kMany, 0.25, 0.02);
  EXPECT_EQ(Values(x.grad()), v);
}

TEST_F(LayersTest, AlphaDropoutKeepsMeanAndVariance) {
  const Tensor x = lazy::InvokeOp(Op::randn, IntList{200, 200});
  for (Op op : {Op::alpha_dropout, Op::feature_alpha_dropout}) {
    const auto [mean, variance] = MomentsOf(lazy::InvokeOp(op, x, 0.3, true));
    EXPECT_NEAR(mean, 0, 0.03);
    EXPECT_NEAR(variance, 1, 0.05);
  }
}

TEST_F(LayersTest, RreluDrawsASlopeForEachNegativeElement) {
  Tensor x = Full({kMany}, -1, ElementType::kF32);
  x.set_requires_grad(true);
  const Tensor y = lazy::InvokeOp(Op::rrelu, x, 0.125, 0.375, true);
  const auto [mean, variance] = MomentsOf(y);
  EXPECT_NEAR(mean, -0.25, 0.005);
  EXPECT_NEAR(variance, 0.25 * 0.25 / 12, 0.001);
  ASSERT_TRUE(Sum(y).Backward().ok());
  std::vector<double> slopes = Values(y);
  for (double& slope : slopes) slope = -slope;
  EXPECT_EQ(Values(x.grad()), slopes);
  EXPECT_EQ(Values(lazy::InvokeOp(Op::rrelu, Vector({2, 3}), 0.125, 0.375, true)), (std::vector<double>{2, 3}));
}

TEST_F(LayersTest, AQueryWithoutKeysAttendsToNothing) {
  Tensor q = F32({2, 2}, {1, 2, 3, 4}), k = F32({2, 2}, {1, 0, 0, 1}), v = F32({2, 2}, {5, 6, 7, 8});
  for (Tensor* t : {&q, &k, &v}) t->set_requires_grad(true);
  Literal mask = Literal::Zeros(tracer.device()->ArrayShape(ElementType::kPred, {2, 2}));
  mask.values<uint8_t>()[2] = 1;  // the second query sees the first key
  const Tensor y =
      lazy::InvokeOp(Op::scaled_dot_product_attention, q, k, v, tracer.FromLiteral(std::move(mask)), 0.0, false);
  EXPECT_EQ(Values(y), (std::vector<double>{0, 0, 5, 6}));
  ASSERT_TRUE(Sum(y).Backward().ok());
  EXPECT_EQ(Values(q.grad()), (std::vector<double>(4, 0)));
  EXPECT_EQ(Values(v.grad()), (std::vector<double>{1, 1, 0, 0}));
}

TEST_F(LayersTest, AttentionDropsWeights) {
  const Tensor q = Full({1, 100, 1}, 0, ElementType::kF32), v = Full({1, 100, 1}, 1, ElementType::kF32);
  const auto [mean, variance] =
      MomentsOf(lazy::InvokeOp(Op::scaled_dot_product_attention, q, q, v, Tensor(), 0.5, false));
  // Each result is the mean of 100 numbers 0 or 2.
  EXPECT_NEAR(mean, 1, 0.05);
  EXPECT_NEAR(variance, 0.01, 0.006);
}

TEST_F(LayersTest, DropoutBetweenLayersOfTraining) {
  const Tensor x = Full({1, 1, 2}, 1, ElementType::kF32), h = Zeros({2, 1, 2}, ElementType::kF32);
  const Tensor w = F32({2, 2}, {1, 0, 0, 1});
  const Tensors params = {w, w, w, w};
  const auto run = [&](bool train) {
    return Values(lazy::InvokeOp(Op::rnn_relu_input, x, h, params, false, 2, 1.0, train, false, false));
  };
  EXPECT_EQ(run(true), (std::vector<double>{0, 0}));
  EXPECT_EQ(run(false), (std::vector<double>{1, 1}));
}

TEST_F(LayersTest, NearestNeighborsByATinyFactorAreOfTheInput) {
  Tensor x = F32({1, 1, 2}, {3, 4});
  x.set_requires_grad(true);
  const Tensor y = lazy::InvokeOp(Op::upsample_nearest1d, x, IntList{3}, 1e-45);
  EXPECT_EQ(Values(y), (std::vector<double>{4, 4, 4}));
  ASSERT_TRUE(Sum(y).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{0, 3}));
}

TEST_F(LayersTest, CtcLossOfNoFrames) {
  const Tensor logp = F32({1, 2, 2}, {-1, -2, -3, -4});
  Literal one = Literal::Zeros(tracer.device()->ArrayShape(ElementType::kS64, {2, 1}));
  one.values<int64_t>()[0] = one.values<int64_t>()[1] = 1;
  const std::vector<double> loss = Values(lazy::InvokeOp(Op::ctc_loss_IntList, logp, tracer.FromLiteral(std::move(one)),
                                                         IntList{0, 0}, IntList{0, 1}, 0, 0));
  EXPECT_EQ(loss[0], 0);
  EXPECT_TRUE(std::isinf(loss[1]) && loss[1] > 0);
}

class LayersOfTwoDevicesTest : public TracingTest {
 protected:
  LayersOfTwoDevicesTest() : TracingTest(Options()) {}
  static TracerOptions Options() {
    TracerOptions options = SmallOptions();
    options.client.num_devices = 2;
    return options;
  }
};

TEST_F(LayersOfTwoDevicesTest, ComposedOpsRunOnTheDeviceOfTheirArguments) {
  Tensor weight, indices, offsets;
  {
    const DeviceGuard second(tracer.device(1));
    weight = F32({2, 1}, {3, 4});
    indices = To(Vector({0, 1, 1}), ElementType::kS64);
    offsets = To(Vector({0, 2}), ElementType::kS64);
  }
  const Tensor y = lazy::InvokeOp(Op::embedding_bag, weight, indices, offsets);
  EXPECT_EQ(Values(y), (std::vector<double>{7, 4}));
  EXPECT_EQ(y.device(), tracer.device(1));
}

}  // namespace
}  // namespace hlokit::lazy
