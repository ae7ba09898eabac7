// SPDX-License-Identifier: Apache-2.0
// Short programs run on the caller's thread: what callers see of it.
#include <atomic>
#include <cfenv>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr char kDivide[] = R"(module { func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %z = stablehlo.divide %x, %y : tensor<2xf32>
  return %z : tensor<2xf32> } })";

constexpr char kCount[] = R"(module { func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%i = %zero) : tensor<i32> cond {
    %less = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }
  return %r : tensor<i32> } })";

struct Started {
  PJRT_Buffer* result = nullptr;
  PJRT_Event* done = nullptr;
};

Started Start(PJRT_LoadedExecutable* executable, const std::vector<PJRT_Buffer*>& arguments) {
  auto options = Zeroed<PJRT_ExecuteOptions>();
  Started started;
  PJRT_Buffer* const* const lists[] = {arguments.data()};
  PJRT_Buffer** const outputs[] = {&started.result};
  auto args = Garbage<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = executable;
  args.options = &options;
  args.argument_lists = lists;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = outputs;
  args.device_complete_events = &started.done;
  args.execute_device = nullptr;
  EXPECT_CALL_OK(Api().PJRT_LoadedExecutable_Execute(&args));
  return started;
}

bool IsReady(PJRT_Event* event) {
  auto args = Garbage<PJRT_Event_IsReady_Args>();
  args.event = event;
  EXPECT_CALL_OK(Api().PJRT_Event_IsReady(&args));
  return args.is_ready;
}

// Metrics of PyTorch/XLA count on it: those of a run are there when its call has returned.
TEST(ShortProgramTest, TheFirstRunIsOverWhenItsCallReturns) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kDivide, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2}, {2});
  const Started started = Start(executable, {x, x});
  EXPECT_TRUE(IsReady(started.done));
  Destroy(started.done);
  Destroy(started.result);
  Destroy(x);
  Destroy(executable);
}

// Whether it is there when the call of a longer one returns depends on the time that earlier runs took (ClientTest).
TEST(ShortProgramTest, HasTheSameResultInEachRun) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kDivide, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2}, {2});
  PJRT_Buffer* const y = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {3, 3}, {2});
  for (int run = 0; run < 100; ++run) {
    const Started started = Start(executable, {x, y});
    EXPECT_TRUE(Await(started.done).ok());
    std::vector<float> z;
    EXPECT_TRUE(ReadBuffer(started.result, &z).ok());
    EXPECT_EQ(z, (std::vector<float>{1.0F / 3, 2.0F / 3}));
    Destroy(started.result);
  }
  for (PJRT_Buffer* buffer : {x, y}) Destroy(buffer);
  Destroy(executable);
}

TEST(ShortProgramTest, ValuesDoNotDependOnTheCallersRounding) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kDivide, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 1}, {2});
  PJRT_Buffer* const y = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {3, 10}, {2});
  for (int run = 0; run < 4; ++run) {
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    const Started started = Start(executable, {x, y});
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(Await(started.done).ok());
    std::vector<float> z;
    EXPECT_TRUE(ReadBuffer(started.result, &z).ok());
    EXPECT_EQ(z, (std::vector<float>{1.0F / 3, 0.1F}));
    Destroy(started.result);
  }
  for (PJRT_Buffer* buffer : {x, y}) Destroy(buffer);
  Destroy(executable);
}

// The order of a device's programs is that of the calls, whichever thread runs them.
TEST(ShortProgramTest, RunsAfterALongOneThatWasStartedBefore) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kCount, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  PJRT_Buffer* const few = MakeBuffer<int32_t>(client.get(), client.devices()[0], kS32, {1}, {});
  PJRT_Buffer* const many = MakeBuffer<int32_t>(client.get(), client.devices()[0], kS32, {300000}, {});
  const Started first = Start(executable, {many});
  const Started second = Start(executable, {few});
  const Started third = Start(executable, {few});
  EXPECT_TRUE(Await(third.done).ok());
  EXPECT_TRUE(IsReady(first.done));
  EXPECT_TRUE(IsReady(second.done));
  for (const Started& started : {first, second}) Destroy(started.done);
  for (const Started& started : {first, second, third}) Destroy(started.result);
  for (PJRT_Buffer* buffer : {few, many}) Destroy(buffer);
  Destroy(executable);
}

TEST(ShortProgramTest, ThreadsThatUseOneDeviceGetTheirOwnResults) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kDivide, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto v = static_cast<float>(t);
      PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {v, 2 * v}, {2});
      PJRT_Buffer* const y = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 1}, {2});
      for (int run = 0; run < 200; ++run) {
        const Started started = Start(executable, {x, y});
        EXPECT_TRUE(Await(started.done).ok());
        std::vector<float> z;
        EXPECT_TRUE(ReadBuffer(started.result, &z).ok());
        EXPECT_EQ(z, (std::vector<float>{v, 2 * v}));
        Destroy(started.result);
      }
      for (PJRT_Buffer* buffer : {x, y}) Destroy(buffer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Destroy(executable);
}

}  // namespace
}  // namespace hlokit::pjrt_test
