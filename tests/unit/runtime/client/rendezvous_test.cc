// SPDX-License-Identifier: Apache-2.0
// Programs with collectives on several devices of a client: their rendezvous, donated arguments, and the state of both
// when a device does not arrive, fails or aborts.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "absl/strings/str_replace.h"
#include "parser/formats/parser.h"
#include "runtime/client/client.h"

namespace hlokit::runtime {
namespace {

// w - (sum of all g), in the bytes of w.
constexpr char kUpdate[] =
    R"(HloModule update, entry_computation_layout={(f32[65536]{0}, f32[65536]{0})->(f32[65536]{0})}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY update {
  w = f32[65536]{0} parameter(0)
  g = f32[65536]{0} parameter(1)
  all = f32[65536]{0} all-reduce(g), replica_groups={}, to_apply=sum
  new = f32[65536]{0} subtract(w, all)
  ROOT t = (f32[65536]{0}) tuple(new)
}
)";
// As kUpdate, with an endless loop after it.
constexpr char kEndlessCollective[] =
    R"(HloModule endless, entry_computation_layout={(f32[65536]{0}, f32[65536]{0})->(f32[65536]{0})}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
body {
  p = (f32[65536]{0}) parameter(0)
  x = f32[65536]{0} get-tuple-element(p), index=0
  y = f32[65536]{0} add(x, x)
  ROOT t = (f32[65536]{0}) tuple(y)
}
condition {
  p = (f32[65536]{0}) parameter(0)
  ROOT t = pred[] constant(true)
}
ENTRY main {
  w = f32[65536]{0} parameter(0)
  g = f32[65536]{0} parameter(1)
  all = f32[65536]{0} all-reduce(g), replica_groups={}, to_apply=sum
  new = f32[65536]{0} subtract(w, all)
  start = (f32[65536]{0}) tuple(new)
  ROOT loop = (f32[65536]{0}) while(start), condition=condition, body=body
}
)";

// As kUpdate, with arguments in another order, one more, and one more result.
constexpr char kScaledUpdate[] = R"(HloModule scaled
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY scaled {
  g = f32[65536]{0} parameter(0)
  scale = f32[] parameter(1)
  w = f32[65536]{0} parameter(2)
  scales = f32[65536]{0} broadcast(scale), dimensions={}
  scaled = f32[65536]{0} multiply(g, scales)
  all = f32[65536]{0} all-reduce(scaled), replica_groups={}, to_apply=sum
  new = f32[65536]{0} subtract(w, all)
  twice = f32[] add(scale, scale)
  ROOT t = (f32[], f32[65536]{0}) tuple(twice, new)
}
)";
// As kUpdate, with another collective after it.
constexpr char kTwoCollectives[] = R"(HloModule two
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY two {
  w = f32[65536]{0} parameter(0)
  g = f32[65536]{0} parameter(1)
  all = f32[65536]{0} all-reduce(g), replica_groups={}, to_apply=sum
  again = f32[65536]{0} all-reduce(all), replica_groups={}, to_apply=sum
  new = f32[65536]{0} subtract(w, again)
  ROOT t = (f32[65536]{0}) tuple(new)
}
)";

class RendezvousTest : public ::testing::Test {
 protected:
  static constexpr int64_t kCount = 65536;
  static constexpr int kDevices = 3;

  static ClientOptions Options() {
    ClientOptions options;
    options.num_devices = kDevices;
    options.pipeline = "";
    options.evaluator.num_threads = 1;
    options.evaluator.limits.max_loop_iterations = 100;
    options.collective_timeout_seconds = 30;
    return options;
  }
  explicit RendezvousTest(const ClientOptions& options = Options()) : client(options, &metrics) {}

