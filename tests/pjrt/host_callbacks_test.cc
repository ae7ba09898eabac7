// SPDX-License-Identifier: Apache-2.0
// Callbacks by send and receive, as JAX lowers pure_callback and its relatives for a TPU.
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

// Sends x over channel 1, and returns twice what channel 2 answers.
constexpr char kAsk[] = R"(module {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %t = stablehlo.create_token : !stablehlo.token
    %s = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
        is_host_transfer = true}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
    %r:2 = "stablehlo.recv"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>,
        is_host_transfer = true}> : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
    %y = stablehlo.add %r#0, %r#0 : tensor<3xf32>
    return %y : tensor<3xf32>
  }
})";

// The host's side on one device: answers with the values plus `offset`, in two chunks and from another thread.
struct Host {
  float offset = 0;
  bool refuses = false;  // the send
  bool ends_early = false;
  std::function<void()> when_sent;      // called by the device's thread
  std::function<void()> before_answer;  // called by another thread
  std::mutex mutex;
  std::vector<float> sent;
  std::vector<std::thread> threads;

  static PJRT_Error* Send(PJRT_Chunk* chunk, PJRT_CallbackError* make_error, size_t total, bool done, void* user_arg) {
    auto& host = *static_cast<Host*>(user_arg);
    EXPECT_EQ(chunk->size, total);
    EXPECT_TRUE(done);
    {
      const std::lock_guard<std::mutex> lock(host.mutex);
      host.sent.resize(total / sizeof(float));
      std::memcpy(host.sent.data(), chunk->data, total);
    }
    chunk->deleter(chunk->data, chunk->deleter_arg);
    if (host.when_sent) host.when_sent();
    if (!host.refuses) return nullptr;
    const std::string text = "the host is closed";
    return (*make_error)(static_cast<PJRT_Error_Code>(kFailedPrecondition), text.data(), text.size());
  }
  static void Receive(PJRT_CopyToDeviceStream* stream, void* user_arg) {
    auto& host = *static_cast<Host*>(user_arg);
    host.threads.emplace_back([&host, stream] { host.Answer(stream); });
  }
  void Answer(PJRT_CopyToDeviceStream* stream) {
    if (before_answer) before_answer();
    auto total = Garbage<PJRT_CopyToDeviceStream_TotalBytes_Args>();
    total.stream = stream;
    EXPECT_CALL_OK(Api().PJRT_CopyToDeviceStream_TotalBytes(&total));
    EXPECT_EQ(total.total_bytes, 12);
    auto granule = Garbage<PJRT_CopyToDeviceStream_GranuleSize_Args>();
    granule.stream = stream;
    EXPECT_CALL_OK(Api().PJRT_CopyToDeviceStream_GranuleSize(&granule));
    EXPECT_EQ(4 % granule.granule_size_in_bytes, 0);
    std::vector<float> values;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      for (const float v : sent) values.push_back(v + offset);
    }
    for (size_t begin = 0; begin < values.size(); begin += 2) {
      if (ends_early && begin != 0) break;
      auto* const data = static_cast<float*>(std::malloc(2 * sizeof(float)));
      const size_t count = std::min<size_t>(2, values.size() - begin);
      std::memcpy(data, values.data() + begin, count * sizeof(float));
      PJRT_Chunk chunk = {data, count * sizeof(float), [](void* bytes, void*) { std::free(bytes); }, nullptr};
      auto add = Garbage<PJRT_CopyToDeviceStream_AddChunk_Args>();
      add.stream = stream;
      add.chunk = &chunk;
      EXPECT_CALL_OK(Api().PJRT_CopyToDeviceStream_AddChunk(&add));
      EXPECT_TRUE(Await(add.transfer_complete).ok());
      auto current = Garbage<PJRT_CopyToDeviceStream_CurrentBytes_Args>();
      current.stream = stream;
      EXPECT_CALL_OK(Api().PJRT_CopyToDeviceStream_CurrentBytes(&current));
      EXPECT_EQ(current.current_bytes, static_cast<int64_t>((begin + count) * sizeof(float)));
    }
    if (!ends_early) {
      PJRT_Chunk more = {nullptr, 1, nullptr, nullptr};
      auto add = Garbage<PJRT_CopyToDeviceStream_AddChunk_Args>();
      add.stream = stream;
      add.chunk = &more;
      EXPECT_EQ(Take(Api().PJRT_CopyToDeviceStream_AddChunk(&add)).code, kInvalidArgument);
    }
    auto destroy = Garbage<PJRT_CopyToDeviceStream_Destroy_Args>();
    destroy.stream = stream;
    EXPECT_CALL_OK(Api().PJRT_CopyToDeviceStream_Destroy(&destroy));
  }
  ~Host() {
    for (std::thread& thread : threads) thread.join();
  }
};

