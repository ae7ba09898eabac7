// SPDX-License-Identifier: Apache-2.0
// Executions that run when a value is needed: which ones, in which order, and no others.
#include "runtime/client/deferred_executions.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "parser/formats/parser.h"
#include "runtime/client/client.h"

namespace hlokit::runtime {
namespace {

constexpr char kAddProgram[] = R"(HloModule add, entry_computation_layout={(f32[2]{0}, f32[2]{0})->(f32[2]{0})}
ENTRY add {
  p0 = f32[2]{0} parameter(0)
  p1 = f32[2]{0} parameter(1)
  sum = f32[2]{0} add(p0, p1)
  ROOT t = (f32[2]{0}) tuple(sum)
}
)";
constexpr char kSum[] = R"(HloModule sum, entry_computation_layout={(f32[2]{0})->(f32[2]{0})}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY sum {
  p0 = f32[2]{0} parameter(0)
  all = f32[2]{0} all-reduce(p0), replica_groups={}, to_apply=add
  ROOT t = (f32[2]{0}) tuple(all)
}
)";

class DeferredExecutionsTest : public ::testing::Test {
 protected:
  static ClientOptions Options(int devices) {
    ClientOptions options;
    options.num_devices = devices;
    options.pipeline = "";
    options.evaluator.num_threads = 1;
    options.defer_executions = true;
    return options;
  }
  explicit DeferredExecutionsTest(int devices = 1) : client(Options(devices), &metrics) {}

  std::shared_ptr<Executable> Program(const char* text) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    EXPECT_TRUE(module.ok()) << module.status().message();
    return *client.Compile(*std::move(module));
  }
  std::shared_ptr<DeviceBuffer> Pair(float a, float b, int device = 0) {
    const float values[] = {a, b};
    Literal value = Literal::Zeros(context->shapes.Array(ElementType::kF32, {2}));
    std::memcpy(value.data(), values, sizeof(values));
    return client.TransferToDevice(client.devices()[static_cast<size_t>(device)].get(), std::move(value), context);
  }
  std::shared_ptr<DeviceBuffer> Run(const std::shared_ptr<Executable>& executable,
                                    std::vector<std::shared_ptr<DeviceBuffer>> arguments,
                                    std::vector<int64_t> given = {}, int device = 0) {
    Device* const d = client.devices()[static_cast<size_t>(device)].get();
    std::shared_ptr<DeviceBuffer> result = d->CreatePendingBuffer();
    client.Execute(d, executable, std::move(arguments), {result}, given);
    return result;
  }
  float First(const std::shared_ptr<DeviceBuffer>& buffer) {
    absl::StatusOr<Literal> value = client.TransferFromDevice(buffer);
    EXPECT_TRUE(value.ok()) << value.status().message();
    return value.ok() ? value->values<float>()[0] : 0;
  }
  int64_t Runs() {
    for (const std::unique_ptr<Device>& d : client.devices()) EXPECT_TRUE(d->Synchronize().ok());
    return metrics.counter("ExecuteComputation").value_or(0) + metrics.counter("ExecuteReplicated").value_or(0);
  }

  Metrics metrics;
  std::shared_ptr<Context> context = std::make_shared<Context>();
  Client client;
};

TEST_F(DeferredExecutionsTest, OnlyWhatAValueNeedsRuns) {
  const std::shared_ptr<Executable> add = Program(kAddProgram);
  const std::shared_ptr<DeviceBuffer> a = Run(add, {Pair(1, 0), Pair(2, 0)});
  const std::shared_ptr<DeviceBuffer> b = Run(add, {Pair(10, 0), Pair(20, 0)});
  const std::shared_ptr<DeviceBuffer> c = Run(add, {a, a});
  const std::shared_ptr<DeviceBuffer> d = Run(add, {b, c});
  EXPECT_EQ(Runs(), 0);
  EXPECT_EQ(First(c), 6);
  EXPECT_EQ(Runs(), 2);
  EXPECT_EQ(First(a), 3);  // was computed on the way
  EXPECT_EQ(Runs(), 2);
  EXPECT_EQ(First(d), 36);
  EXPECT_EQ(Runs(), 4);
}

