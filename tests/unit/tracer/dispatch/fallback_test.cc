// SPDX-License-Identifier: Apache-2.0
// Ops without a lowering run on the host, and counters report them.
#include <set>
#include <string>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

using FallbackTest = TracingTest;

TEST_F(FallbackTest, ARunOnTheHostIsCountedUnderTheOpsOwnName) {
  const Tensor x = Vector({0, 2, 0, 3});
  EXPECT_EQ(Values(lazy::InvokeOp(Op::nonzero, x)), (std::vector<double>{1, 3}));
  EXPECT_EQ(Counter("aten::nonzero"), 1);
  EXPECT_EQ(Values(lazy::InvokeOp(Op::masked_select, x, Gt(x, 1))), (std::vector<double>{2, 3}));
  EXPECT_EQ(Counter("aten::masked_select"), 1);
  EXPECT_EQ(Values(lazy::InvokeOp(Op::masked_scatter, x, Gt(x, 1), Vector({8, 9}))), (std::vector<double>{0, 8, 0, 9}));
  EXPECT_EQ(Counter("aten::masked_scatter"), 1);
}

TEST_F(FallbackTest, WhatIsLoweredCountsNothingThere) {
  Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  x.set_requires_grad(true);
  ASSERT_TRUE(Sum(Softmax(Matmul(x, T(x)), 1) + Relu(Mean(x, {1}, true))).Backward().ok());
  ASSERT_TRUE(tracer.MarkStep().ok());
  tracer.PublishCounters();
  for (const std::string& name : tracer.metrics().counter_names()) EXPECT_FALSE(name.starts_with("aten::")) << name;
}

TEST_F(FallbackTest, AFallbackComputesWhatItNeedsAndTheStepGoesOn) {
  const Tensor y = Vector({1, -1, 2}) * Scalar(3);
  const Tensor positive = lazy::InvokeOp(Op::masked_select, y, Gt(y, 0));
  EXPECT_EQ(positive.numel(), 2);  // its size is known immediately
  const Tensor sum = Sum(positive);
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(Values(sum), (std::vector<double>{9}));
}

TEST_F(FallbackTest, ItemIsAFetchAndCountedAsSuch) {
  ASSERT_TRUE(Sum(Vector({1, 2})).Item().ok());
  EXPECT_EQ(Counter("aten::_local_scalar_dense"), 1);
}

TEST_F(FallbackTest, TheSetIsThatOfTheTable) {
  std::set<std::string> names;
  for (size_t i = 0; i < kOpCount; ++i) {
    if ((InfoOf(static_cast<Op>(i)).flags & kFallback) != 0) names.emplace(SymbolOf(static_cast<Op>(i)));
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"aten::masked_select", "aten::nonzero", "aten::masked_scatter",
                                   "aten::_local_scalar_dense", "aten::is_nonzero", "aten::argwhere", "aten::bincount",
                                   "aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"}));
}

}  // namespace
}  // namespace hlokit::lazy