  std::shared_ptr<Executable> Program(const char* text) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    EXPECT_TRUE(module.ok()) << module.status().message();
    absl::StatusOr<std::shared_ptr<Executable>> executable = client.Compile(*std::move(module));
    EXPECT_TRUE(executable.ok()) << executable.status().message();
    return *executable;
  }
  Device* device(int i) { return client.devices()[static_cast<size_t>(i)].get(); }
  // Returns values in a separate context, which is freed with their memory.
  std::shared_ptr<DeviceBuffer> All(int i, float value) {
    auto context = std::make_shared<Context>();
    Literal literal = Literal::Zeros(context->shapes.Array(ElementType::kF32, {kCount}));
    std::vector<float> values(kCount, value);
    std::memcpy(literal.data(), values.data(), literal.size_bytes());
    return client.TransferToDevice(device(i), std::move(literal), std::move(context));
  }
  std::shared_ptr<DeviceBuffer> Run(int i, const std::shared_ptr<Executable>& executable,
                                    std::vector<std::shared_ptr<DeviceBuffer>> arguments,
                                    absl::Span<const int64_t> donated) {
    std::shared_ptr<DeviceBuffer> result = device(i)->CreatePendingBuffer();
    client.Execute(device(i), executable, std::move(arguments), {result}, donated);
    return result;
  }
  float Last(const std::shared_ptr<DeviceBuffer>& buffer) {
    absl::StatusOr<Literal> value = client.TransferFromDevice(buffer);
    EXPECT_TRUE(value.ok()) << value.status().message();
    return value.ok() ? value->values<float>()[kCount - 1] : 0;
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
  // Returns the error of each device's queue; all queues are empty then.
  std::vector<std::string> Errors() {
    std::vector<std::string> errors;
    for (const std::unique_ptr<Device>& d : client.devices()) errors.push_back(Message(d->Synchronize()));
    return errors;
  }

  Metrics metrics;
  Client client;
};

TEST_F(RendezvousTest, EachDevicesResultIsInTheBytesOfItsArgument) {
  const std::shared_ptr<Executable> update = Program(kUpdate);
  std::vector<std::shared_ptr<DeviceBuffer>> w;
  std::vector<const std::byte*> bytes;
  for (int d = 0; d < kDevices; ++d) {
    w.push_back(All(d, static_cast<float>(100 * d)));
    bytes.push_back(w.back()->literal().data());
  }
  for (int step = 0; step < 3; ++step) {
    for (int d = 0; d < kDevices; ++d) w[d] = Run(d, update, {w[d], All(d, static_cast<float>(d + 1))}, {0});
  }
  EXPECT_EQ(Errors(), std::vector<std::string>(kDevices));
  for (int d = 0; d < kDevices; ++d) {
    EXPECT_EQ(Last(w[d]), static_cast<float>(100 * d - 3 * (1 + 2 + 3)));
    EXPECT_EQ(w[d]->literal().data(), bytes[d]);
  }
  // Only the sums were allocated.
  EXPECT_LT(update->statistics().peak_bytes, kDevices * kCount * 4 + 1024);
}

TEST_F(RendezvousTest, DevicesMayGiveDifferentArguments) {
  const std::shared_ptr<Executable> update = Program(kUpdate);
  std::vector<std::shared_ptr<DeviceBuffer>> w, g, results;
  std::vector<const std::byte*> w_bytes, g_bytes;
  const std::vector<std::vector<int64_t>> given = {{}, {0}, {1}};
  for (int d = 0; d < kDevices; ++d) {
    w.push_back(All(d, 10));
    g.push_back(All(d, 1));
    w_bytes.push_back(w[d]->literal().data());
    g_bytes.push_back(g[d]->literal().data());
    results.push_back(Run(d, update, {w[d], g[d]}, given[d]));
  }
  EXPECT_EQ(Errors(), std::vector<std::string>(kDevices));
  for (int d = 0; d < kDevices; ++d) EXPECT_EQ(Last(results[d]), 7);
  EXPECT_NE(results[0]->literal().data(), w_bytes[0]);
  EXPECT_EQ(results[1]->literal().data(), w_bytes[1]);
  EXPECT_EQ(results[2]->literal().data(), g_bytes[2]);  // capacity becomes available once it was read
  // A value that was not donated is unchanged.
  EXPECT_EQ(Last(w[0]), 10);
  EXPECT_EQ(Last(w[2]), 10);
  EXPECT_EQ(Last(g[1]), 1);
}

