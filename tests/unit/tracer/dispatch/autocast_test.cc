// SPDX-License-Identifier: Apache-2.0
// Mixed precision: the types in which ops compute, and what is converted once.
#include "tracer/dispatch/autocast.h"

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class AutocastTest : public TracingTest {
 protected:
  Tensor x = F32({2, 2}, {1, 2, 3, 4});
  Tensor w = F32({2, 2}, {0.5, -1, 2, 0.25});
};

TEST_F(AutocastTest, EveryRowNamesAnOp) { EXPECT_TRUE(UnknownAutocastNames().empty()) << UnknownAutocastNames()[0]; }

TEST_F(AutocastTest, OpsComputeInTheTypeOfTheirPolicy) {
  const AutocastGuard guard(ElementType::kBF16);
  const Tensor y = Linear(x, w);
  EXPECT_EQ(y.dtype(), ElementType::kBF16);
  EXPECT_EQ(Matmul(x, w).dtype(), ElementType::kBF16);
  EXPECT_EQ(InvokeOp(Op::softmax_int, y, -1).dtype(), ElementType::kF32);
  EXPECT_EQ(Cat({x, y}, 0).dtype(), ElementType::kF32);
  EXPECT_EQ(Cat({y, y}, 0).dtype(), ElementType::kBF16);
  EXPECT_EQ((x + y).dtype(), ElementType::kF32);
  EXPECT_EQ(Tanh(y).dtype(), ElementType::kBF16);
  EXPECT_EQ(Matmul(To(x, ElementType::kF64), To(w, ElementType::kF64)).dtype(), ElementType::kF64);
  {
    const AutocastGuard off(std::nullopt);
    EXPECT_EQ(Linear(x, w).dtype(), ElementType::kF32);
  }
  EXPECT_EQ(Linear(x, w).dtype(), ElementType::kBF16);
  EXPECT_TRUE(tracer.status().ok()) << tracer.status().message();
}

TEST_F(AutocastTest, ParametersAreConvertedOnceAndGetGradientsInTheirType) {
  w.set_requires_grad(true);
  Tensor loss;
  const int64_t before = Counter("xla::_to_copy");
  {
    const AutocastGuard guard(ElementType::kBF16);
    loss = Sum(Linear(Linear(x, w), w));
  }
  EXPECT_EQ(Counter("xla::_to_copy") - before, 2);  // x and w
  ASSERT_TRUE(loss.Backward().ok());
  ASSERT_TRUE(w.grad().defined());
  EXPECT_EQ(w.grad().dtype(), ElementType::kF32);
  // d sum((x w') w') / dw, exact in bf16: h = x w' = [-1.5 2.5; -2.5 7].
  EXPECT_EQ(Values(w.grad()), (std::vector<double>{-4 + 4 * 2.5, 9.5 + 6 * 2.5, -4 - 4 * 0.75, 9.5 - 6 * 0.75}));
}

}  // namespace
}  // namespace hlokit::lazy
