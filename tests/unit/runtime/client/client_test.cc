// SPDX-License-Identifier: Apache-2.0
// The client: devices with queues, asynchronous execution, transfers, errors, serialized executables.
#include "runtime/client/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "parser/formats/parser.h"

namespace hlokit::runtime {
namespace {

constexpr char kDouble[] = R"(HloModule double, entry_computation_layout={(f32[2]{0})->(f32[2]{0})}
ENTRY double {
  p0 = f32[2]{0} parameter(0)
  sum = f32[2]{0} add(p0, p0)
  ROOT t = (f32[2]{0}) tuple(sum)
}
)";
// Does not end within the limit on its iterations.
constexpr char kEndless[] = R"(HloModule endless
body { ROOT p = (s32[]) parameter(0) }
condition {
  p = (s32[]) parameter(0)
  ROOT t = pred[] constant(true)
}
ENTRY main {
  p0 = s32[] parameter(0)
  start = (s32[]) tuple(p0)
  ROOT loop = (s32[]) while(start), condition=condition, body=body
}
)";

class ClientTest : public ::testing::Test {
 protected:
  static ClientOptions Options() {
    ClientOptions options;
    options.num_devices = 3;
    options.evaluator.num_threads = 1;
    options.evaluator.limits.max_loop_iterations = 1000;
    return options;
  }
  std::unique_ptr<Module> Parse(const char* text) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    EXPECT_TRUE(module.ok()) << module.status().message();
    return *std::move(module);
  }
  std::shared_ptr<DeviceBuffer> Upload(int device, ElementType type, std::vector<int64_t> dims, const void* data) {
    Literal value = Literal::Zeros(context->shapes.Array(type, dims));
    std::memcpy(value.data(), data, value.size_bytes());
    return client.TransferToDevice(client.devices()[device].get(), std::move(value), context);
  }
  std::shared_ptr<DeviceBuffer> Pair(int device, float a, float b) {
    const float values[] = {a, b};
    return Upload(device, ElementType::kF32, {2}, values);
  }
  std::shared_ptr<DeviceBuffer> Run(int device, const std::shared_ptr<Executable>& executable,
                                    std::shared_ptr<DeviceBuffer> argument) {
    Device* d = client.devices()[device].get();
    std::shared_ptr<DeviceBuffer> result = d->CreatePendingBuffer();
    client.Execute(d, executable, {std::move(argument)}, {result});
    return result;
  }
  float First(const std::shared_ptr<DeviceBuffer>& buffer) {
    absl::StatusOr<Literal> value = client.TransferFromDevice(buffer);
    EXPECT_TRUE(value.ok()) << value.status().message();
    float first = 0;
    if (value.ok()) std::memcpy(&first, value->data(), sizeof(first));
    return first;
  }

  Metrics metrics;
  Client client{Options(), &metrics};
  std::shared_ptr<Context> context = std::make_shared<Context>();
};

// A value is generated when something first reads it: once, for all readers; none for programs that are not run.
TEST_F(ClientTest, GeneratesValuesWhenRead) {
  int generated = 0;
  const Shape shape = context->shapes.Array(ElementType::kF32, {2});
  const auto generate = [&] {
    ++generated;
    Literal value = Literal::Zeros(shape);
    value.values<float>()[0] = 3;
    return value;
  };
  Device* const device = client.devices()[0].get();
  const std::shared_ptr<DeviceBuffer> unread = client.TransferWhenRead(device, shape, generate, context);
  const std::shared_ptr<DeviceBuffer> read = client.TransferWhenRead(device, shape, generate, context);
  EXPECT_EQ(generated, 0);
  std::thread other([&] { EXPECT_TRUE(read->Wait().ok()); });
  const absl::StatusOr<Literal> value = client.TransferFromDevice(read);
  other.join();
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->values<float>()[0], 3);
  EXPECT_EQ(generated, 1);
  EXPECT_EQ(read->ungenerated_bytes(), 0);
  EXPECT_EQ(unread->ungenerated_bytes(), 8);
}

