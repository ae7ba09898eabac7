// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices: products, orthogonality and order at every size, torch's values, gradients and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class DecompositionsTest : public TracingTest {
 protected:
  Tensor F64(Dims dims, const std::vector<double>& values) {
    Literal literal = Literal::Zeros(tracer.device()->ArrayShape(ElementType::kF64, dims));
    EXPECT_EQ(literal.size_bytes(), values.size() * sizeof(double));
    std::memcpy(literal.data(), values.data(), literal.size_bytes());
    return tracer.FromLiteral(std::move(literal));
  }
  // Returns values in [-1, 1], the same in every run.
  Tensor Pattern(Dims dims) {
    std::vector<double> values;
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<double>(i * i % 1009) + 0.5));
    return F64(dims, values);
  }
  static Tensor Swap(const Tensor& t) { return Transpose(t, -2, -1); }
  double Largest(const Tensor& t) {
    double largest = 0;
    for (double v : Values(t)) largest = std::isnan(v) ? 1e300 : std::max(largest, std::abs(v));
    return largest;
  }
  Tensor Eye(int64_t n) { return InvokeOp(Op::eye, n, ElementType::kF64); }
  // Checks that the parts are orthonormal, ordered, and multiply to x.
  void CheckSvd(const Tensor& x, bool full) {
    const Outputs parts = InvokeOpMultiOutput(Op::linalg_svd, x, full);
    ASSERT_TRUE(tracer.status().ok()) << tracer.status();
    const Tensor &u = parts[0], &s = parts[1], &vh = parts[2];
    const int64_t k = s.size(-1);
    EXPECT_EQ(u.size(-1), full ? x.size(-2) : k);
    EXPECT_EQ(vh.size(-2), full ? x.size(-1) : k);
    const Tensor scaled = Narrow(u, -1, 0, k) * InvokeOp(Op::unsqueeze, s, -2);
    EXPECT_LT(Largest(Matmul(scaled, Narrow(vh, -2, 0, k)) - x), 1e-11);
    EXPECT_LT(Largest(Matmul(Swap(u), u) - Eye(u.size(-1))), 1e-12);
    EXPECT_LT(Largest(Matmul(vh, Swap(vh)) - Eye(vh.size(-2))), 1e-12);
    EXPECT_EQ(Largest(Relu(Narrow(s, -1, 1, k - 1) - Narrow(s, -1, 0, k - 1))), 0);
  }
  std::string ErrorOf(Op op, const Tensor& x) {
    InvokeOpMultiOutput(op, x);
    const std::string message(tracer.status().message());
    tracer.ClearStatus();
    return message;
  }
  void ExpectNear(const Tensor& t, const std::vector<double>& expected) {
    const std::vector<double> values = Values(t);
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-11) << i;
  }
};

TEST_F(DecompositionsTest, SvdOfEverySize) {
  for (const bool full : {false, true}) {
    CheckSvd(Pattern({1, 1}), full);
    CheckSvd(Pattern({7, 4}), full);
    CheckSvd(Pattern({20, 33}), full);
    CheckSvd(Pattern({70, 66}), full);
    CheckSvd(Pattern({2, 3, 4, 3}), full);
  }
}

TEST_F(DecompositionsTest, SvdWithoutFullRankOrWithExtremeValues) {
  const Tensor x = Pattern({6, 3});
  CheckSvd(Cat({x, x}, 1), true);  // every column twice
  CheckSvd(Zeros({4, 3}, ElementType::kF64), true);
  const Outputs small = InvokeOpMultiOutput(Op::linalg_svd, x * Scalar(1e-200), false);
  const Outputs usual = InvokeOpMultiOutput(Op::linalg_svd, x, false);
  EXPECT_LT(Largest(small[1] * Scalar(1e200) - usual[1]), 1e-12);
}

TEST_F(DecompositionsTest, SvdOfMatricesWithoutElements) {
  const Tensor x = Zeros({2, 0, 3}, ElementType::kF32);
  const Outputs full = InvokeOpMultiOutput(Op::linalg_svd, x, true);
  EXPECT_EQ(ToString(full[0].shape(), false), "f32[2,0,0]");
  EXPECT_EQ(ToString(full[1].shape(), false), "f32[2,0]");
  EXPECT_EQ(Values(full[2]), (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1}));
  const Outputs some = InvokeOpMultiOutput(Op::svd, x);
  EXPECT_EQ(ToString(some[2].shape(), false), "f32[2,3,0]");
}

