// SPDX-License-Identifier: Apache-2.0
// Programs: compiling, running on one and several devices, donation, errors.
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr char kAddOne[] = R"(
module @add_one {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %y = stablehlo.add %x, %one : tensor<4xf32>
    return %y : tensor<4xf32>
  }
})";

constexpr char kDonate[] = R"(
module @donate {
  func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32>) -> tensor<4xf32> {
    %z = stablehlo.add %x, %y : tensor<4xf32>
    return %z : tensor<4xf32>
  }
})";

constexpr char kAllReduce[] = R"(
module @all_reduce attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
})";

constexpr char kSharded[] = R"(
module @sharded attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
                         %w: tensor<6x3xf32> {mhlo.sharding = "{replicated}"}) -> tensor<8x3xf32> {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x3xf32>) -> tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
})";

class ExecuteTest : public testing::Test {
 protected:
  void TearDown() override {
    for (PJRT_Buffer* buffer : buffers_) Destroy(buffer);
    for (PJRT_LoadedExecutable* executable : executables_) Destroy(executable);
    client_.reset();
  }
  const ClientScope& NewClient(int64_t devices = 1) {
    client_ = std::make_unique<ClientScope>(devices);
    return *client_;
  }
  PJRT_LoadedExecutable* CompileOk(const ClientScope& client, std::string_view code, const std::string& options) {
    PJRT_LoadedExecutable* executable = nullptr;
    const Result result = Compile(client.get(), code, "mlir", options, &executable);
    EXPECT_TRUE(result.ok()) << result.message;
    if (executable != nullptr) executables_.push_back(executable);
    return executable;
  }
  PJRT_Buffer* Keep(PJRT_Buffer* buffer) {
    buffers_.push_back(buffer);
    return buffer;
  }
  std::unique_ptr<ClientScope> client_;
  std::vector<PJRT_Buffer*> buffers_;
  std::vector<PJRT_LoadedExecutable*> executables_;
};

TEST_F(ExecuteTest, OneDevice) {
  const ClientScope& client = NewClient();
  PJRT_LoadedExecutable* const executable = CompileOk(client, kAddOne, CompileOptionsOf(1, 1));
  ASSERT_NE(executable, nullptr);
  PJRT_Buffer* const x = Keep(MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3, 4}, {4}));
  std::vector<std::vector<PJRT_Buffer*>> results;
  const Result result = Execute(executable, {{x}}, &results);
  ASSERT_TRUE(result.ok()) << result.message;
  Keep(results[0][0]);
  std::vector<float> y;
  EXPECT_TRUE(ReadBuffer(results[0][0], &y).ok());
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4, 5}));
  EXPECT_FALSE(IsDeleted(x));
}

TEST_F(ExecuteTest, TheLimitOnMemoryHasItsCodeAndItsOption) {
  const ClientScope client(1, {.numbers = {{"max_bytes", 20}}});
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(), kAddOne, "mlir", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3, 4}, {4});
  std::vector<std::vector<PJRT_Buffer*>> results;
  const Result result = Execute(executable, {{x}}, &results);
  EXPECT_EQ(result.code, kResourceExhausted) << result.message;
  EXPECT_NE(result.message.find("the limit is 20 bytes (option max_bytes)"), std::string::npos) << result.message;
  if (results[0][0] != nullptr) Destroy(results[0][0]);
  Destroy(x);
  Destroy(executable);
}

