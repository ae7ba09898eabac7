// SPDX-License-Identifier: Apache-2.0
// Gradients of gradients, and errors of autograd.
#include <algorithm>
#include <cmath>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class DoubleBackwardTest : public TracingTest {
 protected:
  // Compares d(sum of f's gradient, weighted)/dx by autograd twice with differences of the first gradient. Steep
  // functions are compared within a fraction of the largest slope, as far as differences in f32 allow.
  template <typename Fn>
  void Check(Fn f, const std::vector<float>& at, bool steep = false) {
    const auto weighted = [&](const std::vector<float>& values, Tensor* x) {
      *x = Vector(values);
      x->set_requires_grad(true);
      absl::StatusOr<Tensors> g = RunBackward({f(*x)}, {}, {*x}, {.create_graph = true});
      EXPECT_TRUE(g.ok()) << g.status().message();
      return Sum((*g)[0] * Vector(std::vector<float>(weights_.begin(), weights_.begin() + values.size())));
    };
    Tensor x;
    const absl::Status status = weighted(at, &x).Backward();
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<double> second = Values(x.grad());
    double largest = 1;
    for (double v : second) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < at.size(); ++i) {
      constexpr float kStep = 1e-2f;
      std::vector<float> up = at, down = at;
      up[i] += kStep;
      down[i] -= kStep;
      Tensor ignored;
      const double slope =
          (Values(weighted(up, &ignored))[0] - Values(weighted(down, &ignored))[0]) / (2 * static_cast<double>(kStep));
      EXPECT_NEAR(second[i], slope, 2e-3 * (steep ? largest : std::max(1.0, std::abs(slope)))) << i;
    }
  }

  const std::vector<float> weights_ = {0.5f, -1.0f, 2.0f, 0.25f};
};