TEST_F(DecompositionsTest, SvdHasTorchsErrors) {
  const Tensor whole = InvokeOp(Op::ones_like, Zeros({2, 2}, ElementType::kS64));
  EXPECT_EQ(ErrorOf(Op::linalg_svd, whole),
            "aten::linalg_svd: linalg.svd: Expected a floating point or complex tensor as input. Got Long");
  EXPECT_EQ(ErrorOf(Op::svd, Zeros({2, 2}, ElementType::kF16)),
            "aten::svd: \"linalg_svd_cpu\" not implemented for 'Half'");
  EXPECT_EQ(ErrorOf(Op::svd, Vector({1})),
            "aten::svd: linalg.svd: input should have at least 2 dimensions, but has 1 dimensions instead");
  EXPECT_EQ(ErrorOf(Op::linalg_svd, Vector({1})),
            "aten::linalg_svd: linalg.svd: The input tensor A must have at least 2 dimensions.");
}

// Values of torch 1.13. Squares of the vectors, since their signs are arbitrary.
TEST_F(DecompositionsTest, SvdHasTorchsGradients) {
  Tensor tall = F64({3, 2}, {1, 2, 3, 4, 5, 7});
  tall.set_requires_grad(true);
  const Outputs parts = InvokeOpMultiOutput(Op::linalg_svd, tall, false);
  const Tensor loss = Sum(parts[0] * parts[0] * F64({3, 2}, {0, 1, 2, 3, 4, 5})) + Sum(parts[1] * F64({2}, {1, 3})) +
                      Sum(parts[2] * parts[2] * F64({2, 2}, {1, 2, 4, 7}));
  ASSERT_TRUE(loss.Backward().ok());
  ExpectNear(loss, {22.53649718426362});
  ExpectNear(tall.grad(), {-1.6300454519051013, 1.3526446684515239, 2.7251312262719196, -1.5309158826619935,
                           -0.29875445797325284, 1.3799485102327789});

  Tensor wide = F64({2, 3}, {1, 2, 5, 3, 4, 7});
  wide.set_requires_grad(true);
  const Outputs old = InvokeOpMultiOutput(Op::svd, wide);
  ASSERT_TRUE((Sum(old[2] * old[2] * F64({3, 2}, {0, 1, 2, 3, 4, 5})) + Sum(old[1])).Backward().ok());
  ExpectNear(wide.grad(), {0.592070295716178, -1.5573055947645895, 1.2253359645623427, -0.01873635302891319,
                           1.5042182067450476, 0.22692803991307664});

  wide.set_grad(Tensor());
  ASSERT_TRUE(Sum(InvokeOpMultiOutput(Op::svd, wide, true, /*compute_uv=*/false)[1]).Backward().ok());
  ExpectNear(wide.grad(), {-0.4730184616802732, -0.13718725156932388, 0.8703063787635266, 0.6558198599888394,
                           0.6048099227213787, 0.45178011091899406});
}

TEST_F(DecompositionsTest, QrOfBatchesAndLargeMatrices) {
  for (const char* mode : {"reduced", "complete"}) {
    for (const Tensor& x : {Pattern({2, 5, 3}), Pattern({3, 2, 4}), Pattern({80, 70})}) {
      const Outputs parts = InvokeOpMultiOutput(Op::linalg_qr, x, mode);
      ASSERT_TRUE(tracer.status().ok()) << tracer.status();
      EXPECT_LT(Largest(Matmul(parts[0], parts[1]) - x), 1e-11);
      EXPECT_LT(Largest(Matmul(Swap(parts[0]), parts[0]) - Eye(parts[0].size(-1))), 1e-12);
      EXPECT_EQ(Largest(InvokeOp(Op::tril, parts[1], -1)), 0);
    }
  }
  EXPECT_EQ(ToString(InvokeOpMultiOutput(Op::linalg_qr, Pattern({3, 2}), "r")[0].shape(), false), "f64[0]");
}

}  // namespace
}  // namespace hlokit::lazy