TEST_F(RendezvousTest, AnArgumentThatAnotherDeviceReadsIsNotOverwritten) {
  // Device 1 needs the buffer for the same program and for a later one; it waits for device 0, which donates it.
  const std::shared_ptr<Executable> update = Program(kUpdate);
  const std::shared_ptr<DeviceBuffer> w = All(0, 10);
  const std::byte* const bytes = w->literal().data();
  std::vector<std::shared_ptr<DeviceBuffer>> results(kDevices), next(kDevices);
  for (int d : {1, 2, 0}) {
    const std::vector<int64_t> given = d == 0 ? std::vector<int64_t>{0} : std::vector<int64_t>{};
    results[d] = Run(d, update, {d == 2 ? All(d, 20) : w, All(d, 1)}, given);
    if (d == 1) next[d] = Run(d, update, {w, All(d, 2)}, {});
  }
  for (int d : {0, 2}) next[d] = Run(d, update, {results[d], All(d, 2)}, {0});
  EXPECT_EQ(Errors(), std::vector<std::string>(kDevices));
  EXPECT_EQ(Last(results[1]), 7);
  EXPECT_EQ(Last(next[0]), 1);
  EXPECT_EQ(Last(next[1]), 4);
  EXPECT_EQ(Last(next[2]), 11);
  EXPECT_NE(next[0]->literal().data(), bytes);
  EXPECT_EQ(Message(w->Wait()), Message(DeviceBuffer::DeletedError()));
}

TEST_F(RendezvousTest, AProgramThatFailsHasUsedUpWhatItWasGiven) {
  const std::shared_ptr<Executable> endless = Program(kEndlessCollective), update = Program(kUpdate);
  std::vector<std::shared_ptr<DeviceBuffer>> w, results;
  std::vector<std::weak_ptr<Context>> memory;
  for (int d = 0; d < kDevices; ++d) {
    w.push_back(All(d, 10));
    memory.push_back(w.back()->context());
    results.push_back(Run(d, endless, {w.back(), All(d, 1)}, {0}));
  }
  for (const std::string& error : Errors()) EXPECT_TRUE(error.find("trips") != std::string::npos) << error;
  for (int d = 0; d < kDevices; ++d) {
    EXPECT_TRUE(memory[d].expired());
    EXPECT_EQ(Message(w[d]->Wait()), Message(DeviceBuffer::DeletedError()));
    EXPECT_FALSE(results[d]->Wait().ok());
  }
  for (int d = 0; d < kDevices; ++d) results[d] = Run(d, update, {All(d, 5), All(d, 1)}, {0});
  for (int d = 0; d < kDevices; ++d) EXPECT_EQ(Last(results[d]), 2);
}

TEST_F(RendezvousTest, ADeviceThatCannotRunItsProgramDoesNotHoldUpTheOthersNorComeToTheirNextOneTwice) {
  const std::shared_ptr<Executable> update = Program(kUpdate);
  // Device 0 has a deleted argument, and continues with its second program before the others reach their first.
  const std::shared_ptr<DeviceBuffer> gone = All(0, 10);
  ASSERT_TRUE(gone->Donate());
  std::vector<std::shared_ptr<DeviceBuffer>> first(kDevices), second(kDevices);
  std::vector<std::weak_ptr<Context>> memory;
  first[0] = Run(0, update, {gone, All(0, 1)}, {1});
  second[0] = Run(0, update, {All(0, 10), All(0, 1)}, {0});
  EXPECT_FALSE(first[0]->Wait().ok());
  for (int d = 1; d < kDevices; ++d) {
    std::shared_ptr<DeviceBuffer> w = All(d, 10);
    memory.push_back(w->context());
    first[d] = Run(d, update, {std::move(w), All(d, 100)}, {0});
    second[d] = Run(d, update, {All(d, 10), All(d, 2)}, {0});
  }
  const std::string error =
      "Invalid buffer passed to Execute() as argument 0 to replica 0: " + Message(DeviceBuffer::DeletedError());
  // The others learn which device it was.
  std::vector<std::string> errors(kDevices, "device 0 failed: " + error);
  errors[0] = error;
  for (int d = 0; d < kDevices; ++d) {
    EXPECT_EQ(Last(second[d]), 5);
    EXPECT_EQ(Message(first[d]->Wait()), errors[static_cast<size_t>(d)]);
  }
  EXPECT_EQ(Errors(), errors);
  for (const std::weak_ptr<Context>& m : memory) EXPECT_TRUE(m.expired());
}