TEST_F(DoubleBackwardTest, APower) {
  Tensor x = Vector({2});
  x.set_requires_grad(true);
  Tensor y = Sum(Pow(x, 3));
  for (double expected : {12.0, 12.0, 6.0}) {  // 3 x^2, 6 x, 6
    absl::StatusOr<Tensors> g = RunBackward({y}, {}, {x}, {.create_graph = true});
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
  const Tensor target = lazy::InvokeOp(Op::full, IntList{1}, 2, ElementType::kS64);
  Check([&](const Tensor& x) { return CrossEntropy(Reshape(x * x, {1, 4}), target); }, at);
  Check([&](const Tensor& x) { return lazy::InvokeOp(Op::mse_loss, x * x, weight, 1); }, at);
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
  absl::StatusOr<Tensors> g = RunBackward({Sum(w * x * x)}, {}, {x}, {.create_graph = true});  // 2 w x
  ASSERT_TRUE(g.ok());
  const Tensor d = (*g)[0] - Scalar(1);
  ASSERT_TRUE(Sum(d * d).Backward().ok());
  EXPECT_NEAR(Values(w.grad())[0], 2 * (6 - 1) * 4, 1e-4);
}

TEST_F(DoubleBackwardTest, WithoutCreateGraphGradientsAreConstants) {
  Tensor x = Vector({2});
  x.set_requires_grad(true);
  absl::StatusOr<Tensors> g = RunBackward({Sum(x * x)}, {}, {x});
  ASSERT_TRUE(g.ok());
  EXPECT_FALSE((*g)[0].requires_grad());
}

TEST_F(DoubleBackwardTest, Activations) {
  const std::vector<float> at = {0.3f, -0.7f, 1.1f, -2.0f};
  const Tensor weight = Vector({1, -2, 0.5, 3});
  for (const char* approximate : {"none", "tanh"}) {
    Check([&](const Tensor& x) { return Sum(Gelu(x, approximate) * weight); }, at);
  }
  for (const Op op : {Op::silu, Op::mish, Op::softplus, Op::hardswish, Op::elu, Op::log_sigmoid_forward}) {
    Check([&](const Tensor& x) { return Sum(lazy::InvokeOp(op, x) * weight); }, at);
  }
  // Piecewise linear: curvature comes from the functions around it.
  Check([&](const Tensor& x) { return Sum(lazy::InvokeOp(Op::hardsigmoid, x * x * x) * weight); }, at);
  // Third derivatives follow from the same formulas.
  Check([&](const Tensor& x) { return Sum(Gelu(x * x) * weight); }, at);
}

TEST_F(DoubleBackwardTest, Losses) {
  const std::vector<float> at = {0.3f, 0.7f, 0.4f, 0.6f};
  const Tensor target = Vector({1, 0, 0.5f, 0.25f});
  for (const int64_t reduction : {0, 1, 2}) {
    Check(
        [&](const Tensor& x) { return Sum(lazy::InvokeOp(Op::binary_cross_entropy, x, target, Tensor(), reduction)); },
        at);
    Check([&](const Tensor& x) { return Sum(lazy::InvokeOp(Op::smooth_l1_loss, x * x, target, reduction, 0.3)); }, at);
  }
}

TEST_F(DoubleBackwardTest, Convolution) {
  // With respect to the input, the kernel and the bias, with strides, padding and groups, transposed too.
  const std::vector<float> at = {0.3f, -0.7f, 1.1f, 0.4f};
  const std::vector<float> fixed = {1, -2, 0.5f, 3, 0.25f, -1, 2, 1};
  const auto convolve = [&](const Tensor& x, const Tensor& w, const Tensor& bias, bool transposed, int64_t groups) {
    const Tensor y = lazy::InvokeOp(Op::convolution, x, w, bias, IntList{2, 1}, IntList{1, 0}, IntList{1, 1},
                                    transposed, IntList{transposed ? 1 : 0, 0}, groups);
    return Sum(y * y * y);
  };
  for (const bool transposed : {false, true}) {
    Check(
        [&](const Tensor& x) {
          return convolve(Reshape(x, {1, 2, 2, 1}), F32({2, 2, 2, 1}, fixed), Tensor(), transposed, 1);
        },
        at, true);
    Check(
        [&](const Tensor& x) {
          return convolve(F32({1, 2, 4, 1}, fixed), Reshape(x, {2, 1, 2, 1}), Tensor(), transposed, 2);
        },
        at, true);
    Check(
        [&](const Tensor& x) {
          const Tensor image = Reshape(x, {1, 1, 2, 2});
          return convolve(image, image * image, Sum(x, {0}, true), transposed, 1);
        },
        at, true);
  }
}

TEST_F(DoubleBackwardTest, Normalization) {
  const std::vector<float> at = {0.3f, -0.7f, 1.1f, 0.4f};
  const Tensor slope = F32({4, 1}, {1, -2, 0.5, 3});
  // The weight and the bias depend on x too, so that every argument's second derivative counts.
  for (const bool train : {true, false}) {
    Check(
        [&](const Tensor& x) {
          const Tensor y = InvokeOpMultiOutput(Op::native_batch_norm, Reshape(x, {4, 1}), Sum(x * x, {0}, true),
                                               Sum(x, {0}, true), train ? Tensor() : Vector({0.2f}),
                                               train ? Tensor() : Vector({1.5f}), train, 0.1, 0.1)[0];
          return Sum(y * y * slope);
        },
        at, true);
  }
  Check(
      [&](const Tensor& x) {
        const Tensor y = InvokeOpMultiOutput(Op::native_layer_norm, Reshape(x, {1, 4}), IntList{4}, x * x, x, 0.1)[0];
        return Sum(y * y * Reshape(slope, {1, 4}));
      },
      at, true);
  Check(
      [&](const Tensor& x) {
        const Tensor pair = Sum(Reshape(x, {2, 2}), {0});
        const Tensor y =
            InvokeOpMultiOutput(Op::native_group_norm, Reshape(x, {1, 2, 2}), pair * pair, pair, 1, 2, 2, 1, 0.1)[0];
        return Sum(y * y * Reshape(slope, {1, 2, 2}));
      },
      at, true);
}

TEST_F(DoubleBackwardTest, PoolingAndResizing) {
  const std::vector<float> at = {0.3f, -0.7f, 1.1f, 0.4f};
  const auto image = [](const Tensor& x) { return Reshape(x * x * x, {1, 1, 2, 2}); };
  const auto cube = [](const Tensor& t) { return Sum(t * t * t); };
  Check(
      [&](const Tensor& x) {
        // Windows that overlap: an element may be the greatest of several.
        return cube(
            InvokeOpMultiOutput(Op::max_pool2d_with_indices, image(x), IntList{2, 1}, IntList{1, 1}, IntList{1, 0})[0]);
      },
      at, true);
  Check(
      [&](const Tensor& x) {
        return cube(lazy::InvokeOp(Op::avg_pool2d, image(x), IntList{2, 1}, IntList{1, 1}));
      },
      at, true);
  Check(
      [&](const Tensor& x) {
        return cube(lazy::InvokeOp(Op::adaptive_avg_pool2d, image(x), IntList{1, 2}));
      },
      at, true);
  Check(
      [&](const Tensor& x) {
        const Tensor volume = Reshape(x * x * x, {1, 1, 1, 2, 2});
        return cube(lazy::InvokeOp(Op::avg_pool3d, volume, IntList{1, 2, 1}, IntList{1, 1, 1}, IntList{0, 1, 0}));
      },
      at, true);
  Check(
      [&](const Tensor& x) {
        return cube(lazy::InvokeOp(Op::upsample_nearest2d, image(x), IntList{4, 4}));
      },
      at, true);
  // The scales that the sizes were rounded from determine which elements are taken.
  Check(
      [&](const Tensor& x) {
        return cube(lazy::InvokeOp(Op::upsample_nearest2d, image(x), IntList{3, 5}, 1.75, 2.6));
      },
      at, true);
  for (const bool corners : {false, true}) {
    Check(
        [&](const Tensor& x) {
          return cube(lazy::InvokeOp(Op::upsample_bilinear2d, image(x), IntList{3, 5}, corners, 1.75, 2.6));
        },
        at, true);
  }
  Check(
      [&](const Tensor& x) {
        return cube(lazy::InvokeOp(Op::upsample_bilinear2d, image(x), IntList{3, 3}, false));
      },
      at, true);
}

TEST_F(DoubleBackwardTest, WhatHasNoDerivativeIsNamed) {
  Tensor x = Vector({0.5f, 2});
  x.set_requires_grad(true);
  const Tensor square = F32({2, 2}, {2, 0, 0, 3}) + x;
  const absl::Status status = Sum(InvokeOp(Op::heaviside, square, square)).Backward();
  const std::string message(status.message());
  EXPECT_EQ(message.substr(0, 15), "derivative for ") << message;
  EXPECT_NE(message.find("heaviside"), std::string::npos) << message;
}

}  // namespace
}  // namespace hlokit::lazy
