// SPDX-License-Identifier: Apache-2.0
// The table itself, clients, devices, topologies, extensions, and arguments of other versions.
#include <set>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

TEST(ApiTest, EverySlotIsFilled) {
  const PJRT_Api& api = Api();
  EXPECT_EQ(api.struct_size, 1144U);
  EXPECT_EQ(api.pjrt_api_version.major_version, 0);
  EXPECT_EQ(api.pjrt_api_version.minor_version, 114);
#define PJRT_FUNCTION(kind, name, size, last_field, handle) EXPECT_NE(api.PJRT_##name, nullptr) << #name;
#include "pjrt/c_api/functions.def"
}

TEST(ApiTest, NullObjectsAreErrors) {
  const PJRT_Api& api = Api();
#define CHECK_kVoid(name) api.PJRT_##name(nullptr);
#define CHECK_kReal(name) EXPECT_FALSE(Take(api.PJRT_##name(nullptr)).ok()) << #name;
#define CHECK_kStub(name) EXPECT_EQ(Take(api.PJRT_##name(nullptr)).code, kUnimplemented) << #name;
#define PJRT_FUNCTION(kind, name, size, last_field, handle) CHECK_##kind(name)
#include "pjrt/c_api/functions.def"
  // Structs of zeros: an error, or nothing to do.
#define ZERO_kVoid(name)
#define ZERO_kReal(name)                                                                                         \
  {                                                                                                              \
    auto args = Zeroed<PJRT_##name##_Args>();                                                                    \
    if (std::string_view(#name) != "Client_Create" && std::string_view(#name) != "TopologyDescription_Create" && \
        std::string_view(#name) != "Event_Create") {                                                             \
      Take(api.PJRT_##name(&args));                                                                              \
    }                                                                                                            \
  }
#define ZERO_kStub(name)
#define PJRT_FUNCTION(kind, name, size, last_field, handle) ZERO_##kind(name)
#include "pjrt/c_api/functions.def"
}

TEST(ApiTest, PluginAttributes) {
  auto args = Garbage<PJRT_Plugin_Attributes_Args>();
  ASSERT_CALL_OK(Api().PJRT_Plugin_Attributes(&args));
  std::set<std::string> names;
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& value = args.attributes[i];
    EXPECT_TRUE(names.insert(std::string(value.name, value.name_size)).second);
    if (value.type == PJRT_NamedValue_kInt64List) {
      EXPECT_EQ(value.value_size, 3U);
    }
  }
  for (const char* name : {"xla_version", "stablehlo_current_version", "stablehlo_minimum_version"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
}

TEST(ApiTest, OptionsOfClients) {
  PJRT_Client* client = nullptr;
  const Result unknown = CreateClient({.texts = {{"num_device", "2"}}}, &client);
  EXPECT_EQ(unknown.code, kInvalidArgument);
  EXPECT_NE(unknown.message.find("did you mean `num_devices`?"), std::string::npos) << unknown.message;
  EXPECT_EQ(CreateClient({.texts = {{"num_devices", "many"}}}, &client).code, kInvalidArgument);
  EXPECT_EQ(CreateClient({.texts = {{"device", "v99"}}}, &client).code, kInvalidArgument);
  const Result twice = CreateClient({.texts = {{"device", "cpu:8"}}, .numbers = {{"num_devices", 4}}}, &client);
  EXPECT_EQ(twice.code, kInvalidArgument);
  EXPECT_EQ(twice.message, "device cpu:8 names a number of devices, and num_devices is 4: leave one of them out");
  EXPECT_EQ(CreateClient({.numbers = {{"num_devices", 1000000}}}, &client).code, kInvalidArgument);
  EXPECT_EQ(client, nullptr);
  const ClientScope tpu(0, {.texts = {{"device", "v5p:2x2x2"}, {"ml_framework_name", "test"}}});
  EXPECT_EQ(tpu.devices().size(), 8U);
}

std::string KindOf(PJRT_Device* device, PJRT_DeviceDescription** description) {
  auto get = Garbage<PJRT_Device_GetDescription_Args>();
  get.device = device;
  EXPECT_CALL_OK(Api().PJRT_Device_GetDescription(&get));
  *description = get.device_description;
  auto kind = Garbage<PJRT_DeviceDescription_Kind_Args>();
  kind.device_description = get.device_description;
  EXPECT_CALL_OK(Api().PJRT_DeviceDescription_Kind(&kind));
  return std::string(kind.device_kind, kind.device_kind_size);
}

TEST(ApiTest, DevicesOfATpuHaveCoordinates) {
  const ClientScope client(0, {.texts = {{"device", "v3:2x2"}}});
  ASSERT_EQ(client.devices().size(), 8U);  // two cores a chip
  PJRT_DeviceDescription* description = nullptr;
  EXPECT_EQ(KindOf(client.devices()[5], &description), "TPU v3");
  auto args = Garbage<PJRT_Device_GetAttributes_Args>();
  args.device = client.devices()[5];
  ASSERT_CALL_OK(Api().PJRT_Device_GetAttributes(&args));
  int64_t core = -1;
  std::vector<int64_t> coords;
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& value = args.attributes[i];
    const std::string_view name(value.name, value.name_size);
    if (name == "core_on_chip") core = value.int64_value;
    if (name == "coords") coords.assign(value.int64_array_value, value.int64_array_value + value.value_size);
  }
  args.attributes_deleter(args.device_attributes);
  EXPECT_EQ(core, 1);
  EXPECT_EQ(coords, (std::vector<int64_t>{0, 1, 0}));
}

TEST(ApiTest, RegisteredCallbacksAreCalledInOrder) {
  const PJRT_Callback_Extension* extension = nullptr;
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_Callback) extension = reinterpret_cast<const PJRT_Callback_Extension*>(e);
  }
  ASSERT_NE(extension, nullptr);
  const ClientScope client(1);
  std::vector<int> called;
  const auto add = [](void* args, void* user_arg) {
    static_cast<std::vector<int>*>(user_arg)->push_back(*static_cast<int*>(args));
  };
  PJRT_Callback_RegisterCallback_Args args = {sizeof(args), client.get(), PJRT_Callback_Type_Prefatal, add, &called};
  EXPECT_CALL_OK(extension->PJRT_Callback_RegisterCallback(&args));
  EXPECT_CALL_OK(extension->PJRT_Callback_RegisterCallback(&args));
  args.type = PJRT_Callback_Type_Unknown;
  EXPECT_EQ(Take(extension->PJRT_Callback_RegisterCallback(&args)).code, kUnimplemented);
  args.callback = nullptr;
  EXPECT_EQ(Take(extension->PJRT_Callback_RegisterCallback(&args)).code, kInvalidArgument);
  int value = 7;
  PJRT_Callback_InvokeCallback_Args invoke = {sizeof(invoke), client.get(), PJRT_Callback_Type_Prefatal, &value};
  EXPECT_CALL_OK(extension->PJRT_Callback_InvokeCallback(&invoke));
  invoke.type = PJRT_Callback_Type_Tpu_SliceBuilder;
  EXPECT_CALL_OK(extension->PJRT_Callback_InvokeCallback(&invoke));
  EXPECT_EQ(called, (std::vector<int>{7, 7}));
}

TEST(ApiTest, LookUpOfDevices) {
  const ClientScope client(3);
  for (int id = 0; id < 3; ++id) {
    auto args = Garbage<PJRT_Client_LookupDevice_Args>();
    args.client = client.get();
    args.id = id;
    ASSERT_CALL_OK(Api().PJRT_Client_LookupDevice(&args));
    EXPECT_EQ(args.device, client.devices()[static_cast<size_t>(id)]);
  }
  for (const int id : {-1, 3}) {
    auto args = Garbage<PJRT_Client_LookupDevice_Args>();
    args.client = client.get();
    args.id = id;
    const Result result = Take(Api().PJRT_Client_LookupDevice(&args));
    EXPECT_EQ(result.code, kInvalidArgument);
    EXPECT_EQ(result.message, "No matching device found for device_id " + std::to_string(id));
  }
}

TEST(ApiTest, DefaultAssignment) {
  const ClientScope client;
  std::vector<int> assignment(8, -1);
  auto args = Garbage<PJRT_Client_DefaultDeviceAssignment_Args>();
  args.client = client.get();
  args.default_assignment = assignment.data();
  const auto with = [&](int replicas, int partitions, size_t size) {
    args.num_replicas = replicas;
    args.num_partitions = partitions;
    args.default_assignment_size = size;
    return Take(Api().PJRT_Client_DefaultDeviceAssignment(&args)).code;
  };
  EXPECT_EQ(with(2, 1, 2), 0);
  EXPECT_EQ(assignment[1], 0);
  EXPECT_EQ(with(4, 2, 7), kFailedPrecondition);
  EXPECT_EQ(with(65536, 65537, 8), kFailedPrecondition);
  EXPECT_EQ(with(0, 1, 8), kInvalidArgument);
  EXPECT_EQ(with(1, -1, 8), kInvalidArgument);
}

TEST(ApiTest, MemoryStatisticsFitOlderCallers) {
  const ClientScope client;
  PJRT_Buffer* const buffer = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2, 3, 4}, {4});
  auto args = Garbage<PJRT_Device_MemoryStats_Args>();
  args.device = client.devices()[0];
  ASSERT_CALL_OK(Api().PJRT_Device_MemoryStats(&args));
  EXPECT_EQ(args.bytes_in_use, 16);
  EXPECT_TRUE(args.bytes_limit_is_set);
  EXPECT_FALSE(args.pool_bytes_is_set);
  EXPECT_FALSE(args.peak_allocated_bytes_is_set);
  // A caller whose struct ends before the last pair of fields.
  auto older = Garbage<PJRT_Device_MemoryStats_Args>();
  older.struct_size = offsetof(PJRT_Device_MemoryStats_Args, peak_allocated_bytes);
  older.device = client.devices()[0];
  const int64_t untouched = older.peak_allocated_bytes;
  ASSERT_CALL_OK(Api().PJRT_Device_MemoryStats(&older));
  EXPECT_EQ(older.peak_allocated_bytes, untouched);
  EXPECT_EQ(older.bytes_in_use, 16);
  Destroy(buffer);
}

