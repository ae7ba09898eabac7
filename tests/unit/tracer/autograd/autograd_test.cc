// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

using AutogradTest = TracingTest;

TEST_F(AutogradTest, ATensorUsedTwiceGetsBothGradients) {
  Tensor x = Vector({1, 2, 3});
  x.set_requires_grad(true);
  ASSERT_TRUE(Sum(x * x + x).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{3, 5, 7}));
}

TEST_F(AutogradTest, WhatFollowsAnErrorIsUndefinedAndComesToItsEnd) {
  Tensor sum = Vector({1, 2}) + Vector({1, 2, 3});
  ASSERT_FALSE(sum.defined());
  const std::string first(tracer.status().message());
  EXPECT_TRUE(sum.sizes().empty());
  EXPECT_EQ(sum.numel(), 1);
  EXPECT_EQ(sum.device(), nullptr);
  EXPECT_FALSE(sum.set_requires_grad(true).requires_grad());
  EXPECT_TRUE(sum.is_leaf());
  sum.set_grad(Vector({1}));
  EXPECT_FALSE(sum.grad().defined());
  EXPECT_FALSE(sum.Detach().defined());
  EXPECT_FALSE(sum.to(ElementType::kS32).defined());
  EXPECT_FALSE((sum * Vector({1, 2})).defined());
  EXPECT_FALSE(SumToSize(sum, {1}).defined());
  EXPECT_FALSE(sum.Backward().ok());
  EXPECT_FALSE(sum.ToLiteral().ok());
  EXPECT_EQ(tracer.status().message(), first);
}

TEST_F(AutogradTest, AGradientHasTheSizesOfItsTensor) {
  Tensor x = Vector({1, 2});
  x.set_requires_grad(true);
  const Tensor y = x * x;
  EXPECT_EQ(y.Backward(Vector({1, 1, 1})).message(),
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of "
            "torch.Size([2]).");
  EXPECT_TRUE(y.Backward(Vector({1, 10})).ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{2, 40}));
}

TEST_F(AutogradTest, GradientsAccumulateOverCalls) {
  Tensor x = Vector({1, 2});
  x.set_requires_grad(true);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Sum(x * Scalar(3)).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{6, 6}));
}

TEST_F(AutogradTest, ASecondBackwardNeedsRetainGraph) {
  Tensor x = Vector({1, 2});
  x.set_requires_grad(true);
  const Tensor y = Sum(x * x);
  ASSERT_TRUE(y.Backward(Tensor(), /*retain_graph=*/true).ok());
  ASSERT_TRUE(y.Backward().ok());
  const absl::Status again = y.Backward();
  EXPECT_EQ(again.message().substr(0, 52), "Trying to backward through the graph a second time (");
}

TEST_F(AutogradTest, NothingIsNotedWithoutGrad) {
  Tensor x = Vector({1});
  x.set_requires_grad(true);
  const NoGradGuard no_grad;
  EXPECT_FALSE((x * x).requires_grad());
  EXPECT_EQ(Sum(x * x).Backward().message(), "element 0 of tensors does not require grad and does not have a grad_fn");
}

TEST_F(AutogradTest, DetachCutsTheGraph) {
  Tensor x = Vector({2});
  x.set_requires_grad(true);
  ASSERT_TRUE(Sum(x * (x * x).Detach()).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{4}));
}

TEST_F(AutogradTest, OnlyAScalarStartsByItself) {
  Tensor x = Vector({1, 2});
  x.set_requires_grad(true);
  EXPECT_EQ((x * x).Backward().message(), "grad can be implicitly created only for scalar outputs");
  ASSERT_TRUE((x * x).Backward(Vector({1, 10})).ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{2, 40}));
}

TEST_F(AutogradTest, AnOpInPlaceRemembersTheValueBefore) {
  Tensor x = Vector({-2, 0.25, 3});
  x.set_requires_grad(true);
  const Tensor y = x * Scalar(2);
  y.clamp_(-1, 1);
  const Tensor w = y.clone();
  y.mul_(w).slice(0, 0, 2).add_(1);
  EXPECT_EQ(Values(y), (std::vector<double>{2, 1.25, 1}));
  ASSERT_TRUE(Sum(y).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{0, 2, 0}));
}

TEST_F(AutogradTest, AWriteThroughADetachedTensorIsSeenByViewsAndNotByDerivatives) {
  Tensor x = Vector({1, 2, 3});
  x.set_requires_grad(true);
  const Tensor y = x * Scalar(3);
  const Tensor view = y.slice(0, 0, 2), detached = view.detach();
  detached.add_(10);
  detached.select(0, 1).fill_(7);
  EXPECT_EQ(Values(y), (std::vector<double>{13, 7, 9}));
  EXPECT_EQ(Values(view), (std::vector<double>{13, 7}));
  EXPECT_FALSE(detached.requires_grad());
  ASSERT_TRUE(Sum(y).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{3, 3, 3}));
  x.detach().fill_(5);  // the way to write a leaf
  EXPECT_TRUE(tracer.status().ok());
  EXPECT_EQ(Values(x), (std::vector<double>{5, 5, 5}));
}

