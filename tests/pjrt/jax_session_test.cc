// SPDX-License-Identifier: Apache-2.0
// The calls of a JAX program from its start to its end, in their order: finding devices, putting an array, compiling,
// a training step with donation over two devices, fetching the result. jax_session.trace is the record of this test
// (HLOKIT_PJRT_TRACE, HLOKIT_PJRT_TRACE_DATA=all), which is replayed too.
#include <atomic>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

// A step of gradient descent over the data of two devices: the parameters are donated, and the gradients averaged.
constexpr char kStep[] = R"(
module @jit_step attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%w: tensor<3xf32> {mhlo.sharding = "{replicated}", tf.aliasing_output = 0 : i32},
                         %x: tensor<4x3xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"},
                         %y: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"})
      -> (tensor<3xf32> {mhlo.sharding = "{replicated}"}, tensor<f32> {mhlo.sharding = "{replicated}"}) {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>
    %e = stablehlo.subtract %p, %y : tensor<4xf32>
    %g = stablehlo.dot_general %e, %x, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
    %rate = stablehlo.constant dense<0.125> : tensor<3xf32>
    %d = stablehlo.multiply %rate, %g : tensor<3xf32>
    %next = stablehlo.subtract %w, %d : tensor<3xf32>
    %s = stablehlo.multiply %e, %e : tensor<4xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %next, %loss : tensor<3xf32>, tensor<f32>
  }
})";

template <typename Args>
Args Of(decltype(Args::client) client) {
  auto args = Garbage<Args>();
  args.client = client;
  return args;
}

// What the constructors of JAX's client ask.
void DescribeClient(PJRT_Client* client) {
  Query(Api().PJRT_Client_TopologyDescription, &PJRT_Client_TopologyDescription_Args::client, client);
  Query(Api().PJRT_Client_PlatformVersion, &PJRT_Client_PlatformVersion_Args::client, client);
  Query(Api().PJRT_Client_PlatformName, &PJRT_Client_PlatformName_Args::client, client);
  Query(Api().PJRT_Client_ProcessIndex, &PJRT_Client_ProcessIndex_Args::client, client);
  const auto devices = Query(Api().PJRT_Client_Devices, &PJRT_Client_Devices_Args::client, client);
  for (size_t d = 0; d < devices.num_devices; ++d) {
    const auto get =
        Query(Api().PJRT_Device_GetDescription, &PJRT_Device_GetDescription_Args::device, devices.devices[d]);
    const auto attributes =
        Query(Api().PJRT_Device_GetAttributes, &PJRT_Device_GetAttributes_Args::device, devices.devices[d]);
    attributes.attributes_deleter(attributes.device_attributes);
    const auto id = Query(Api().PJRT_DeviceDescription_Id, &PJRT_DeviceDescription_Id_Args::device_description,
                          get.device_description);
    Query(Api().PJRT_DeviceDescription_Kind, &PJRT_DeviceDescription_Kind_Args::device_description,
          get.device_description);
    Query(Api().PJRT_DeviceDescription_ToString, &PJRT_DeviceDescription_ToString_Args::device_description,
          get.device_description);
    Query(Api().PJRT_Device_AddressableMemories, &PJRT_Device_AddressableMemories_Args::device, devices.devices[d]);
    auto look = Of<PJRT_Client_LookupDevice_Args>(client);
    look.id = id.id;
    EXPECT_CALL_OK(Api().PJRT_Client_LookupDevice(&look));
    EXPECT_EQ(look.device, devices.devices[d]);
  }
  const auto memories =
      Query(Api().PJRT_Client_AddressableMemories, &PJRT_Client_AddressableMemories_Args::client, client);
  for (size_t m = 0; m < memories.num_addressable_memories; ++m) {
    Query(Api().PJRT_Memory_Kind, &PJRT_Memory_Kind_Args::memory, memories.addressable_memories[m]);
    Query(Api().PJRT_Memory_Kind_Id, &PJRT_Memory_Kind_Id_Args::memory, memories.addressable_memories[m]);
    Query(Api().PJRT_Memory_AddressableByDevices, &PJRT_Memory_AddressableByDevices_Args::memory,
          memories.addressable_memories[m]);
  }
  auto plugin = Garbage<PJRT_Plugin_Attributes_Args>();
  EXPECT_CALL_OK(Api().PJRT_Plugin_Attributes(&plugin));
}

// Registers a callback that counts, and destroys the event in it.
struct Watched {
  PJRT_Event* event;
  std::atomic<int>* count;
};
void Watch(PJRT_Event* event, std::atomic<int>* count) {
  auto args = Garbage<PJRT_Event_OnReady_Args>();
  args.event = event;
  args.user_arg = new Watched{event, count};
  args.callback = [](PJRT_Error* error, void* arg) {
    const std::unique_ptr<Watched> watched(static_cast<Watched*>(arg));
    EXPECT_TRUE(Take(error).ok());
    Destroy(watched->event);
    ++*watched->count;
  };
  EXPECT_CALL_OK(Api().PJRT_Event_OnReady(&args));
}

PJRT_Buffer* Put(PJRT_Client* client, PJRT_Device* device, const std::vector<float>& values,
                 const std::vector<int64_t>& dims, std::atomic<int>* count) {
  const auto memory = Query(Api().PJRT_Device_DefaultMemory, &PJRT_Device_DefaultMemory_Args::device, device);
  auto args = Of<PJRT_Client_BufferFromHostBuffer_Args>(client);
  args.data = values.data();
  args.type = static_cast<PJRT_Buffer_Type>(kF32);
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.byte_strides = nullptr;
  args.num_byte_strides = 0;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  args.device = nullptr;
  args.memory = memory.memory;
  args.device_layout = nullptr;
  EXPECT_CALL_OK(Api().PJRT_Client_BufferFromHostBuffer(&args));
  Watch(args.done_with_host_buffer, count);
  return args.buffer;
}