// Runs the program on all devices, each with its host. `channel`: that of the sends, as the call says.
Result Ask(PJRT_LoadedExecutable* executable, const std::vector<PJRT_Buffer*>& arguments, std::vector<Host>& hosts,
           std::vector<std::vector<float>>* results, int64_t channel = 1) {
  const size_t devices = arguments.size();
  std::vector<PJRT_SendCallbackInfo> sends;
  std::vector<PJRT_RecvCallbackInfo> receives;
  for (size_t d = 0; d < devices; ++d) {
    sends.push_back({channel, &hosts[d], Host::Send});
    receives.push_back({2, &hosts[d], Host::Receive});
  }
  std::vector<PJRT_SendCallbackInfo*> send_lists;
  std::vector<PJRT_RecvCallbackInfo*> receive_lists;
  std::vector<PJRT_Buffer* const*> argument_lists;
  std::vector<PJRT_Buffer*> outputs(devices);
  std::vector<PJRT_Buffer**> output_lists;
  std::vector<PJRT_Event*> events(devices);
  for (size_t d = 0; d < devices; ++d) {
    send_lists.push_back(&sends[d]);
    receive_lists.push_back(&receives[d]);
    argument_lists.push_back(&arguments[d]);
    output_lists.push_back(&outputs[d]);
  }
  auto options = Zeroed<PJRT_ExecuteOptions>();
  options.send_callbacks = send_lists.data();
  options.recv_callbacks = receive_lists.data();
  options.num_send_ops = 1;
  options.num_recv_ops = 1;
  options.use_major_to_minor_data_layout_for_callbacks = true;
  auto args = Garbage<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = executable;
  args.options = &options;
  args.argument_lists = argument_lists.data();
  args.num_devices = devices;
  args.num_args = 1;
  args.output_lists = output_lists.data();
  args.device_complete_events = events.data();
  args.execute_device = nullptr;
  Result all = Take(Api().PJRT_LoadedExecutable_Execute(&args));
  if (!all.ok()) return all;
  for (size_t d = 0; d < devices; ++d) {
    const Result result = Await(events[d]);
    if (all.ok()) all = result;
    results->emplace_back();
    if (result.ok()) {
      EXPECT_TRUE(ReadBuffer(outputs[d], &results->back()).ok());
    }
    Destroy(outputs[d]);
  }
  return all;
}

TEST(HostCallbacksTest, EachDeviceAsksItsHost) {
  const ClientScope client(4);
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(), kAsk, "mlir", CompileOptionsOf(4, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  std::vector<PJRT_Buffer*> arguments;
  for (size_t d = 0; d < 4; ++d) {
    const auto v = static_cast<float>(10 * d);
    arguments.push_back(MakeBuffer<float>(client.get(), client.devices()[d], kF32, {v, v + 1, v + 2}, {3}));
  }
  for (int run = 0; run < 3; ++run) {
    std::vector<Host> hosts(4);
    for (size_t d = 0; d < 4; ++d) hosts[d].offset = static_cast<float>(d) + 0.5F;
    std::vector<std::vector<float>> results;
    const Result ran = Ask(executable, arguments, hosts, &results);
    ASSERT_TRUE(ran.ok()) << ran.message;
    for (size_t d = 0; d < 4; ++d) {
      const float v = static_cast<float>(10 * d), o = hosts[d].offset;
      EXPECT_EQ(hosts[d].sent, (std::vector<float>{v, v + 1, v + 2}));
      EXPECT_EQ(results[d], (std::vector<float>{2 * (v + o), 2 * (v + 1 + o), 2 * (v + 2 + o)}));
    }
  }
  for (PJRT_Buffer* buffer : arguments) Destroy(buffer);
  Destroy(executable);
}

// Sends the sum of x over both devices to each device's host, and returns what it answers.
constexpr char kAskAboutSum[] = R"(module {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }) : (tensor<3xf32>) -> tensor<3xf32>
    %t = stablehlo.create_token : !stablehlo.token
    %s = "stablehlo.send"(%sum, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
        is_host_transfer = true}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
    %r:2 = "stablehlo.recv"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>,
        is_host_transfer = true}> : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
    return %r#0 : tensor<3xf32>
  }
})";

