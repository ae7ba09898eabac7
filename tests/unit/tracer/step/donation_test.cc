// SPDX-License-Identifier: Apache-2.0
// Steps that reuse the buffers they overwrite, and conditions that prevent it.
#include <thread>

#include "tests/unit/tracer/tracing.h"
#include "tracer/capture/capture.h"

namespace hlokit::lazy {
namespace {

class StepDonationTest : public TracingTest {
 protected:
  using TracingTest::TracingTest;

  static constexpr int64_t kCount = 4096;

  Tensor All(float value) { return F32({kCount}, std::vector<float>(kCount, value)); }
  const std::byte* BytesOf(const Tensor& t) {
    EXPECT_TRUE(tracer.Wait().ok());
    return t.impl()->data->buffer->literal().data();
  }
};

TEST_F(StepDonationTest, AStepWritesIntoTheBufferItOverwrites) {
  const Tensor w = All(1), g = All(2);
  const std::byte* const bytes = BytesOf(w);
  for (int i = 0; i < 3; ++i) {
    WriteInPlace(w, Add(w, g, 0.5));
    ASSERT_TRUE(tracer.MarkStep().ok());
    EXPECT_EQ(BytesOf(w), bytes);
  }
  EXPECT_EQ(Values(w)[kCount - 1], 4);
  EXPECT_EQ(Values(g)[0], 2);
}

TEST_F(StepDonationTest, SoDoesACapturedStep) {
  const Tensor w = All(1), g = All(2);
  CapturedFunction step = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    WriteInPlace(w, w + x[0]);
    return {Sum(w)};
  });
  const std::byte* const bytes = BytesOf(w);
  for (int i = 1; i <= 4; ++i) {
    absl::StatusOr<Tensors> sum = step({g});
    ASSERT_TRUE(sum.ok()) << sum.status().message();
    EXPECT_EQ(Values((*sum)[0])[0], (1 + 2 * i) * kCount);
    EXPECT_EQ(BytesOf(w), bytes);
  }
}

TEST_F(StepDonationTest, AValueThatTwoTensorsHoldIsKept) {
  const Tensor x = Vector({1, 2}), w = Vector({0, 0});
  WriteInPlace(w, x);
  WriteInPlace(x, x + Scalar(1));
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(Values(w), (std::vector<double>{1, 2}));
  EXPECT_EQ(Values(x), (std::vector<double>{2, 3}));
}

TEST_F(StepDonationTest, ACapturedStepKeepsAValueThatSomebodyElseHoldsToo) {
  const Tensor w = All(1), copy = All(0), g = All(2);
  CapturedFunction step = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    WriteInPlace(w, w + x[0]);
    return {Sum(w)};
  });
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step({g}).ok());
  WriteInPlace(copy, w);
  ASSERT_TRUE(step({g}).ok());
  EXPECT_EQ(Values(copy)[0], 7);
  EXPECT_EQ(Values(w)[0], 9);
}

TEST_F(StepDonationTest, AFetchSeesTheValueAsItWas) {
  const Tensor w = All(0);
  std::thread fetches([&] {
    for (int i = 0; i < 50; ++i) {
      const std::vector<double> values = Values(w);
      ASSERT_EQ(values.size(), static_cast<size_t>(kCount));
      for (double v : values) ASSERT_EQ(v, values[0]);
    }
  });
  for (int i = 0; i < 50; ++i) {
    WriteInPlace(w, w + Scalar(1));
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  fetches.join();
  EXPECT_EQ(Values(w)[0], 50);
}

class NoDonationTest : public StepDonationTest {
 protected:
  static TracerOptions Kept() {
    TracerOptions options = SmallOptions();
    options.donate = false;
    return options;
  }
  NoDonationTest() : StepDonationTest(Kept()) {}
};

TEST_F(NoDonationTest, BuffersAreKeptWhereTheOptionSaysSo) {
  const Tensor w = All(1);
  const std::shared_ptr<runtime::DeviceBuffer> before = w.impl()->data->buffer;
  WriteInPlace(w, w + Scalar(1));
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_NE(BytesOf(w), before->literal().data());
  EXPECT_TRUE(before->Wait().ok());
}

}  // namespace
}  // namespace hlokit::lazy