TEST_F(ExecuteTest, DonatedArgumentIsDeletedUnlessTheCallForbidsIt) {
  const ClientScope& client = NewClient();
  PJRT_LoadedExecutable* const executable = CompileOk(client, kDonate, CompileOptionsOf(1, 1));
  ASSERT_NE(executable, nullptr);
  PJRT_Device* const device = client.devices()[0];
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), device, kF32, {1, 2, 3, 4}, {4});
  PJRT_Buffer* const y = MakeBuffer<float>(client.get(), device, kF32, {1, 1, 1, 1}, {4});
  std::vector<std::vector<PJRT_Buffer*>> first, second, third;
  EXPECT_TRUE(Execute(executable, {{x, y}}, &first, /*fixed=*/{0}).ok());
  EXPECT_FALSE(IsDeleted(x));
  EXPECT_TRUE(Execute(executable, {{x, y}}, &second).ok());
  EXPECT_TRUE(IsDeleted(x));
  EXPECT_FALSE(IsDeleted(y));
  const Result again = Execute(executable, {{x, y}}, &third);
  EXPECT_EQ(again.code, kInvalidArgument);
  EXPECT_NE(again.message.find("deleted or donated"), std::string::npos) << again.message;
  const Result twice = Execute(executable, {{y, y}}, &third);
  EXPECT_EQ(twice.code, kInvalidArgument);
  EXPECT_EQ(twice.message,
            "Attempt to use a buffer that was previously donated in the same call to Execute() (flattened argument 1, "
            "replica 0, partition 0, first use: 0). Toy example for this bug: `f(donate(a), a)`.");
  EXPECT_FALSE(IsDeleted(y));
  std::vector<float> value;
  EXPECT_TRUE(ReadBuffer(second[0][0], &value).ok());
  EXPECT_EQ(value, (std::vector<float>{2, 3, 4, 5}));
  for (PJRT_Buffer* buffer : {x, y, first[0][0], second[0][0]}) Destroy(buffer);
}

TEST_F(ExecuteTest, CollectiveOverPartitions) {
  const ClientScope& client = NewClient(4);
  PJRT_LoadedExecutable* const executable = CompileOk(client, kAllReduce, CompileOptionsOf(1, 4));
  ASSERT_NE(executable, nullptr);
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (size_t d = 0; d < 4; ++d) {
    const float v = static_cast<float>(d);
    arguments.push_back({MakeBuffer<float>(client.get(), client.devices()[d], kF32, {v, 10 * v}, {2})});
  }
  const Result result = Execute(executable, arguments, &results);
  ASSERT_TRUE(result.ok()) << result.message;
  for (size_t d = 0; d < 4; ++d) {
    std::vector<float> y;
    EXPECT_TRUE(ReadBuffer(results[d][0], &y).ok());
    EXPECT_EQ(y, (std::vector<float>{6, 60}));
    Destroy(results[d][0]);
    Destroy(arguments[d][0]);
  }
}

TEST_F(ExecuteTest, ProgramWithShardingsIsPartitioned) {
  const ClientScope& client = NewClient(4);
  PJRT_LoadedExecutable* const executable = CompileOk(client, kSharded, CompileOptionsOf(1, 4, /*spmd=*/true));
  ASSERT_NE(executable, nullptr);
  std::vector<float> w(18);
  std::iota(w.begin(), w.end(), 0.0F);
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (size_t d = 0; d < 4; ++d) {
    std::vector<float> part(12, static_cast<float>(d));
    arguments.push_back({MakeBuffer<float>(client.get(), client.devices()[d], kF32, part, {2, 6}),
                         MakeBuffer<float>(client.get(), client.devices()[d], kF32, w, {6, 3})});
  }
  const Result result = Execute(executable, arguments, &results);
  ASSERT_TRUE(result.ok()) << result.message;
  for (size_t d = 0; d < 4; ++d) {
    std::vector<float> y;
    EXPECT_TRUE(ReadBuffer(results[d][0], &y).ok());
    // Columns of w sum to 45, 51, 57.
    const float v = static_cast<float>(d);
    EXPECT_EQ(y, (std::vector<float>{45 * v, 51 * v, 57 * v, 45 * v, 51 * v, 57 * v}));
    for (PJRT_Buffer* buffer : {results[d][0], arguments[d][0], arguments[d][1]}) Destroy(buffer);
  }
}