TEST(ApiTest, TheLimitOfMemoryIsThatOfTheSimulatedDevice) {
  const auto limit = [](const char* device) {
    const ClientScope client(0, {.texts = {{"device", device}}, .numbers = {{"max_bytes", 1 << 20}}});
    const auto args = Query(Api().PJRT_Device_MemoryStats, &PJRT_Device_MemoryStats_Args::device, client.devices()[0]);
    EXPECT_TRUE(args.bytes_limit_is_set);
    return args.bytes_limit;
  };
  constexpr int64_t kGiB = int64_t{1} << 30;
  EXPECT_EQ(limit("v5p:1x1x1"), 95 * kGiB);
  EXPECT_EQ(limit("v5e:1x1"), 16 * kGiB);
  EXPECT_EQ(limit("v3:1"), 16 * kGiB);  // of a core, half of the chip's
  EXPECT_EQ(limit("cpu"), 1 << 20);     // what the process may use
}

void CountDestruction(void* data) { ++*static_cast<int*>(data); }

TEST(ApiTest, MemoriesKeepValuesOfCallers) {
  int destroyed = 0;
  {
    const ClientScope client;
    auto args = Garbage<PJRT_Device_DefaultMemory_Args>();
    args.device = client.devices()[0];
    ASSERT_CALL_OK(Api().PJRT_Device_DefaultMemory(&args));
    const auto* const functions = *reinterpret_cast<const PJRT_Memory_FunctionTable* const*>(args.memory);
    int keys[2];
    functions->set_user_data(args.memory, &keys[0], &destroyed, CountDestruction);
    functions->set_user_data(args.memory, &keys[1], &destroyed, CountDestruction);
    EXPECT_EQ(functions->get_user_data(args.memory, &keys[0]), &destroyed);
    EXPECT_EQ(functions->get_user_data(args.memory, &destroyed), nullptr);
    functions->set_user_data(args.memory, &keys[0], nullptr, nullptr);
    EXPECT_EQ(destroyed, 1);
  }
  EXPECT_EQ(destroyed, 2);
}