// Two executables of the same program, each with callbacks of its own: no device runs one for the other.
TEST(HostCallbacksTest, ExecutablesWithCallbacksDoNotStandInForEachOther) {
  const ClientScope client(2, {{}, {{"max_seconds", 1}}});
  PJRT_LoadedExecutable* executables[2] = {};
  std::vector<PJRT_Buffer*> arguments;
  for (size_t d = 0; d < 2; ++d) {
    const Result compiled = Compile(client.get(), kAskAboutSum, "mlir", CompileOptionsOf(2, 1), &executables[d]);
    ASSERT_TRUE(compiled.ok()) << compiled.message;
    const auto v = static_cast<float>(10 * d);
    arguments.push_back(MakeBuffer<float>(client.get(), client.devices()[d], kF32, {v, v + 1, v + 2}, {3}));
  }
  // One part of each: both wait for the other part of their own.
  std::vector<Result> ran(2);
  std::vector<std::thread> threads;
  for (size_t d = 0; d < 2; ++d) {
    threads.emplace_back([&, d] {
      std::vector<std::vector<PJRT_Buffer*>> results;
      ran[d] = Execute(executables[d], {{arguments[d]}}, &results, {}, client.devices()[d]);
      if (results[0][0] != nullptr) Destroy(results[0][0]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(ran[0].message.find("waited 1 s for device 1"), std::string::npos) << ran[0].message;
  EXPECT_NE(ran[1].message.find("waited 1 s for device 0"), std::string::npos) << ran[1].message;
  for (PJRT_Buffer* buffer : arguments) Destroy(buffer);
  for (PJRT_LoadedExecutable* executable : executables) Destroy(executable);
}

TEST(HostCallbacksTest, ErrorsOfCallbacksAreThoseOfTheRun) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kAsk, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  const std::vector<PJRT_Buffer*> arguments = {
      MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3}, {3})};
  std::vector<std::vector<float>> results;
  {
    std::vector<Host> hosts(1);
    hosts[0].refuses = true;
    const Result ran = Ask(executable, arguments, hosts, &results);
    EXPECT_FALSE(ran.ok());
    EXPECT_NE(ran.message.find("the host is closed"), std::string::npos) << ran.message;
  }
  {
    std::vector<Host> hosts(1);
    hosts[0].ends_early = true;
    const Result ran = Ask(executable, arguments, hosts, &results);
    EXPECT_FALSE(ran.ok());
    EXPECT_NE(ran.message.find("after 8 of 12 bytes"), std::string::npos) << ran.message;
  }
  {
    std::vector<Host> hosts(1);
    const Result ran = Ask(executable, arguments, hosts, &results, /*channel=*/7);
    EXPECT_FALSE(ran.ok());
    EXPECT_NE(ran.message.find("no callback for sends on channel 1"), std::string::npos) << ran.message;
  }
  std::vector<Host> hosts(1);
  results.clear();
  EXPECT_TRUE(Ask(executable, arguments, hosts, &results).ok());
  EXPECT_EQ(results[0], (std::vector<float>{2, 4, 6}));
  Destroy(arguments[0]);
  Destroy(executable);
}

constexpr char kDouble[] = R"(module {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %y = stablehlo.add %x, %x : tensor<3xf32>
    return %y : tensor<3xf32>
  }
})";