TEST_F(RendezvousTest, ADeviceThatCannotPrepareItsProgramEndsTheRound) {
  const std::shared_ptr<Executable> update = Program(kUpdate);
  const std::string elided = absl::StrReplaceAll(
      kUpdate,
      {{"  new = ", "  c = f32[65536]{0} constant({...})\n  new = "}, {"subtract(w, all)", "subtract(c, all)"}});
  const std::shared_ptr<Executable> loaded = client.DeserializeExecutable(SerializedExecutable(elided));
  std::vector<std::shared_ptr<DeviceBuffer>> first(kDevices), second(kDevices);
  for (int d = 0; d < kDevices; ++d) first[d] = Run(d, d == 1 ? loaded : update, {All(d, 10), All(d, 1)}, {});
  const std::string why = Message(first[1]->Wait());
  EXPECT_TRUE(why.find("is elided") != std::string::npos) << why;
  EXPECT_EQ(Errors(), (std::vector<std::string>{"device 1 failed: " + why, why, "device 1 failed: " + why}));
  for (int d = 0; d < kDevices; ++d) second[d] = Run(d, update, {All(d, 10), All(d, 1)}, {});
  for (int d = 0; d < kDevices; ++d) EXPECT_EQ(Last(second[d]), 7);
}

TEST_F(RendezvousTest, DevicesWithDifferentProgramsMeetAtTheirCollectives) {
  const std::shared_ptr<Executable> update = Program(kUpdate), scaled = Program(kScaledUpdate);
  for (const float scale : {2.0f, 3.0f}) {  // the second time they are known
    auto context = std::make_shared<Context>();
    Literal number = Literal::Zeros(context->shapes.Scalar(ElementType::kF32));
    number.values<float>()[0] = scale;
    std::vector<std::shared_ptr<DeviceBuffer>> results(kDevices);
    for (int d : {0, 2}) results[d] = Run(d, update, {All(d, static_cast<float>(10 * d)), All(d, 1)}, {0});
    std::shared_ptr<DeviceBuffer> twice = device(1)->CreatePendingBuffer();
    results[1] = device(1)->CreatePendingBuffer();
    client.Execute(device(1), scaled,
                   {All(1, 5), client.TransferToDevice(device(1), std::move(number), context), All(1, 100)},
                   {twice, results[1]}, {});
    EXPECT_EQ(Errors(), std::vector<std::string>(kDevices));
    const float sum = 1 + 5 * scale + 1;
    EXPECT_EQ(Last(results[0]), 0 - sum);
    EXPECT_EQ(Last(results[1]), 100 - sum);
    EXPECT_EQ(Last(results[2]), 20 - sum);
    EXPECT_EQ(client.TransferFromDevice(twice)->values<float>()[0], 2 * scale);
  }
}