TEST_F(DeferredExecutionsTest, WhoeverReadsABufferRunsBeforeItIsGivenAway) {
  const std::shared_ptr<Executable> add = Program(kAddProgram);
  const std::shared_ptr<DeviceBuffer> w = Run(add, {Pair(1, 0), Pair(2, 0)});
  const std::shared_ptr<DeviceBuffer> before = Run(add, {w, Pair(100, 0)});
  const std::shared_ptr<DeviceBuffer> unrelated = Run(add, {Pair(7, 0), Pair(8, 0)});
  const std::shared_ptr<DeviceBuffer> after = Run(add, {w, Pair(1, 0)}, {0});
  EXPECT_EQ(First(after), 4);
  EXPECT_EQ(Runs(), 3);
  EXPECT_EQ(First(before), 103);
  EXPECT_EQ(Runs(), 3);
  EXPECT_EQ(First(unrelated), 15);
}

TEST_F(DeferredExecutionsTest, ALongChainOfStepsIsNoDeepRecursion) {
  const std::shared_ptr<Executable> add = Program(kAddProgram);
  std::shared_ptr<DeviceBuffer> w = Pair(0, 0);
  const std::shared_ptr<DeviceBuffer> one = Pair(1, 0);
  for (int i = 0; i < 20000; ++i) w = Run(add, {w, one}, {0});
  EXPECT_EQ(First(w), 20000);
}

TEST_F(DeferredExecutionsTest, AnErrorComesToWhoeverNeedsTheValue) {
  const std::shared_ptr<Executable> add = Program(kAddProgram);
  const std::shared_ptr<DeviceBuffer> gone = Pair(1, 0);
  ASSERT_TRUE(gone->Donate());
  const std::shared_ptr<DeviceBuffer> a = Run(add, {gone, Pair(2, 0)});
  const std::shared_ptr<DeviceBuffer> b = Run(add, {a, Pair(2, 0)});
  EXPECT_EQ(Runs(), 0);
  EXPECT_FALSE(b->Wait().ok());
  EXPECT_EQ(b->Wait(), a->Wait());
  EXPECT_FALSE(client.devices()[0]->Synchronize().ok());
}

TEST_F(DeferredExecutionsTest, AllThatIsHeldCanBeStarted) {
  const std::shared_ptr<Executable> add = Program(kAddProgram);
  const std::shared_ptr<DeviceBuffer> a = Run(add, {Pair(1, 0), Pair(2, 0)}), b = Run(add, {a, a}, {});
  client.StartDeferred();
  EXPECT_EQ(Runs(), 2);
  const std::shared_ptr<DeviceBuffer> c = Run(add, {b, b});
  EXPECT_EQ(Runs(), 2);
  EXPECT_EQ(First(c), 12);
}

TEST_F(DeferredExecutionsTest, ThreadsMayNeedValuesAtOnce) {
  const std::shared_ptr<Executable> add = Program(kAddProgram);
  std::vector<std::shared_ptr<DeviceBuffer>> values = {Pair(1, 0)};
  for (int i = 0; i < 100; ++i) values.push_back(Run(add, {values.back(), values[0]}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = static_cast<size_t>(t); i < values.size(); i += 7) {
        EXPECT_EQ(First(values[i]), static_cast<float>(i + 1));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

class DeferredExecutionsOfDevicesTest : public DeferredExecutionsTest {
 protected:
  DeferredExecutionsOfDevicesTest() : DeferredExecutionsTest(2) {}
};

TEST_F(DeferredExecutionsOfDevicesTest, TheFirstValueThatIsNeededSetsAllDevicesGoing) {
  const std::shared_ptr<Executable> sum = Program(kSum);
  const std::shared_ptr<DeviceBuffer> a = Run(sum, {Pair(1, 0, 0)}, {0}, 0);
  EXPECT_EQ(Runs(), 0);
  const std::shared_ptr<DeviceBuffer> b = Run(sum, {Pair(2, 0, 1)}, {0}, 1);
  EXPECT_EQ(Runs(), 0);
  EXPECT_EQ(First(b), 3);
  EXPECT_EQ(Runs(), 2);
  // From here on they run immediately: one waits for the other.
  const std::shared_ptr<DeviceBuffer> c = Run(sum, {a}, {0}, 0), d = Run(sum, {b}, {0}, 1);
  EXPECT_EQ(Runs(), 4);
  EXPECT_EQ(First(c), 6);
}

}  // namespace
}  // namespace hlokit::runtime
