// SPDX-License-Identifier: Apache-2.0
// Clients of several processes, which are threads here: they meet through a key-value store, have each other's devices,
// and run programs together.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

// A framework's store.
class Store {
 public:
  explicit Store(int limit_in_ms = 300'000) : limit_in_ms_(limit_in_ms) {}
  static PJRT_Error* Get(PJRT_KeyValueGetCallback_Args* args) {
    auto& store = *static_cast<Store*>(args->user_arg);
    std::unique_lock<std::mutex> lock(store.mutex_);
    const std::string key(args->key, args->key_size);
    const auto limit = std::chrono::milliseconds(std::min(args->timeout_in_ms, store.limit_in_ms_));
    if (!store.changed_.wait_for(lock, limit, [&] { return store.values_.contains(key); })) {
      const std::string text = "no value of " + key;
      return (*args->callback_error)(static_cast<PJRT_Error_Code>(kDeadlineExceeded), text.data(), text.size());
    }
    const std::string& value = store.values_[key];
    args->value = static_cast<char*>(std::malloc(value.size() + 1));
    std::memcpy(args->value, value.data(), value.size());
    args->value_size = value.size();
    args->value_deleter = [](char* text) { std::free(text); };
    return nullptr;
  }
  static PJRT_Error* Put(PJRT_KeyValuePutCallback_Args* args) {
    auto& store = *static_cast<Store*>(args->user_arg);
    const std::lock_guard<std::mutex> lock(store.mutex_);
    store.values_[std::string(args->key, args->key_size)] = std::string(args->value, args->value_size);
    store.changed_.notify_all();
    return nullptr;
  }

 private:
  const int limit_in_ms_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

struct ProcessOptions {
  int count = 2;
  std::string device = "cpu:2";
  int64_t collective_seconds = 60;
};

Result CreateProcess(Store* store, int number, const ProcessOptions& options, PJRT_Client** client) {
  const std::pair<const char*, int64_t> numbers[] = {
      {"node_id", number}, {"num_nodes", options.count}, {"collective_seconds", options.collective_seconds}};
  std::vector<PJRT_NamedValue> values;
  const auto add = [&](const char* name, PJRT_NamedValue_Type type, size_t size) -> PJRT_NamedValue& {
    auto value = Zeroed<PJRT_NamedValue>();
    value.name = name;
    value.name_size = std::strlen(name);
    value.type = type;
    value.value_size = size;
    return values.emplace_back(value);
  };
  for (const auto& [name, value] : numbers) add(name, PJRT_NamedValue_kInt64, 1).int64_value = value;
  add("device", PJRT_NamedValue_kString, options.device.size()).string_value = options.device.data();
  auto args = Garbage<PJRT_Client_Create_Args>();
  args.create_options = values.data();
  args.num_options = values.size();
  args.kv_get_callback = Store::Get;
  args.kv_get_user_arg = store;
  args.kv_put_callback = Store::Put;
  args.kv_put_user_arg = store;
  Result result = Take(Api().PJRT_Client_Create(&args));
  if (result.ok()) *client = args.client;
  return result;
}

void DestroyClient(PJRT_Client* client) { Query(Api().PJRT_Client_Destroy, &PJRT_Client_Destroy_Args::client, client); }

// Runs `body(number, client)` in each process.
void RunProcesses(const ProcessOptions& options, const std::function<void(int, PJRT_Client*)>& body) {
  Store store;
  std::vector<std::thread> threads;
  for (int n = 0; n < options.count; ++n) {
    threads.emplace_back([&, n] {
      PJRT_Client* client = nullptr;
      const Result created = CreateProcess(&store, n, options, &client);
      ASSERT_TRUE(created.ok()) << created.message;
      body(n, client);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<PJRT_Device*> OwnDevices(PJRT_Client* client) {
  const auto args = Query(Api().PJRT_Client_AddressableDevices, &PJRT_Client_AddressableDevices_Args::client, client);
  return {args.addressable_devices, args.addressable_devices + args.num_addressable_devices};
}

// Compiles a program for all devices, and runs it with an argument of 4 elements on each of this process.
template <typename T>
Result RunOnOwn(PJRT_Client* client, int number, const std::string& code, int type,
                std::vector<std::vector<T>>* values) {
  PJRT_LoadedExecutable* executable = nullptr;
  if (Result result = Compile(client, code, "hlo", CompileOptionsOf(4, 1), &executable); !result.ok()) return result;
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (size_t d = 0; d < 2; ++d) {
    std::vector<T> x;
    for (int i = 0; i < 4; ++i) x.push_back(static_cast<T>(10 * (2 * number + static_cast<int>(d)) + i));
    arguments.push_back({MakeBuffer<T>(client, OwnDevices(client)[d], type, x, {4})});
  }
  Result ran = Execute(executable, arguments, &results);
  values->clear();
  for (size_t d = 0; d < 2; ++d) {
    if (ran.ok()) {
      EXPECT_TRUE(ReadBuffer(results[d][0], &values->emplace_back()).ok());
    }
    if (results[d][0] != nullptr) Destroy(results[d][0]);
    Destroy(arguments[d][0]);
  }
  Destroy(executable);
  return ran;
}

std::string Sum(const std::string& type, const std::string& groups = "{0,1,2,3}") {
  return "HloModule sum, replica_count=4\nadd {\n  a = " + type + "[] parameter(0)\n  b = " + type +
         "[] parameter(1)\n  ROOT s = " + type + "[] add(a, b)\n}\nENTRY e {\n  x = " + type +
         "[4] parameter(0)\n  ROOT y = " + type + "[4] all-reduce(x), replica_groups={" + groups + "}, to_apply=add\n}";
}

TEST(ProcessesTest, EachHasTheDevicesOfAll) {
  RunProcesses({}, [](int number, PJRT_Client* client) {
    const auto index = Query(Api().PJRT_Client_ProcessIndex, &PJRT_Client_ProcessIndex_Args::client, client);
    EXPECT_EQ(index.process_index, number);
    const auto all = Query(Api().PJRT_Client_Devices, &PJRT_Client_Devices_Args::client, client);
    ASSERT_EQ(all.num_devices, 4u);
    for (size_t d = 0; d < 4; ++d) {
      const auto get =
          Query(Api().PJRT_Device_GetDescription, &PJRT_Device_GetDescription_Args::device, all.devices[d]);
      const auto id = Query(Api().PJRT_DeviceDescription_Id, &PJRT_DeviceDescription_Id_Args::device_description,
                            get.device_description);
      const auto process = Query(Api().PJRT_DeviceDescription_ProcessIndex,
                                 &PJRT_DeviceDescription_ProcessIndex_Args::device_description, get.device_description);
      const auto own = Query(Api().PJRT_Device_IsAddressable, &PJRT_Device_IsAddressable_Args::device, all.devices[d]);
      const auto local =
          Query(Api().PJRT_Device_LocalHardwareId, &PJRT_Device_LocalHardwareId_Args::device, all.devices[d]);
      EXPECT_EQ(id.id, static_cast<int>(d));
      EXPECT_EQ(process.process_index, static_cast<int>(d / 2));
      EXPECT_EQ(own.is_addressable, static_cast<int>(d / 2) == number);
      EXPECT_EQ(local.local_hardware_id, own.is_addressable ? static_cast<int>(d % 2) : -1);
      auto memory = Garbage<PJRT_Device_DefaultMemory_Args>();
      memory.device = all.devices[d];
      EXPECT_EQ(Take(Api().PJRT_Device_DefaultMemory(&memory)).ok(), own.is_addressable);
    }
    DestroyClient(client);
  });
}

TEST(ProcessesTest, TheChipsOfATpuAreDivided) {
  RunProcesses({.device = "v5p:2x2x1"}, [](int, PJRT_Client* client) {
    EXPECT_EQ(OwnDevices(client).size(), 2u);
    DestroyClient(client);
  });
}

TEST(ProcessesTest, CollectivesGoBetweenProcesses) {
  RunProcesses({}, [](int number, PJRT_Client* client) {
    for (int run = 0; run < 3; ++run) {
      std::vector<std::vector<float>> sums;
      Result ran = RunOnOwn(client, number, Sum("f32"), kF32, &sums);
      ASSERT_TRUE(ran.ok()) << ran.message;
      EXPECT_EQ(sums, (std::vector<std::vector<float>>(2, {60, 64, 68, 72})));
      std::vector<std::vector<int32_t>> integers;
      ran = RunOnOwn(client, number, Sum("s32", "{3,0},{1,2}"), kS32, &integers);
      ASSERT_TRUE(ran.ok()) << ran.message;
      EXPECT_EQ(integers, (std::vector<std::vector<int32_t>>(2, {30, 32, 34, 36})));
      std::vector<std::vector<float>> moved;
      ran = RunOnOwn(client, number,
                     "HloModule move, replica_count=4\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] "
                     "collective-permute(x), source_target_pairs={{0,1},{1,2},{2,3}}\n}",
                     kF32, &moved);
      ASSERT_TRUE(ran.ok()) << ran.message;
      const auto of = [](float device) {
        return std::vector<float>{10 * device, 10 * device + 1, 10 * device + 2, 10 * device + 3};
      };
      EXPECT_EQ(moved, number == 0 ? (std::vector<std::vector<float>>{{0, 0, 0, 0}, of(0)})
                                   : (std::vector<std::vector<float>>{of(1), of(2)}));
    }
    DestroyClient(client);
  });
}

TEST(ProcessesTest, AProcessThatHasEndedIsNamed) {
  RunProcesses({}, [](int number, PJRT_Client* client) {
    std::vector<std::vector<float>> sums;
    ASSERT_TRUE(RunOnOwn(client, number, Sum("f32"), kF32, &sums).ok());
    if (number == 0) {
      const Result ran = RunOnOwn(client, number, Sum("f32"), kF32, &sums);
      EXPECT_FALSE(ran.ok());
      EXPECT_NE(ran.message.find("process 1 has ended"), std::string::npos) << ran.message;
    }
    DestroyClient(client);
  });
}

TEST(ProcessesTest, AProcessThatDoesNotComeIsNamed) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  RunProcesses({.collective_seconds = 1}, [&](int number, PJRT_Client* client) {
    std::unique_lock<std::mutex> lock(mutex);
    if (number == 1) {
      changed.wait(lock, [&] { return done; });
    } else {
      std::vector<std::vector<float>> sums;
      const Result ran = RunOnOwn(client, number, Sum("f32"), kF32, &sums);
      EXPECT_FALSE(ran.ok());
      EXPECT_NE(ran.message.find("waited 1 s for process 1"), std::string::npos) << ran.message;
      done = true;
      changed.notify_all();
    }
    lock.unlock();
    DestroyClient(client);
  });
}

TEST(ProcessesTest, DifferentProgramsAreAnError) {
  RunProcesses({}, [](int number, PJRT_Client* client) {
    std::vector<std::vector<float>> sums;
    const std::string gather =
        "HloModule gather, replica_count=4\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[16] all-gather(x), "
        "dimensions={0}, replica_groups={{0,1,2,3}}\n}";
    const Result ran = RunOnOwn(client, number, number == 0 ? Sum("f32") : gather, kF32, &sums);
    EXPECT_FALSE(ran.ok());
    EXPECT_NE(ran.message.find("runs sum"), std::string::npos) << ran.message;
    EXPECT_NE(ran.message.find("runs gather"), std::string::npos) << ran.message;
    DestroyClient(client);
  });
}

TEST(ProcessesTest, AMissingProcessIsAnErrorOfTheClient) {
  Store store(/*limit_in_ms=*/1000);
  PJRT_Client* client = nullptr;
  const Result created = CreateProcess(&store, 0, {.device = "v5p:2x2x1", .collective_seconds = 1}, &client);
  EXPECT_NE(created.message.find("process 1 has not made its client"), std::string::npos) << created.message;
}

}  // namespace
}  // namespace hlokit::pjrt_test