TEST_F(ExecuteTest, ErrorsOfCompilation) {
  const ClientScope& client = NewClient();
  PJRT_LoadedExecutable* executable = nullptr;
  EXPECT_EQ(Compile(client.get(), kAddOne, "mlir", "not a proto", &executable).message,
            "PJRT_Client_Compile: failed to deserialize CompileOptionsProto");
  EXPECT_EQ(Compile(client.get(), kAddOne, "onnx", CompileOptionsOf(1, 1), &executable).message,
            "Unknown program format 'onnx'.");
  const Result broken = Compile(client.get(), "module { func.func @main() { stablehlo.ad } }", "mlir",
                                CompileOptionsOf(1, 1), &executable);
  EXPECT_EQ(broken.code, kInvalidArgument);
  EXPECT_NE(broken.message.find("<mlir>:1:"), std::string::npos) << broken.message;
  const Result devices = Compile(client.get(), kAddOne, "mlir", CompileOptionsOf(1, 2), &executable);
  EXPECT_EQ(devices.code, kInvalidArgument) << devices.message;
  EXPECT_EQ(executable, nullptr);
  Destroy(executable);  // of null
}

TEST_F(ExecuteTest, WrongArgumentsAreErrorsBeforeAnythingIsDonated) {
  const ClientScope& client = NewClient(2);
  PJRT_LoadedExecutable* const executable = CompileOk(client, kDonate, CompileOptionsOf(1, 1));
  ASSERT_NE(executable, nullptr);
  PJRT_Device* const device = client.devices()[0];
  PJRT_Buffer* const good = MakeBuffer<float>(client.get(), device, kF32, {1, 2, 3, 4}, {4});
  PJRT_Buffer* const shape = MakeBuffer<float>(client.get(), device, kF32, {1, 2}, {2});
  PJRT_Buffer* const type = MakeBuffer<int32_t>(client.get(), device, kS32, {1, 2, 3, 4}, {4});
  PJRT_Buffer* const place = MakeBuffer<float>(client.get(), client.devices()[1], kF32, {1, 2, 3, 4}, {4});
  std::vector<std::vector<PJRT_Buffer*>> results;
  for (PJRT_Buffer* bad : {shape, type, place, static_cast<PJRT_Buffer*>(nullptr)}) {
    const Result result = Execute(executable, {{good, bad}}, &results);
    EXPECT_EQ(result.code, kInvalidArgument) << result.message;
    EXPECT_NE(result.message.find("argument 1"), std::string::npos) << result.message;
  }
  EXPECT_EQ(Execute(executable, {{good}}, &results).code, kInvalidArgument);
  EXPECT_EQ(Execute(executable, {{good, good}, {good, good}}, &results).code, kInvalidArgument);
  EXPECT_FALSE(IsDeleted(good));
  for (PJRT_Buffer* buffer : {good, shape, type, place}) Destroy(buffer);
}

TEST_F(ExecuteTest, PortableProgramRunsOnTheDeviceOfTheCall) {
  const ClientScope& client = NewClient(3);
  PJRT_LoadedExecutable* const executable =
      CompileOk(client, kAddOne, CompileOptionsOf(1, 1, /*spmd=*/false, /*portable=*/true));
  ASSERT_NE(executable, nullptr);
  for (PJRT_Device* const device : client.devices()) {
    PJRT_Buffer* const x = MakeBuffer<float>(client.get(), device, kF32, {1, 2, 3, 4}, {4});
    std::vector<std::vector<PJRT_Buffer*>> results;
    const Result result = Execute(executable, {{x}}, &results, {}, device);
    ASSERT_TRUE(result.ok()) << result.message;
    auto where = Garbage<PJRT_Buffer_Device_Args>();
    where.buffer = results[0][0];
    EXPECT_CALL_OK(Api().PJRT_Buffer_Device(&where));
    EXPECT_EQ(where.device, device);
    Destroy(results[0][0]);
    Destroy(x);
  }
}