TEST_F(RendezvousTest, DifferentProgramsGiveNothingBack) {
  const std::shared_ptr<Executable> update = Program(kUpdate), two = Program(kTwoCollectives);
  std::vector<std::shared_ptr<DeviceBuffer>> w, results;
  for (int d = 0; d < kDevices; ++d) {
    w.push_back(All(d, 10));
    results.push_back(Run(d, d == 1 ? two : update, {w.back(), All(d, 1)}, {0}));
  }
  EXPECT_EQ(Errors(), std::vector<std::string>(
                          kDevices,
                          "devices entered a collective with different programs: collective 2 of device 0 is "
                          "missing, that of device 1 is all-reduce of f32[65536]"));
  for (int d = 0; d < kDevices; ++d) EXPECT_EQ(Message(w[d]->Wait()), Message(DeviceBuffer::DeletedError()));
}

TEST_F(RendezvousTest, DevicesDrivenByThreadsOfTheirOwnReuseTheirMemoryEveryStep) {
  constexpr int kSteps = 20;
  const std::shared_ptr<Executable> update = Program(kUpdate);
  std::vector<std::thread> threads;
  for (int d = 0; d < kDevices; ++d) {
    threads.emplace_back([&, d] {
      std::shared_ptr<DeviceBuffer> w = All(d, 1000), g = All(d, 1);
      const std::byte* const bytes = w->literal().data();
      for (int step = 1; step <= kSteps; ++step) {
        std::shared_ptr<DeviceBuffer> next = Run(d, update, {w, g}, {0});
        // Reads of the old value may come at any time: it is available or deleted.
        const absl::StatusOr<Literal> old = client.TransferFromDevice(w);
        EXPECT_EQ(Message(old.status()), Message(DeviceBuffer::DeletedError()));
        w = std::move(next);
        if (step % 5 == 0) {
          EXPECT_EQ(Last(w), static_cast<float>(1000 - kDevices * step));
        }
      }
      EXPECT_TRUE(device(d)->Synchronize().ok());
      EXPECT_EQ(w->literal().data(), bytes);
    });
  }
  for (std::thread& t : threads) t.join();
}

class ImpatientTest : public RendezvousTest {
 protected:
  static ClientOptions Impatient() {
    ClientOptions options = Options();
    options.collective_timeout_seconds = 0.2;
    return options;
  }
  ImpatientTest() : RendezvousTest(Impatient()) {}
};

TEST_F(ImpatientTest, WhoeverGaveUpWaitingHasLostItsArguments) {
  const std::shared_ptr<Executable> update = Program(kUpdate);
  std::vector<std::shared_ptr<DeviceBuffer>> w;
  std::vector<std::weak_ptr<Context>> memory;
  for (int d : {0, 2}) {
    w.push_back(All(d, 10));
    memory.push_back(w.back()->context());
    EXPECT_FALSE(Run(d, update, {w.back(), All(d, 1)}, {0}) == nullptr);
  }
  const std::string error = "a program with collectives waited 0.2 s for device 1";
  EXPECT_EQ(Errors(), (std::vector<std::string>{error, "", error}));
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_TRUE(memory[i].expired());
    EXPECT_EQ(Message(w[i]->Wait()), Message(DeviceBuffer::DeletedError()));
  }
}

// Device 1 misses a round; the devices have time for the next one.
class LateDeviceTest : public RendezvousTest {
 protected:
  static ClientOptions OneSecond() {
    ClientOptions options = Options();
    options.collective_timeout_seconds = 1;
    return options;
  }
  LateDeviceTest() : RendezvousTest(OneSecond()) {
    for (int d = 0; d < kDevices; ++d) {
      w.push_back(All(d, 10));
      g.push_back(All(d, 1));
    }
    for (int d : {0, 2}) results[d] = Run(d, missed, {w[d], g[d]}, {});
    EXPECT_EQ(Errors(), (std::vector<std::string>{error, "", error}));
  }
  // Runs the next program on all devices.
  void RunNext() {
    for (int d = 0; d < kDevices; ++d) results[d] = Run(d, update, {w[d], g[d]}, {});
    for (int d = 0; d < kDevices; ++d) EXPECT_EQ(Last(results[d]), 7);
  }