// A program and its argument on one device.
struct OtherProgram {
  PJRT_LoadedExecutable* executable = nullptr;
  PJRT_Device* device = nullptr;
  PJRT_Buffer* argument = nullptr;

  OtherProgram(const ClientScope& client, PJRT_Device* on) : device(on) {
    const std::string options = CompileOptionsOf(1, 1, /*spmd=*/false, /*portable=*/true);
    const Result compiled = Compile(client.get(), kDouble, "mlir", options, &executable);
    EXPECT_TRUE(compiled.ok()) << compiled.message;
    argument = MakeBuffer<float>(client.get(), device, kF32, {1, 2, 3}, {3});
  }
  ~OtherProgram() {
    Destroy(argument);
    Destroy(executable);
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  Result Run(std::vector<float>* values) const {
    std::vector<std::vector<PJRT_Buffer*>> results;
    const Result result = Execute(executable, {{argument}}, &results, {}, device);
    if (!result.ok()) return result;
    const Result read = ReadBuffer(results[0][0], values);
    Destroy(results[0][0]);
    return read;
  }
};

TEST(HostCallbacksTest, ProgramsForTheWaitingDeviceAreRefused) {
  const ClientScope client(2);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kAsk, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  const std::vector<PJRT_Buffer*> arguments = {
      MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3}, {3})};
  const OtherProgram same(client, client.devices()[0]), other(client, client.devices()[1]);
  std::vector<std::vector<float>> results;
  std::vector<float> doubled, unused;
  Result on_same, on_other, itself;
  {
    std::vector<Host> hosts(1);
    hosts[0].when_sent = [&] {
      on_same = same.Run(&unused);
      on_other = other.Run(&doubled);
      std::vector<std::vector<PJRT_Buffer*>> outputs;
      itself = Execute(executable, {{arguments[0]}}, &outputs);
    };
    const Result ran = Ask(executable, arguments, hosts, &results);
    EXPECT_TRUE(ran.ok()) << ran.message;
  }
  EXPECT_EQ(on_same.code, kFailedPrecondition);
  EXPECT_NE(on_same.message.find("device 0, which waits until the callback returns"), std::string::npos)
      << on_same.message;
  EXPECT_EQ(itself.code, kFailedPrecondition);
  EXPECT_TRUE(on_other.ok()) << on_other.message;
  EXPECT_EQ(doubled, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(results[0], (std::vector<float>{2, 4, 6}));
  // After the run, the thread may run anything.
  EXPECT_TRUE(same.Run(&doubled).ok());
  Destroy(arguments[0]);
  Destroy(executable);
}

// On another thread a callback is not known to be one: its run gives up.
TEST(HostCallbacksTest, WaitsForACallbackAsLongAsTheLimitsSay) {
  for (const char* const limit : {"callback_seconds", "max_seconds"}) {
    const ClientScope client(1, {{}, {{limit, 1}}});
    PJRT_LoadedExecutable* executable = nullptr;
    ASSERT_TRUE(Compile(client.get(), kAsk, "mlir", CompileOptionsOf(1, 1), &executable).ok());
    const std::vector<PJRT_Buffer*> arguments = {
        MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3}, {3})};
    const OtherProgram same(client, client.devices()[0]);
    std::vector<float> doubled;
    Result on_same;
    std::vector<std::vector<float>> results;
    {
      std::vector<Host> hosts(1);
      hosts[0].before_answer = [&] { on_same = same.Run(&doubled); };
      const Result ran = Ask(executable, arguments, hosts, &results);
      EXPECT_FALSE(ran.ok());
      EXPECT_NE(ran.message.find(std::string("it had 1 s (option ") + limit), std::string::npos) << ran.message;
    }
    // Its program has run after the one that gave up, and the late answer does no harm.
    EXPECT_TRUE(on_same.ok()) << on_same.message;
    EXPECT_EQ(doubled, (std::vector<float>{2, 4, 6}));
    Destroy(arguments[0]);
    Destroy(executable);
  }
}

}  // namespace
}  // namespace hlokit::pjrt_test
