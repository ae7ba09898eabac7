// SPDX-License-Identifier: Apache-2.0
// Decompositions whose vectors are determined up to their signs, which recorded calls therefore do not compare, and the
// scaling of gradients, which torch has on accelerators only.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class LinearAlgebraTest : public TracingTest {
 protected:
  double LargestDifference(const Tensor& a, const Tensor& b) {
    double largest = 0;
    for (double x : Values(Abs(a - b))) largest = std::isnan(x) ? x : std::max(largest, x);
    return largest;
  }
  static Tensor Adjoint(const Tensor& t) { return Transpose(t, -2, -1); }
};

TEST_F(LinearAlgebraTest, EigenvectorsDiagonalizeMatrices) {
  for (const int64_t n : {2, 5, 17}) {
    const Tensor x = InvokeOp(Op::randn, IntList{3, n, n}), a = x + Adjoint(x);
    const Outputs parts = InvokeOpMultiOutput(Op::linalg_eigh, a);
    const Tensor v = parts[1];
    EXPECT_LT(LargestDifference(Matmul(v * Unsqueeze(parts[0], -2), Adjoint(v)), a), 1e-4) << n;
    EXPECT_LT(LargestDifference(Matmul(Adjoint(v), v), InvokeOp(Op::eye, n)), 1e-5) << n;
    const std::vector<double> values = Values(parts[0]);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.begin() + n)) << n;
  }
}

TEST_F(LinearAlgebraTest, GradientsThroughEigenvectors) {
  // f(V) = sum of W * (V V' with the first two columns), which does not depend on the signs, against differences.
  const Tensor x = InvokeOp(Op::randn, IntList{4, 4}, ElementType::kF64),
               weight = InvokeOp(Op::randn, IntList{4, 4}, ElementType::kF64);
  const auto f = [&](const Tensor& a) {
    const Tensor v = Slice(InvokeOpMultiOutput(Op::linalg_eigh, a + Adjoint(a))[1], 1, 0, 2);
    return Sum(weight * Matmul(v, Adjoint(v)));
  };
  Tensor a = x.Detach();
  a.set_requires_grad(true);
  ASSERT_TRUE(f(a).Backward().ok()) << tracer.status();
  const std::vector<double> gradient = Values(a.grad());
  constexpr double kStep = 1e-6;
  for (int64_t i = 0; i < 16; ++i) {
    const Tensor unit = Reshape(To(Eq(Arange(16), i), ElementType::kF64), {4, 4}) * Scalar(kStep);
    const double slope = (Values(f(x + unit))[0] - Values(f(x - unit))[0]) / (2 * kStep);
    EXPECT_NEAR(gradient[static_cast<size_t>(i)], slope, 1e-6 * (1 + std::abs(slope))) << i;
  }
}

TEST_F(LinearAlgebraTest, GradientsThroughSingularVectors) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 2}, {2, 3}, {3, 3}}) {
    const Tensor x = InvokeOp(Op::randn, IntList{rows, columns}, ElementType::kF64);
    const Tensor weight = InvokeOp(Op::randn, IntList{rows, columns}, ElementType::kF64);
    // sum of W * (U V'), the polar factor
    const auto f = [&, weight](const Tensor& a) {
      const Outputs parts = InvokeOpMultiOutput(Op::linalg_svd, a, false);
      return Sum(weight * Matmul(parts[0], parts[2])) + Sum(parts[1] * parts[1] * parts[1]);
    };
    Tensor a = x.Detach();
    a.set_requires_grad(true);
    ASSERT_TRUE(f(a).Backward().ok()) << tracer.status();
    const std::vector<double> gradient = Values(a.grad());
    constexpr double kStep = 1e-6;
    for (int64_t i = 0; i < rows * columns; ++i) {
      const Tensor unit =
          Reshape(To(Eq(Arange(rows * columns), i), ElementType::kF64), {rows, columns}) * Scalar(kStep);
      const double slope = (Values(f(x + unit))[0] - Values(f(x - unit))[0]) / (2 * kStep);
      EXPECT_NEAR(gradient[static_cast<size_t>(i)], slope, 1e-5 * (1 + std::abs(slope))) << rows << " " << i;
    }
  }
}

TEST_F(LinearAlgebraTest, UnscalingReportsWhatIsNotFinite) {
  const Tensor a = Vector({2, 4}), b = Vector({1, 8}), found = Vector({0}), scale = Vector({0.5});
  InvokeOp(Op::amp_foreach_non_finite_check_and_unscale_inplace, Tensors{a, b}, found, scale);
  EXPECT_EQ(Values(a), (std::vector<double>{1, 2}));
  EXPECT_EQ(Values(b), (std::vector<double>{0.5, 4}));
  EXPECT_EQ(Values(found), (std::vector<double>{0}));
  const Tensor bad = Vector({1, std::numeric_limits<float>::infinity()});
  InvokeOp(Op::amp_foreach_non_finite_check_and_unscale_inplace, Tensors{a, bad}, found, scale);
  EXPECT_EQ(Values(found), (std::vector<double>{1}));
  EXPECT_EQ(Values(a), (std::vector<double>{0.5, 1}));
}

TEST_F(LinearAlgebraTest, ScaleGrowsAfterAnIntervalAndBacksOff) {
  const Tensor scale = Vector({8}), good = Vector({0}), bad = Vector({1});
  const Tensor tracker = Zeros({1}, ElementType::kS32);
  const auto update = [&](const Tensor& found) {
    InvokeOp(Op::amp_update_scale_inplace, scale, tracker, found, 2.0, 0.5, 2);
    return std::pair(Values(scale)[0], Values(tracker)[0]);
  };
  EXPECT_EQ(update(good), std::pair(8.0, 1.0));
  EXPECT_EQ(update(good), std::pair(16.0, 0.0));
  EXPECT_EQ(update(good), std::pair(16.0, 1.0));
  EXPECT_EQ(update(bad), std::pair(8.0, 0.0));
}

}  // namespace
}  // namespace hlokit::lazy