// What JAX asks of a program that it has compiled. Returns the number of results.
size_t DescribeProgram(PJRT_LoadedExecutable* loaded) {
  const auto get = Query(Api().PJRT_LoadedExecutable_GetExecutable,
                         &PJRT_LoadedExecutable_GetExecutable_Args::loaded_executable, loaded);
  Query(Api().PJRT_LoadedExecutable_AddressableDevices, &PJRT_LoadedExecutable_AddressableDevices_Args::executable,
        loaded);
  Query(Api().PJRT_LoadedExecutable_AddressableDeviceLogicalIds,
        &PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args::executable, loaded);
  const auto assignment = Query(Api().PJRT_LoadedExecutable_GetDeviceAssignment,
                                &PJRT_LoadedExecutable_GetDeviceAssignment_Args::executable, loaded);
  assignment.serialized_device_assignment_deleter(assignment.serialized_device_assignment);
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type != PJRT_Extension_Type_Shardings) continue;
    auto shardings = Garbage<PJRT_Shardings_PJRT_Executable_OutputShardings_Args>();
    shardings.executable = get.executable;
    EXPECT_CALL_OK(reinterpret_cast<const PJRT_Shardings_Extension*>(e)->PJRT_Shardings_PJRT_Executable_OutputShardings(
        &shardings));
  }
  Query(Api().PJRT_Executable_OutputMemoryKinds, &PJRT_Executable_OutputMemoryKinds_Args::executable, get.executable);
  Query(Api().PJRT_Executable_OutputElementTypes, &PJRT_Executable_OutputElementTypes_Args::executable, get.executable);
  Query(Api().PJRT_Executable_OutputDimensions, &PJRT_Executable_OutputDimensions_Args::executable, get.executable);
  Query(Api().PJRT_Executable_Fingerprint, &PJRT_Executable_Fingerprint_Args::executable, get.executable);
  const auto count =
      Query(Api().PJRT_Executable_NumOutputs, &PJRT_Executable_NumOutputs_Args::executable, get.executable);
  Query(Api().PJRT_Executable_Destroy, &PJRT_Executable_Destroy_Args::executable, get.executable);
  return count.num_outputs;
}

TEST(JaxSessionTest, ATrainingLoop) {
  std::atomic<int> events{0};
  PJRT_Client* client = nullptr;
  ASSERT_TRUE(CreateClient({.numbers = {{"num_devices", 2}}}, &client).ok());
  DescribeClient(client);
  const auto list = Query(Api().PJRT_Client_AddressableDevices, &PJRT_Client_AddressableDevices_Args::client, client);
  ASSERT_EQ(list.num_addressable_devices, 2U);
  PJRT_Device* const devices[] = {list.addressable_devices[0], list.addressable_devices[1]};

  const std::vector<float> w = {0, 0, 0};
  const std::vector<float> x[] = {{1, 0, 0, 0, 1, 0}, {0, 0, 1, 1, 1, 1}}, y[] = {{1, 2}, {3, 6}};
  std::vector<std::vector<PJRT_Buffer*>> arguments;
  for (int d = 0; d < 2; ++d) {
    arguments.push_back({Put(client, devices[d], w, {3}, &events), Put(client, devices[d], x[d], {2, 3}, &events),
                         Put(client, devices[d], y[d], {2}, &events)});
  }
  PJRT_LoadedExecutable* step = nullptr;
  const Result compiled = Compile(client, kStep, "mlir", CompileOptionsOf(1, 2, /*spmd=*/true), &step);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  EXPECT_EQ(DescribeProgram(step), 2U);

  float last_loss = 1e9F;
  for (int run = 0; run < 4; ++run) {
    std::vector<std::vector<PJRT_Buffer*>> results;
    const Result ran = Execute(step, arguments, &results);
    ASSERT_TRUE(ran.ok()) << ran.message;
    std::vector<float> loss;
    for (size_t d = 0; d < 2; ++d) {
      EXPECT_TRUE(IsDeleted(arguments[d][0]));  // donated
      Destroy(arguments[d][0]);
      arguments[d][0] = results[d][0];
      const auto ready = Query(Api().PJRT_Buffer_ReadyEvent, &PJRT_Buffer_ReadyEvent_Args::buffer, results[d][1]);
      EXPECT_TRUE(Await(ready.event).ok());
      EXPECT_TRUE(ReadBuffer(results[d][1], &loss).ok());
      Destroy(results[d][1]);
    }
    ASSERT_EQ(loss.size(), 1U);
    EXPECT_LT(loss[0], last_loss);
    last_loss = loss[0];
  }
  std::vector<float> first, second;
  EXPECT_TRUE(ReadBuffer(arguments[0][0], &first).ok());
  EXPECT_TRUE(ReadBuffer(arguments[1][0], &second).ok());
  EXPECT_EQ(first, second);

  for (const std::vector<PJRT_Buffer*>& of_device : arguments) {
    for (PJRT_Buffer* buffer : of_device) Destroy(buffer);
  }
  EXPECT_EQ(events, 6);
  Destroy(step);
  Query(Api().PJRT_Client_Destroy, &PJRT_Client_Destroy_Args::client, client);
}

}  // namespace
}  // namespace hlokit::pjrt_test