// Values that are not there yet count against the limit on memory before they are generated.
TEST_F(ClientTest, GeneratedArgumentsAreUnderTheMemoryLimit) {
  ClientOptions options = Options();
  options.evaluator.limits.max_bytes = 1 << 20;
  for (const bool deferred : {false, true}) {
    options.defer_executions = deferred;
    Metrics counted;
    Client limited(options, &counted);
    absl::StatusOr<std::shared_ptr<Executable>> executable = limited.Compile(Parse(kDouble));
    ASSERT_TRUE(executable.ok()) << executable.status().message();
    Device* const device = limited.devices()[0].get();
    const Shape shape = context->shapes.Array(ElementType::kF32, {int64_t{1} << 40});
    const auto fail = [&]() -> Literal {
      ADD_FAILURE() << "generated";
      return Literal();
    };
    const auto result = device->CreatePendingBuffer();
    limited.Execute(device, *executable, {limited.TransferWhenRead(device, shape, fail, context)}, {result});
    const absl::Status status = result->Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status.message();
    (void)device->Synchronize();
  }
}

TEST_F(ClientTest, ExecutionIsAsynchronousAndInOrder) {
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  // The device is blocked: results of its executions are pending buffers nevertheless.
  std::promise<void> go;
  client.devices()[0]->Enqueue([held = go.get_future().share()] {
    held.wait();
    return absl::OkStatus();
  });
  std::shared_ptr<DeviceBuffer> value = Pair(0, 1, 2);
  for (int i = 0; i < 5; ++i) value = Run(0, *executable, value);
  EXPECT_EQ(metrics.metric("ExecuteTime"), std::nullopt);
  go.set_value();
  EXPECT_EQ(First(value), 32);
  EXPECT_TRUE(client.devices()[0]->Synchronize().ok());
  EXPECT_EQ(metrics.metric("ExecuteTime")->total_samples, 5);
}

TEST_F(ClientTest, AShortProgramRunsOnTheThreadThatStartsIt) {
  const auto executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Device* const device = client.devices()[1].get();
  const auto runs_here = [&](int64_t expected_ns, ExecuteThread thread) {
    (*executable)->set_expected_ns(expected_ns);
    std::promise<std::thread::id> ran;
    client.Execute(
        device, *executable, {Pair(1, 1, 2)}, {device->CreatePendingBuffer()}, {},
        [&](const absl::Status& status) {
          EXPECT_TRUE(status.ok());
          ran.set_value(std::this_thread::get_id());
        },
        thread);
    const std::thread::id id = ran.get_future().get();
    EXPECT_TRUE(device->Synchronize().ok());
    return id == std::this_thread::get_id();
  };
  constexpr int64_t kMicrosecond = 1000, kSecond = 1'000'000'000;
  EXPECT_TRUE(runs_here(kMicrosecond, ExecuteThread::kCallerIfShort));
  EXPECT_FALSE(runs_here(kMicrosecond, ExecuteThread::kDevice));
  EXPECT_FALSE(runs_here(kSecond, ExecuteThread::kCallerIfShort));
  // A program that waits for its argument does not hold its caller.
  const std::shared_ptr<DeviceBuffer> pending = device->CreatePendingBuffer();
  (*executable)->set_expected_ns(kMicrosecond);
  std::atomic<bool> done{false};
  client.Execute(
      device, *executable, {pending}, {device->CreatePendingBuffer()}, {}, [&](const absl::Status&) { done = true; },
      ExecuteThread::kCallerIfShort);
  EXPECT_FALSE(done);
  pending->Fail(absl::CancelledError("not needed"));
  EXPECT_FALSE(device->Synchronize().ok());
  EXPECT_TRUE(done);
}

TEST_F(ClientTest, DevicesRunSideBySide) {
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok());
  std::promise<void> go;
  client.devices()[0]->Enqueue([held = go.get_future().share()] {
    held.wait();
    return absl::OkStatus();
  });
  // Device 1 does not wait for device 0; an argument may be a value of another device.
  EXPECT_EQ(First(Run(1, *executable, Pair(1, 3, 0))), 6);
  EXPECT_EQ(First(Run(2, *executable, Run(1, *executable, Pair(1, 3, 0)))), 12);
  go.set_value();
  for (const std::unique_ptr<Device>& device : client.devices()) EXPECT_TRUE(device->Synchronize().ok());
  EXPECT_EQ(client.devices()[2]->name(), "CPU:2");
}

