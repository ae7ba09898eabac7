// Gradients of gradients, and what autograd refuses.
#include <cmath>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class DoubleBackwardTest : public TracingTest {
 protected:
  // d(sum of f's gradient, weighted)/dx, by autograd twice and by differences of the first gradient.
  template <typename Fn>
  void Check(Fn f, const std::vector<float>& at) {
    const auto weighted = [&](const std::vector<float>& values, Tensor* x) {
      *x = Vector(values);
      x->set_requires_grad(true);
      absl::StatusOr<Tensors> g = Differentiate({f(*x)}, {}, {*x}, {.create_graph = true});
      EXPECT_TRUE(g.ok()) << g.status().message();
      return Sum((*g)[0] * Vector(std::vector<float>(weights_.begin(), weights_.begin() + values.size())));
    };
    Tensor x;
    const absl::Status status = weighted(at, &x).Backward();
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<double> second = Values(x.grad());
    for (size_t i = 0; i < at.size(); ++i) {
      constexpr float kStep = 1e-2f;
      std::vector<float> up = at, down = at;
      up[i] += kStep;
      down[i] -= kStep;
      Tensor ignored;
      const double slope =
          (Values(weighted(up, &ignored))[0] - Values(weighted(down, &ignored))[0]) / (2 * static_cast<double>(kStep));
      EXPECT_NEAR(second[i], slope, 2e-3 * std::max(1.0, std::abs(slope))) << i;
    }
  }

  const std::vector<float> weights_ = {0.5f, -1.0f, 2.0f, 0.25f};
};

TEST_F(DoubleBackwardTest, APower) {
  Tensor x = Vector({2});
  x.set_requires_grad(true);
  Tensor y = Sum(Pow(x, 3));
  for (double expected : {12.0, 12.0, 6.0}) {  // 3 x^2, 6 x, 6
    absl::StatusOr<Tensors> g = Differentiate({y}, {}, {x}, {.create_graph = true});
    ASSERT_TRUE(g.ok()) << g.status().message();
    EXPECT_NEAR(Values((*g)[0])[0], expected, 1e-5);
    y = Sum((*g)[0]);
  }
}

TEST_F(DoubleBackwardTest, Elementwise) {
  Check([](const Tensor& x) { return Sum(Sigmoid(x) * x); }, {0.3f, -0.7f, 1.1f});
  Check([](const Tensor& x) { return Sum(Tanh(x) * x); }, {0.3f, -0.7f, 1.1f});
  Check([](const Tensor& x) { return Sum(Exp(x) / (Sqrt(x * x + Scalar(1)))); }, {0.3f, -0.7f, 1.1f});
  Check([](const Tensor& x) { return Sum(Relu(x) * x * x); }, {0.3f, -0.7f, 1.1f});
}

TEST_F(DoubleBackwardTest, SoftmaxAndLosses) {
  const std::vector<float> at = {0.1f, -0.4f, 0.8f, 0.2f};
  const Tensor weight = Vector({1, -2, 0.5, 3});
  Check([&](const Tensor& x) { return Sum(Softmax(x, 0) * weight); }, at);
  Check([&](const Tensor& x) { return Sum(LogSoftmax(x, 0) * weight * x); }, at);
  const Tensor target = lazy::Run(Op::full, IntList{1}, 2, ElementType::kS64);
  Check([&](const Tensor& x) { return CrossEntropy(Reshape(x * x, {1, 4}), target); }, at);
  Check([&](const Tensor& x) { return lazy::Run(Op::mse_loss, x * x, weight, 1); }, at);
}

TEST_F(DoubleBackwardTest, Products) {
  Check(
      [&](const Tensor& x) {
        const Tensor m = Reshape(x, {2, 2});
        return Sum(Matmul(Matmul(m, m), T(m)));
      },
      {0.3f, -0.7f, 1.1f, 0.4f});
}

TEST_F(DoubleBackwardTest, AGradientPenaltyTrains) {
  // (|d f / d x| - 1)^2 with respect to a weight.
  Tensor w = Vector({1.5});
  w.set_requires_grad(true);
  Tensor x = Vector({2});
  x.set_requires_grad(true);
  absl::StatusOr<Tensors> g = Differentiate({Sum(w * x * x)}, {}, {x}, {.create_graph = true});  // 2 w x
  ASSERT_TRUE(g.ok());
  const Tensor d = (*g)[0] - Scalar(1);
  ASSERT_TRUE(Sum(d * d).Backward().ok());
  EXPECT_NEAR(Values(w.grad())[0], 2 * (6 - 1) * 4, 1e-4);
}

TEST_F(DoubleBackwardTest, WithoutCreateGraphGradientsAreConstants) {
  Tensor x = Vector({2});
  x.set_requires_grad(true);
  absl::StatusOr<Tensors> g = Differentiate({Sum(x * x)}, {}, {x});
  ASSERT_TRUE(g.ok());
  EXPECT_FALSE((*g)[0].requires_grad());
}

TEST_F(DoubleBackwardTest, WhatHasNoDerivativeIsNamed) {
  Tensor x = F32({1, 1, 2, 2}, {1, 2, 3, 4});
  x.set_requires_grad(true);
  const Tensor w = F32({1, 1, 1, 1}, {2});
  const Tensor y = lazy::Run(Op::convolution, x * x, w, Tensor(), IntList{1, 1}, IntList{0, 0}, IntList{1, 1}, false,
                             IntList{0, 0}, 1);
  absl::StatusOr<Tensors> g = Differentiate({Sum(y * y)}, {}, {x}, {.create_graph = true});
  ASSERT_TRUE(g.ok()) << g.status().message();
  const std::string message(Sum((*g)[0]).Backward().message());
  EXPECT_EQ(message.substr(0, 15), "derivative for ") << message;
  EXPECT_NE(message.find("convolution_backward"), std::string::npos) << message;
}

}  // namespace
}  // namespace hlokit::lazy