TEST_F(ExecuteTest, ErrorBufferMakesResultsThatDependOnItFail) {
  const ClientScope& client = NewClient();
  PJRT_LoadedExecutable* const executable = CompileOk(client, kAddOne, CompileOptionsOf(1, 1));
  ASSERT_NE(executable, nullptr);
  const int64_t dims[] = {4};
  const std::string text = "the cat ate it";
  auto args = Garbage<PJRT_Client_CreateErrorBuffer_Args>();
  args.client = client.get();
  args.error_code = static_cast<PJRT_Error_Code>(kAborted);
  args.error_message = text.data();
  args.error_message_size = text.size();
  args.shape_dims = dims;
  args.shape_num_dims = 1;
  args.shape_element_type = static_cast<PJRT_Buffer_Type>(kF32);
  args.shape_layout = nullptr;
  auto memory = Garbage<PJRT_Device_DefaultMemory_Args>();
  memory.device = client.devices()[0];
  EXPECT_CALL_OK(Api().PJRT_Device_DefaultMemory(&memory));
  args.memory = memory.memory;
  args.payload = nullptr;
  args.num_payload = 0;
  ASSERT_CALL_OK(Api().PJRT_Client_CreateErrorBuffer(&args));
  std::vector<std::vector<PJRT_Buffer*>> results;
  const Result result = Execute(executable, {{args.buffer}}, &results);
  EXPECT_EQ(result.code, kAborted) << result.message;
  EXPECT_NE(result.message.find(text), std::string::npos) << result.message;
  std::vector<float> y;
  EXPECT_EQ(ReadBuffer(results[0][0], &y).code, kAborted);
  Destroy(results[0][0]);
  Destroy(args.buffer);
}

TEST_F(ExecuteTest, SerializedProgramRunsAgain) {
  const ClientScope& client = NewClient(4);
  PJRT_LoadedExecutable* const executable = CompileOk(client, kAllReduce, CompileOptionsOf(1, 4));
  ASSERT_NE(executable, nullptr);
  auto get = Garbage<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  ASSERT_CALL_OK(Api().PJRT_LoadedExecutable_GetExecutable(&get));
  auto serialize = Garbage<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  ASSERT_CALL_OK(Api().PJRT_Executable_Serialize(&serialize));
  auto load = Garbage<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = client.get();
  load.serialized_executable = serialize.serialized_bytes;
  load.serialized_executable_size = serialize.serialized_bytes_size;
  load.overridden_serialized_compile_options = nullptr;
  load.overridden_serialized_compile_options_size = 0;
  load.load_options = nullptr;
  ASSERT_CALL_OK(Api().PJRT_Executable_DeserializeAndLoad(&load));
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (PJRT_Device* device : client.devices()) {
    arguments.push_back({MakeBuffer<float>(client.get(), device, kF32, {1, 2}, {2})});
  }
  const Result result = Execute(load.loaded_executable, arguments, &results);
  ASSERT_TRUE(result.ok()) << result.message;
  std::vector<float> y;
  EXPECT_TRUE(ReadBuffer(results[3][0], &y).ok());
  EXPECT_EQ(y, (std::vector<float>{4, 8}));
  load.serialized_executable_size /= 2;
  EXPECT_FALSE(Take(Api().PJRT_Executable_DeserializeAndLoad(&load)).ok());
  load.serialized_executable = "foreign bytes";
  load.serialized_executable_size = 13;
  EXPECT_EQ(Take(Api().PJRT_Executable_DeserializeAndLoad(&load)).code, kInvalidArgument);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  for (size_t d = 0; d < 4; ++d) {
    Destroy(arguments[d][0]);
    Destroy(results[d][0]);
  }
  auto destroy = Garbage<PJRT_Executable_Destroy_Args>();
  destroy.executable = get.executable;
  EXPECT_CALL_OK(Api().PJRT_Executable_Destroy(&destroy));
  Destroy(load.loaded_executable);
}