TEST_F(ClientTest, AnErrorSurfacesAtTheNextWaitAndOnceAtTheNextSync) {
  absl::StatusOr<std::shared_ptr<Executable>> endless = client.Compile(Parse(kEndless));
  ASSERT_TRUE(endless.ok()) << endless.status().message();
  const int32_t zero = 0;
  const std::shared_ptr<DeviceBuffer> result = Run(0, *endless, Upload(0, ElementType::kS32, {}, &zero));
  EXPECT_FALSE(client.TransferFromDevice(result).ok());
  // Executions that need that value fail with its error; others run.
  EXPECT_EQ(Run(0, *endless, result)->Wait(), result->Wait());
  EXPECT_FALSE(client.devices()[0]->Synchronize().ok());
  EXPECT_TRUE(client.devices()[0]->Synchronize().ok());
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok());
  EXPECT_EQ(First(Run(0, *executable, Pair(0, 1, 1))), 2);
}

TEST_F(ClientTest, AStoredProgramIsTheSameProgram) {
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok());
  const std::string text = client.Serialize(**executable);
  const std::shared_ptr<Executable> loaded = client.DeserializeExecutable(SerializedExecutable(text));
  EXPECT_EQ(First(Run(0, loaded, Pair(0, 5, 0))), 10);
  EXPECT_EQ(client.Serialize(*loaded), text);
  EXPECT_EQ(metrics.metric("CompileTime")->total_samples, 1);
}

TEST_F(ClientTest, AStoredProgramThatIsNoneFailsWhenItRuns) {
  const std::shared_ptr<Executable> loaded = client.DeserializeExecutable(SerializedExecutable("not HLO"));
  EXPECT_FALSE(loaded->Prepare().ok());
  EXPECT_FALSE(client.TransferFromDevice(Run(0, loaded, Pair(0, 5, 0))).ok());
}

TEST_F(ClientTest, LargeValuesAreFreedByTheDevice) {
  // More than the device defers before it is woken.
  const std::vector<int64_t> dims = {static_cast<int64_t>(DeferredDeallocator::kMaxPendingBytes / 8)};
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok());
  EXPECT_EQ(First(Run(0, *executable, Pair(0, 1, 1))), 2);  // its thread lives
  std::weak_ptr<Context> watched;  // the first: the device may be freeing it while the last is discarded
  for (int i = 0; i < 4; ++i) {
    auto own = std::make_shared<Context>();
    if (i == 0) watched = own;
    Literal value = Literal::Zeros(own->shapes.Array(ElementType::kF32, dims));
    client.devices()[0]->CreateBuffer(std::move(value), std::move(own));
  }
  EXPECT_EQ(First(Run(0, *executable, Pair(0, 2, 1))), 4);
  EXPECT_TRUE(watched.expired());
}

// ---- donation ----

constexpr char kChain[] = R"(HloModule chain, entry_computation_layout={(f32[65536]{0}, f32[65536]{0})->(f32[65536]{0})}
ENTRY chain {
  p0 = f32[65536]{0} parameter(0)
  p1 = f32[65536]{0} parameter(1)
  a = f32[65536]{0} multiply(p0, p1)
  b = f32[65536]{0} subtract(a, p1)
  ROOT t = (f32[65536]{0}) tuple(b)
}
)";

class DonationTest : public ClientTest {
 protected:
  static constexpr int64_t kCount = 65536;

