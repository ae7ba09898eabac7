// SPDX-License-Identifier: Apache-2.0
// Profiles, as a framework's profiler asks for them.
#include "pjrt/c_api/profiler_args.h"
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

const PLUGIN_Profiler_Api& Profiler() {
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_Profiler) {
      return *reinterpret_cast<const PJRT_Profiler_Extension*>(e)->profiler_api;
    }
  }
  ADD_FAILURE() << "no profiler";
  std::abort();
}

Result Take(PLUGIN_Profiler_Error* error) {
  if (error == nullptr) return {};
  PLUGIN_Profiler_Error_Message_Args message = {sizeof(message), nullptr, error, nullptr, 0};
  Profiler().error_message(&message);
  PLUGIN_Profiler_Error_GetCode_Args code = {sizeof(code), nullptr, error, 0};
  EXPECT_EQ(Profiler().error_get_code(&code), nullptr);
  Result result = {code.code, std::string(message.message, message.message_size)};
  PLUGIN_Profiler_Error_Destroy_Args destroy = {sizeof(destroy), nullptr, error};
  Profiler().error_destroy(&destroy);
  return result;
}

// Profiles three runs of a program, and returns the serialized XSpace.
std::string ProfileRuns(const ClientScope& client) {
  PJRT_LoadedExecutable* executable = nullptr;
  EXPECT_TRUE(Compile(client.get(),
                      R"(module @jit_double { func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {
                          %y = stablehlo.add %x, %x : tensor<256xf32>
                          return %y : tensor<256xf32> } })",
                      "mlir", CompileOptionsOf(1, 1), &executable)
                  .ok());
  PJRT_Buffer* const x =
      MakeBuffer<float>(client.get(), client.devices()[0], kF32, std::vector<float>(256, 1.0F), {256});
  PLUGIN_Profiler_Create_Args create = {sizeof(create), nullptr, 0, nullptr};
  EXPECT_TRUE(Take(Profiler().create(&create)).ok());
  PLUGIN_Profiler_CollectData_Args collect = {sizeof(collect), create.profiler, nullptr, 0};
  EXPECT_EQ(Take(Profiler().collect_data(&collect)).code, kFailedPrecondition);
  PLUGIN_Profiler_Stop_Args stop = {sizeof(stop), create.profiler};
  EXPECT_EQ(Take(Profiler().stop(&stop)).code, kFailedPrecondition);
  PLUGIN_Profiler_Start_Args start = {sizeof(start), create.profiler};
  EXPECT_TRUE(Take(Profiler().start(&start)).ok());
  for (int run = 0; run < 3; ++run) {
    std::vector<std::vector<PJRT_Buffer*>> results;
    EXPECT_TRUE(Execute(executable, {{x}}, &results).ok());
    Destroy(results[0][0]);
  }
  const Result stopped = Take(Profiler().stop(&stop));
  EXPECT_TRUE(stopped.ok()) << stopped.message;
  EXPECT_TRUE(Take(Profiler().collect_data(&collect)).ok());
  // Today's callers read the profiler's own bytes.
  EXPECT_NE(collect.buffer, nullptr);
  const std::string own(reinterpret_cast<const char*>(collect.buffer), collect.buffer_size_in_bytes);
  // Older ones call again, with what they got or with a buffer of theirs.
  EXPECT_TRUE(Take(Profiler().collect_data(&collect)).ok());
  std::string space(collect.buffer_size_in_bytes, '\0');
  collect.buffer = reinterpret_cast<uint8_t*>(space.data());
  EXPECT_TRUE(Take(Profiler().collect_data(&collect)).ok());
  EXPECT_EQ(space, own);
  PLUGIN_Profiler_Destroy_Args destroy = {sizeof(destroy), create.profiler};
  EXPECT_TRUE(Take(Profiler().destroy(&destroy)).ok());
  Destroy(x);
  Destroy(executable);
  return space;
}

TEST(ProfilerTest, OfTheCpuHasTheThreadsOfTheHost) {
  const ClientScope client(1);
  const std::string space = ProfileRuns(client);
  EXPECT_NE(space.find("/host:TPU-runtime"), std::string::npos);
  EXPECT_NE(space.find("ExecuteComputation"), std::string::npos);
  EXPECT_EQ(space.find("/device:TPU"), std::string::npos);
}

TEST(ProfilerTest, OfASimulatedDeviceHasItsPlanes) {
  const ClientScope client(0, {.texts = {{"device", "v5e:1x1"}}});
  const std::string space = ProfileRuns(client);
  EXPECT_NE(space.find("/host:TPU-runtime"), std::string::npos);
  EXPECT_NE(space.find("/device:TPU:0"), std::string::npos);
  EXPECT_NE(space.find("XLA Ops"), std::string::npos);
  EXPECT_NE(space.find("jit_double"), std::string::npos);
}

// The partitions of a program are the devices of one replica.
TEST(ProfilerTest, OfAPartitionedProgramHasAPlaneForEachPartition) {
  const ClientScope client(0, {.texts = {{"device", "v5p:2x2x1"}}});
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(),
                                  R"(HloModule sharded, num_partitions=4
ENTRY e {
  x = f32[256,64] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[256,64] add(x, x), sharding={devices=[4,1]<=[4]}
})",
                                  "hlo", CompileOptionsOf(1, 4, /*spmd=*/true), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (PJRT_Device* device : client.devices()) {
    arguments.push_back({MakeBuffer<float>(client.get(), device, kF32, std::vector<float>(64 * 64), {64, 64})});
  }
  PLUGIN_Profiler_Create_Args create = {sizeof(create), nullptr, 0, nullptr};
  EXPECT_TRUE(Take(Profiler().create(&create)).ok());
  PLUGIN_Profiler_Start_Args start = {sizeof(start), create.profiler};
  EXPECT_TRUE(Take(Profiler().start(&start)).ok());
  EXPECT_TRUE(Execute(executable, arguments, &results).ok());
  PLUGIN_Profiler_Stop_Args stop = {sizeof(stop), create.profiler};
  const Result stopped = Take(Profiler().stop(&stop));
  EXPECT_TRUE(stopped.ok()) << stopped.message;
  PLUGIN_Profiler_CollectData_Args collect = {sizeof(collect), create.profiler, nullptr, 0};
  EXPECT_TRUE(Take(Profiler().collect_data(&collect)).ok());
  const std::string space(reinterpret_cast<const char*>(collect.buffer), collect.buffer_size_in_bytes);
  EXPECT_NE(space.find("/device:TPU:3"), std::string::npos);
  EXPECT_EQ(space.find("/device:TPU:4"), std::string::npos);
  PLUGIN_Profiler_Destroy_Args destroy = {sizeof(destroy), create.profiler};
  EXPECT_TRUE(Take(Profiler().destroy(&destroy)).ok());
  for (size_t d = 0; d < arguments.size(); ++d) {
    Destroy(arguments[d][0]);
    Destroy(results[d][0]);
  }
  Destroy(executable);
}

}  // namespace
}  // namespace hlokit::pjrt_test