TEST_F(AutogradTest, AnAliasIsOneValueWithItsBase) {
  Tensor x = Vector({-1, 2});
  x.set_requires_grad(true);
  const Tensor y = x * Scalar(2);
  const Tensor alias = y.alias();
  alias.relu_();
  ASSERT_TRUE(Sum(y * alias).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{0, 16}));
}

TEST_F(AutogradTest, ALeafMayNotBeWrittenInPlace) {
  Tensor x = Vector({1});
  x.set_requires_grad(true);
  WriteInPlace(x, x * Scalar(2));
  EXPECT_EQ(tracer.status().message(), "a leaf Variable that requires grad is being used in an in-place operation.");
}

TEST_F(AutogradTest, AnArgumentWrittenAfterItsUseIsAnError) {
  Tensor x = Vector({1});
  x.set_requires_grad(true);
  const Tensor y = x * Scalar(1.0);
  const Tensor z = Exp(y) * y;
  WriteInPlace(y, y + Scalar(1));
  const absl::Status status = Sum(z).Backward();
  EXPECT_NE(status.message().find("modified by an inplace operation"), std::string::npos) << status.message();
}

TEST_F(AutogradTest, AGraphThatWasWrittenInPlaceGoesAwayWithItsTensors) {
  const int64_t before = tracer.device()->live_count();
  {
    Tensor w = Vector({1, 2});
    w.set_requires_grad(true);
    Tensor x = Vector({3, 4});
    const Tensor y = w * x;
    WriteInPlace(x, x + y);  // x holds the former y = f(x), and y its old value
    EXPECT_TRUE(x.requires_grad());
  }
  EXPECT_EQ(tracer.device()->live_count(), before);
}

TEST_F(AutogradTest, WritesThroughViewsAreDifferentiated) {
  Tensor x = F32({2, 2}, {1, 2, 3, 4});
  x.set_requires_grad(true);
  const Tensor y = x * Scalar(1.0);
  const Tensor row = Select(y, 0, 1);
  WriteInPlace(row, row * Scalar(10));
  ASSERT_TRUE(Sum(y * y).Backward().ok());
  EXPECT_EQ(Values(y), (std::vector<double>{1, 2, 30, 40}));
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{2, 4, 600, 800}));
}

TEST_F(AutogradTest, AViewSeesWritesToItsBaseAndToItsSiblings) {
  const Tensor x = F32({2, 2}, {1, 2, 3, 4});
  const Tensor transposed = T(x);
  const Tensor row = Select(x, 0, 0);
  WriteInPlace(row, Vector({8, 9}));
  EXPECT_EQ(Values(transposed), (std::vector<double>{8, 3, 9, 4}));
  WriteInPlace(x, x * Scalar(2));
  EXPECT_EQ(Values(row), (std::vector<double>{16, 18}));
}

TEST_F(AutogradTest, AnElementThatIsOverwrittenHasGradientZero) {
  Tensor x = Vector({1, 2, 3});
  x.set_requires_grad(true);
  const Tensor y = x * Scalar(2);
  y.copy_(Vector({7, 8, 9}));
  ASSERT_TRUE(Sum(y).Backward().ok()) << tracer.status().message();
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{0, 0, 0}));

  Tensor source = Vector({5});
  source.set_requires_grad(true);
  const Tensor z = Vector({1, 2, 3}) * Scalar(2);
  z.copy_(source);
  ASSERT_TRUE(Sum(z).Backward().ok()) << tracer.status().message();
  EXPECT_EQ(Values(source.grad()), (std::vector<double>{3}));
}

TEST_F(AutogradTest, ClampHasNoGradientAtNaN) {
  Tensor x = Vector({std::nanf(""), 1, -3, 5});
  x.set_requires_grad(true);
  ASSERT_TRUE(Sum(x.clamp(Scalar(-1), Scalar(2))).Backward().ok());
  ASSERT_TRUE(Sum(x.clamp_min(Scalar(-1))).Backward().ok());
  ASSERT_TRUE(Sum(x.clamp_max(Scalar(2))).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{0, 3, 1, 1}));
}

TEST_F(AutogradTest, ALongChainNeedsNoDeepStack) {
  Tensor x = Vector({1});
  x.set_requires_grad(true);
  Tensor y = x;
  for (int i = 0; i < 20000; ++i) y = y + Scalar(0);
  ASSERT_TRUE(Sum(y).Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{1}));
}

}  // namespace
}  // namespace hlokit::lazy