// Threads that run one program at the same time get results of their own arguments.
TEST_F(ExecuteTest, RunsOfSeveralThreadsDoNotMix) {
  const ClientScope& client = NewClient(4);
  PJRT_LoadedExecutable* const executable = CompileOk(client, kAllReduce, CompileOptionsOf(1, 4));
  ASSERT_NE(executable, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < 50; ++run) {
        const float v = static_cast<float>(100 * t + run);
        std::vector<std::vector<PJRT_Buffer*>> arguments, results;
        for (PJRT_Device* device : client.devices()) {
          arguments.push_back({MakeBuffer<float>(client.get(), device, kF32, {v, 0}, {2})});
        }
        EXPECT_TRUE(Execute(executable, arguments, &results).ok());
        for (size_t d = 0; d < 4; ++d) {
          std::vector<float> y;
          EXPECT_TRUE(ReadBuffer(results[d][0], &y).ok());
          EXPECT_EQ(y, (std::vector<float>{4 * v, 0}));
          Destroy(results[d][0]);
          Destroy(arguments[d][0]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ExecuteTest, ResultsAreInTheMemoriesThatTheProgramNames) {
  constexpr char kProgram[] = R"(module attributes {mhlo.num_partitions = 2 : i32} {
    func.func @main(%x: tensor<4xf32> {mhlo.memory_kind = "pinned_host", mhlo.sharding = "{devices=[2]<=[2]}"},
                    %y: tensor<4xf32> {mhlo.sharding = "{replicated}"})
        -> (tensor<4xf32> {jax.result_info = "mhlo.memory_kind, [x]"},
            tensor<4xf32> {mhlo.memory_kind = "pinned_host", mhlo.sharding = "{devices=[2]<=[2]}"}) {
      return %y, %x : tensor<4xf32>, tensor<4xf32> } })";
  const ClientScope& client = NewClient(2);
  PJRT_LoadedExecutable* const executable = CompileOk(client, kProgram, CompileOptionsOf(1, 2, /*spmd=*/true));
  ASSERT_NE(executable, nullptr);
  auto get = Garbage<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  ASSERT_CALL_OK(Api().PJRT_LoadedExecutable_GetExecutable(&get));
  auto kinds = Garbage<PJRT_Executable_OutputMemoryKinds_Args>();
  kinds.executable = get.executable;
  ASSERT_CALL_OK(Api().PJRT_Executable_OutputMemoryKinds(&kinds));
  ASSERT_EQ(kinds.num_outputs, 2U);
  EXPECT_EQ(std::string_view(kinds.memory_kinds[0], kinds.memory_kind_sizes[0]), "device");
  EXPECT_EQ(std::string_view(kinds.memory_kinds[1], kinds.memory_kind_sizes[1]), "pinned_host");
  auto given = Garbage<PJRT_Executable_ParameterMemoryKinds_Args>();
  given.executable = get.executable;
  ASSERT_CALL_OK(Api().PJRT_Executable_ParameterMemoryKinds(&given));
  ASSERT_EQ(given.num_parameters, 2U);
  EXPECT_EQ(std::string_view(given.memory_kinds[0], given.memory_kind_sizes[0]), "pinned_host");
  EXPECT_EQ(std::string_view(given.memory_kinds[1], given.memory_kind_sizes[1]), "device");
  auto destroy = Garbage<PJRT_Executable_Destroy_Args>();
  destroy.executable = get.executable;
  EXPECT_CALL_OK(Api().PJRT_Executable_Destroy(&destroy));
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (PJRT_Device* device : client.devices()) {
    arguments.push_back({Keep(MakeBuffer<float>(client.get(), device, kF32, {1, 2}, {2})),
                         Keep(MakeBuffer<float>(client.get(), device, kF32, {1, 2, 3, 4}, {4}))});
  }
  const Result elsewhere = Execute(executable, arguments, &results);
  EXPECT_EQ(elsewhere.code, kInvalidArgument);
  EXPECT_NE(elsewhere.message.find("the buffer is in device memory, the program takes it in pinned_host"),
            std::string::npos)
      << elsewhere.message;
  for (size_t d = 0; d < arguments.size(); ++d) {
    auto memories = Garbage<PJRT_Device_AddressableMemories_Args>();
    memories.device = client.devices()[d];
    ASSERT_CALL_OK(Api().PJRT_Device_AddressableMemories(&memories));
    ASSERT_GT(memories.num_memories, 1U);
    auto copy = Garbage<PJRT_Buffer_CopyToMemory_Args>();
    copy.buffer = arguments[d][0];
    copy.dst_memory = memories.memories[1];
    ASSERT_CALL_OK(Api().PJRT_Buffer_CopyToMemory(&copy));
    arguments[d][0] = Keep(copy.dst_buffer);
  }
  results.clear();
  ASSERT_TRUE(Execute(executable, arguments, &results).ok());
  const auto kind_of = [&](PJRT_Buffer* buffer) {
    auto memory = Garbage<PJRT_Buffer_Memory_Args>();
    memory.buffer = Keep(buffer);
    EXPECT_CALL_OK(Api().PJRT_Buffer_Memory(&memory));
    auto kind = Garbage<PJRT_Memory_Kind_Args>();
    kind.memory = memory.memory;
    EXPECT_CALL_OK(Api().PJRT_Memory_Kind(&kind));
    return std::string(kind.kind, kind.kind_size);
  };
  for (const std::vector<PJRT_Buffer*>& of_device : results) {
    EXPECT_EQ(kind_of(of_device[0]), "device");
    EXPECT_EQ(kind_of(of_device[1]), "pinned_host");
  }
  PJRT_LoadedExecutable* none = nullptr;
  const Result unknown = Compile(client.get(),
                                 R"(module { func.func @main(%x: tensor<4xf32> {mhlo.memory_kind = "attic"})
                                     -> tensor<4xf32> { return %x : tensor<4xf32> } })",
                                 "mlir", CompileOptionsOf(1, 1), &none);
  EXPECT_EQ(unknown.code, kInvalidArgument);
  EXPECT_NE(unknown.message.find("`attic`"), std::string::npos) << unknown.message;
}