  const std::string error = "a program with collectives waited 1 s for device 1";
  const std::shared_ptr<Executable> update = Program(kUpdate), missed = Program(kTwoCollectives);
  std::vector<std::shared_ptr<DeviceBuffer>> w, g, results = std::vector<std::shared_ptr<DeviceBuffer>>(kDevices);
};

TEST_F(LateDeviceTest, GetsTheErrorOfItsRoundAndTakesPartInTheNextOne) {
  const std::shared_ptr<DeviceBuffer> late = Run(1, missed, {w[1], g[1]}, {});
  RunNext();
  EXPECT_EQ(Message(late->Wait()), error);
  EXPECT_EQ(Errors(), (std::vector<std::string>{"", error, ""}));
  RunNext();
}

TEST_F(LateDeviceTest, GetsTheErrorOfItsRoundIfItsProgramDiffersBetweenTheCollectives) {
  const std::string other = absl::StrReplaceAll(kTwoCollectives, {{"subtract(w, again)", "add(w, again)"}});
  const std::shared_ptr<DeviceBuffer> late = Run(1, Program(other.c_str()), {w[1], g[1]}, {});
  RunNext();
  EXPECT_EQ(Message(late->Wait()), error);
  EXPECT_EQ(Errors(), (std::vector<std::string>{"", error, ""}));
}

TEST_F(LateDeviceTest, GetsTheErrorOfItsRoundIfItsProgramHasOtherCollectives) {
  const std::shared_ptr<DeviceBuffer> late = Run(1, update, {w[1], g[1]}, {});
  RunNext();
  EXPECT_EQ(Message(late->Wait()), error);
  EXPECT_EQ(Errors(), (std::vector<std::string>{"", error, ""}));
  RunNext();
}

TEST(DeviceSessionsTest, ADeviceOfTheNextSessionEndsRoundsThatWaitForIt) {
  Rendezvous rendezvous(2, /*timeout_seconds=*/1000);
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    interp::DonatedArguments given;
    return rendezvous.ArriveAndWait(0, Rendezvous::Program(), {}, &given).status();
  });
  rendezvous.NextSession(1);
  EXPECT_EQ(waiting.get(), absl::AbortedError("device 1 has ended"));
}

TEST(DeviceSessionsTest, ADeviceThatWaitsCanBeCanceled) {
  std::atomic<bool> cancel = false;
  Rendezvous rendezvous(2, /*timeout_seconds=*/1000, &cancel);
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    interp::DonatedArguments given;
    return rendezvous.ArriveAndWait(0, Rendezvous::Program(), {}, &given).status();
  });
  cancel = true;
  EXPECT_EQ(waiting.get(), absl::CancelledError("canceled while it waited for device 1"));
}

TEST(DeviceSessionsTest, ADeviceThatLeftEndsRoundsOfItsSessionOnly) {
  Rendezvous rendezvous(2, /*timeout_seconds=*/30);
  const Module module;
  Rendezvous::Program program;
  program.module = &module;
  program.run = [](auto, interp::DonatedArguments* given) {
    given->aliased_argument = {-1, -1};
    return std::vector<Literal>(2);
  };
  const auto arrive = [&](size_t device) {
    interp::DonatedArguments given;
    return rendezvous.ArriveAndWait(device, program, {}, &given).status();
  };
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] { return arrive(0); });
  rendezvous.Leave(1, "device 1 failed: no reason");
  EXPECT_EQ(waiting.get().message(), "device 1 failed: no reason");
  EXPECT_TRUE(absl::IsAborted(arrive(0)));
  // Device 1 begins the next session while device 0 is in the first.
  rendezvous.NextSession(1);
  waiting = std::async(std::launch::async, [&] { return arrive(1); });
  EXPECT_EQ(arrive(0).message(), "device 1 failed: no reason");
  rendezvous.NextSession(0);
  EXPECT_FALSE(absl::IsAborted(arrive(0)));
  EXPECT_FALSE(absl::IsAborted(waiting.get()));
}

}  // namespace
}  // namespace hlokit::runtime