TEST(ApiTest, TopologySurvivesSerialization) {
  const std::string name = "v4:2x2x1";
  auto create = Zeroed<PJRT_TopologyDescription_Create_Args>();
  create.topology_name = name.data();
  create.topology_name_size = name.size();
  ASSERT_CALL_OK(Api().PJRT_TopologyDescription_Create(&create));
  auto serialize = Garbage<PJRT_TopologyDescription_Serialize_Args>();
  serialize.topology = create.topology;
  ASSERT_CALL_OK(Api().PJRT_TopologyDescription_Serialize(&serialize));
  auto read = Garbage<PJRT_TopologyDescription_Deserialize_Args>();
  read.serialized_topology = serialize.serialized_bytes;
  read.serialized_topology_size = serialize.serialized_bytes_size;
  ASSERT_CALL_OK(Api().PJRT_TopologyDescription_Deserialize(&read));
  auto fingerprint = Garbage<PJRT_TopologyDescription_Fingerprint_Args>();
  fingerprint.topology = create.topology;
  EXPECT_CALL_OK(Api().PJRT_TopologyDescription_Fingerprint(&fingerprint));
  const uint64_t first = fingerprint.fingerprint;
  fingerprint.topology = read.topology;
  EXPECT_CALL_OK(Api().PJRT_TopologyDescription_Fingerprint(&fingerprint));
  EXPECT_EQ(fingerprint.fingerprint, first);
  --read.serialized_topology_size;
  EXPECT_EQ(Take(Api().PJRT_TopologyDescription_Deserialize(&read)).code, kInvalidArgument);
  serialize.serialized_topology_deleter(serialize.serialized_topology);
  for (PJRT_TopologyDescription* topology : {create.topology, read.topology}) {
    auto destroy = Garbage<PJRT_TopologyDescription_Destroy_Args>();
    destroy.topology = topology;
    EXPECT_CALL_OK(Api().PJRT_TopologyDescription_Destroy(&destroy));
  }
}