TEST_F(ExecuteTest, TheFastEngineIsAnOption) {
  const ClientScope client(1, {.texts = {{"engine", "fast"}}});
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(), kAddOne, "mlir", CompileOptionsOf(1, 1), &executable).ok());
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3, 4}, {4});
  std::vector<std::vector<PJRT_Buffer*>> results;
  ASSERT_TRUE(Execute(executable, {{x}}, &results).ok());
  std::vector<float> y;
  EXPECT_TRUE(ReadBuffer(results[0][0], &y).ok());
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4, 5}));
  Destroy(results[0][0]);
  Destroy(x);
  Destroy(executable);
  PJRT_Client* other = nullptr;
  EXPECT_EQ(CreateClient({.texts = {{"engine", "slow"}}}, &other).code, kInvalidArgument);
}

TEST_F(ExecuteTest, ReportsSayWhatASimulatedTpuWouldTake) {
  const std::string directory = testing::TempDir() + "/hlokit_pjrt_report";
  std::filesystem::remove_all(directory);
  {
    const ClientScope client(0, {.texts = {{"device", "v5e:2x2"}, {"report", directory}}});
    PJRT_LoadedExecutable* executable = nullptr;
    ASSERT_TRUE(Compile(client.get(), kAllReduce, "mlir", CompileOptionsOf(1, 4), &executable).ok());
    for (int run = 0; run < 3; ++run) {
      std::vector<std::vector<PJRT_Buffer*>> arguments, results;
      for (PJRT_Device* device : client.devices()) {
        arguments.push_back({MakeBuffer<float>(client.get(), device, kF32, {1, 2}, {2})});
      }
      EXPECT_TRUE(Execute(executable, arguments, &results).ok());
      for (size_t d = 0; d < 4; ++d) {
        Destroy(arguments[d][0]);
        Destroy(results[d][0]);
      }
    }
    Destroy(executable);
  }
  std::stringstream summary;
  summary << std::ifstream(directory + "/summary.json").rdbuf();
  EXPECT_NE(summary.str().find("\"runs\": 3"), std::string::npos) << summary.str();
  EXPECT_NE(summary.str().find("\"device\": \"v5e:2x2\""), std::string::npos) << summary.str();
  EXPECT_EQ(summary.str().find("\"step_seconds\": 0.0,"), std::string::npos) << summary.str();
  EXPECT_TRUE(std::filesystem::exists(directory + "/0001.all_reduce.txt"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/0001.all_reduce.json"));
  PJRT_Client* client = nullptr;
  EXPECT_EQ(CreateClient({.texts = {{"report", directory}}}, &client).code, kInvalidArgument);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace hlokit::pjrt_test
