// SPDX-License-Identifier: Apache-2.0
// Threads that trace concurrently on one device, with steps, fetches and compilations among them.
#include <thread>
#include <vector>

#include "tests/unit/tracer/tracing.h"

namespace hlokit::lazy {
namespace {

class ThreadsTest : public TracingTest {};

TEST_F(ThreadsTest, TraceAtOnceOnOneDevice) {
  constexpr int kThreads = 4, kRounds = 12;
  std::vector<double> fetched(kThreads), grads(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const DeviceGuard on(tracer.device());
      Tensor w = Full({4}, 1.0 + t, ElementType::kF32);
      for (int round = 0; round < kRounds; ++round) {
        Tensor x = Full({4}, 0.5, ElementType::kF32);
        x.set_requires_grad(true);
        const Tensor y = x.mul(w).add(2).relu().sum();
        EXPECT_TRUE(y.Backward().ok());
        w.add_(x.grad().mul(0));  // keeps its value
        if (round % 3 == t % 3) {
          EXPECT_TRUE(tracer.MarkStep().ok());
        }
        if (round % 4 == 0) {
          const absl::StatusOr<Scalar> item = y.Item();
          if (item.ok()) fetched[t] = item->ToDouble();
        }
        if (round + 1 == kRounds) {
          const absl::StatusOr<Literal> value = x.grad().ToLiteral();
          if (value.ok()) grads[t] = static_cast<double>(value->values<float>()[3]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(tracer.Wait().ok());
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(fetched[t], 4 * (0.5 * (1 + t) + 2)) << t;
    EXPECT_EQ(grads[t], 1 + t) << t;
  }
}

}  // namespace
}  // namespace hlokit::lazy