template <typename Extension>
const Extension* Find(PJRT_Extension_Type type) {
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == type) return reinterpret_cast<const Extension*>(e);
  }
  return nullptr;
}

TEST(ApiTest, LayoutsAreRowMajorText) {
  const auto* const layouts = Find<PJRT_Layouts_Extension>(PJRT_Extension_Type_Layouts);
  ASSERT_NE(layouts, nullptr);
  const ClientScope client;
  const int64_t dims[] = {2, 3, 4};
  auto get = Garbage<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>();
  get.client = client.get();
  get.type = static_cast<PJRT_Buffer_Type>(kF32);
  get.dims = dims;
  get.num_dims = 3;
  ASSERT_CALL_OK(layouts->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&get));
  auto text = Garbage<PJRT_Layouts_MemoryLayout_Serialize_Args>();
  text.layout = get.layout;
  ASSERT_CALL_OK(layouts->PJRT_Layouts_MemoryLayout_Serialize(&text));
  EXPECT_EQ(std::string(text.serialized_bytes, text.serialized_bytes_size), "{2,1,0}");
  text.serialized_layout_deleter(text.serialized_layout);
  auto destroy = Garbage<PJRT_Layouts_MemoryLayout_Destroy_Args>();
  destroy.layout = get.layout;
  EXPECT_CALL_OK(layouts->PJRT_Layouts_MemoryLayout_Destroy(&destroy));
}

}  // namespace
}  // namespace hlokit::pjrt_test