  std::shared_ptr<DeviceBuffer> Numbers(float from) {
    std::vector<float> values(kCount);
    for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<float>(i % 97);
    return Upload(0, ElementType::kF32, {kCount}, values.data());
  }
  std::shared_ptr<DeviceBuffer> RunDonating(const std::shared_ptr<Executable>& executable,
                                            std::vector<std::shared_ptr<DeviceBuffer>> arguments,
                                            absl::Span<const int64_t> donated) {
    Device* d = client.devices()[0].get();
    std::shared_ptr<DeviceBuffer> result = d->CreatePendingBuffer();
    client.Execute(d, executable, std::move(arguments), {result}, donated);
    return result;
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
};

TEST_F(DonationTest, TheResultIsInTheBytesOfTheArgument) {
  absl::StatusOr<std::shared_ptr<Executable>> chain = client.Compile(Parse(kChain));
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  const std::shared_ptr<DeviceBuffer> kept = RunDonating(*chain, {Numbers(1), Numbers(2)}, {});
  ASSERT_TRUE(client.devices()[0]->Synchronize().ok());
  const int64_t peak = (*chain)->statistics().peak_bytes;
  EXPECT_GE(peak, kCount * 4);
  std::shared_ptr<DeviceBuffer> p0 = Numbers(1);
  const std::byte* const bytes = p0->literal().data();
  const std::shared_ptr<DeviceBuffer> result = RunDonating(*chain, {std::move(p0), Numbers(2)}, {0});
  ASSERT_TRUE(result->Wait().ok());
  EXPECT_EQ(result->literal().data(), bytes);
  EXPECT_EQ(std::memcmp(result->literal().data(), kept->literal().data(), kCount * 4), 0);
  // Allocates no array for the result.
  EXPECT_LT((*chain)->statistics().peak_bytes, 1024);
}

TEST_F(DonationTest, WhatOthersNeedIsNotOverwritten) {
  // The argument is a result itself, and read after the sum.
  absl::StatusOr<std::shared_ptr<Executable>> executable =
      client.Compile(Parse(R"(HloModule both, entry_computation_layout={(f32[2]{0})->(f32[2]{0}, f32[2]{0}, f32[2]{0})}
ENTRY both {
  p0 = f32[2]{0} parameter(0)
  sum = f32[2]{0} add(p0, p0)
  product = f32[2]{0} multiply(sum, p0)
  ROOT t = (f32[2]{0}, f32[2]{0}, f32[2]{0}) tuple(p0, sum, product)
}
)"));
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Device* d = client.devices()[0].get();
  const std::vector<std::shared_ptr<DeviceBuffer>> results = {d->CreatePendingBuffer(), d->CreatePendingBuffer(),
                                                              d->CreatePendingBuffer()};
  client.Execute(d, *executable, {Pair(0, 3, 4)}, results, {0});
  EXPECT_EQ(First(results[0]), 3);
  EXPECT_EQ(First(results[1]), 6);
  EXPECT_EQ(First(results[2]), 18);
}

TEST_F(DonationTest, UseAfterDonationIsAnError) {
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok());
  const std::shared_ptr<DeviceBuffer> pair = Pair(0, 1, 2);
  EXPECT_EQ(First(RunDonating(*executable, {pair}, {0})), 2);
  const std::string gone = "Buffer has been deleted or donated.";
  EXPECT_EQ(Message(client.TransferFromDevice(pair).status()), gone);
  EXPECT_EQ(Message(pair->Wait()), gone);
  EXPECT_EQ(Message(RunDonating(*executable, {pair}, {})->Wait()),
            "Invalid buffer passed to Execute() as argument 0 to replica 0: " + gone);
  EXPECT_EQ(Message(RunDonating(*executable, {pair}, {0})->Wait()),
            "Invalid buffer passed to Execute() as argument 0 to replica 0: " + gone);
  EXPECT_FALSE(client.devices()[0]->Synchronize().ok());
}

TEST_F(DonationTest, ABufferIsDonatedOnceInACall) {
  absl::StatusOr<std::shared_ptr<Executable>> chain = client.Compile(Parse(kChain));
  ASSERT_TRUE(chain.ok());
  const std::shared_ptr<DeviceBuffer> p = Numbers(1), q = Numbers(2);
  EXPECT_EQ(Message(RunDonating(*chain, {p, p}, {0, 1})->Wait()),
            "Attempt to donate the same buffer twice in Execute() (second use: flattened argument 1, replica 0).");
  EXPECT_EQ(Message(RunDonating(*chain, {q, q}, {0})->Wait()),
            "Attempt to use a buffer that was previously donated in the same call to Execute() (second use: flattened "
            "argument 1, replica 0).");
  EXPECT_FALSE(client.devices()[0]->Synchronize().ok());
}

TEST_F(DonationTest, UsesThatBeganBeforeGoOn) {
  absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(Parse(kDouble));
  ASSERT_TRUE(executable.ok());
  std::shared_ptr<DeviceBuffer> pair = Pair(0, 1, 2);
  const std::byte* const bytes = pair->literal().data();
  std::shared_ptr<DeviceBuffer> before = Run(0, *executable, pair);
  std::optional<BufferUse> use(std::in_place, pair);
  const std::shared_ptr<DeviceBuffer> result = RunDonating(*executable, {pair}, {0});
  EXPECT_EQ(First(before), 2);
  EXPECT_EQ(client.TransferFromDevice(*use)->values<float>()[1], 2);
  use.reset();  // the execution waits for it
  EXPECT_EQ(First(result), 2);
  EXPECT_EQ(result->literal().data(), bytes);
}

}  // namespace
}  // namespace hlokit::runtime
