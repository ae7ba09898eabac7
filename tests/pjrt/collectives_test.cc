// SPDX-License-Identifier: Apache-2.0
// Collectives over eight devices, in one call for all devices and in one call for each, on a thread of its own.
#include <chrono>
#include <functional>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr int64_t kDevices = 8;

// A program over x, f32[8], whose elements on device d are 10 d, 10 d + 1, ..., and the result on each device.
struct Collective {
  const char* name;
  int64_t replicas;
  const char* result_type;
  const char* body;
  std::function<std::vector<float>(int64_t device)> expected;
};

float Element(int64_t device, int64_t i) { return static_cast<float>(10 * device + i); }

const Collective kCollectives[] = {
    {"all_reduce", 8, "tensor<8xf32>",
     R"(%y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<8xf32>) -> tensor<8xf32>)",
     [](int64_t) {
       std::vector<float> y;
       for (int64_t i = 0; i < 8; ++i) y.push_back(static_cast<float>(280 + 8 * i));
       return y;
     }},
    {"all_reduce_of_partitions", 2, "tensor<8xf32>",
     R"(%y = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.maximum %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<8xf32>) -> tensor<8xf32>)",
     [](int64_t d) {
       std::vector<float> y;
       for (int64_t i = 0; i < 8; ++i) y.push_back(Element(d % 4 + 4, i));
       return y;
     }},
    {"all_gather", 8, "tensor<16xf32>",
     R"(%y = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
            replica_groups = dense<[[0, 7], [1, 6], [2, 5], [3, 4]]> : tensor<4x2xi64>}>
            : (tensor<8xf32>) -> tensor<16xf32>)",
     [](int64_t d) {
       std::vector<float> y;
       for (int64_t i = 0; i < 16; ++i) y.push_back(Element(i < 8 ? std::min(d, 7 - d) : std::max(d, 7 - d), i % 8));
       return y;
     }},
    {"reduce_scatter", 8, "tensor<1xf32>",
     R"(%y = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64,
            replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<8xf32>) -> tensor<1xf32>)",
     [](int64_t d) { return std::vector<float>{static_cast<float>(280 + 8 * d)}; }},
    {"all_to_all", 8, "tensor<8xf32>",
     R"(%y = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 8 : i64,
            replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}> : (tensor<8xf32>) -> tensor<8xf32>)",
     [](int64_t d) {
       std::vector<float> y;
       for (int64_t i = 0; i < 8; ++i) y.push_back(Element(i, d));
       return y;
     }},
    {"collective_permute", 8, "tensor<8xf32>",
     R"(%y = "stablehlo.collective_permute"(%x) <{
            source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7]]> : tensor<7x2xi64>}>
            : (tensor<8xf32>) -> tensor<8xf32>)",
     [](int64_t d) {
       std::vector<float> y;
       for (int64_t i = 0; i < 8; ++i) y.push_back(d == 0 ? 0 : Element(d - 1, i));
       return y;
     }},
    {"collective_broadcast", 8, "tensor<8xf32>",
     R"(%y = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[3, 0, 1, 2], [4, 5, 6, 7]]> : tensor<2x4xi64>}>
            : (tensor<8xf32>) -> tensor<8xf32>)",
     [](int64_t d) {
       std::vector<float> y;
       for (int64_t i = 0; i < 8; ++i) y.push_back(Element(d < 4 ? 3 : 4, i));
       return y;
     }},
    {"collective_reduce", 8, "tensor<8xf32>",
     R"(%root = stablehlo.constant dense<2> : tensor<1xi32>
        %y = "stablehlo.collective_reduce"(%x, %root) <{has_dynamic_root,
            replica_groups = dense<[[3, 0, 1, 2], [4, 5, 6, 7]]> : tensor<2x4xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<8xf32>, tensor<1xi32>) -> tensor<8xf32>)",
     [](int64_t d) {
       std::vector<float> y;
       for (int64_t i = 0; i < 8; ++i) y.push_back(static_cast<float>(d == 1 ? 60 + 4 * i : d == 6 ? 220 + 4 * i : 0));
       return y;
     }},
    {"replica_id", 8, "tensor<8xf32>",
     R"(%id = stablehlo.replica_id : tensor<ui32>
        %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
        %y = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8xf32>)",
     [](int64_t d) { return std::vector<float>(8, static_cast<float>(d)); }},
};

class CollectivesTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    const Collective& c = kCollectives[GetParam()];
    const std::string code = std::string("module { func.func @main(%x: tensor<8xf32>) -> ") + c.result_type + " {\n" +
                             c.body + "\nreturn %y : " + c.result_type + " } }";
    const Result result =
        Compile(client_.get(), code, "mlir", CompileOptionsOf(c.replicas, kDevices / c.replicas), &executable_);
    ASSERT_TRUE(result.ok()) << result.message;
    for (int64_t d = 0; d < kDevices; ++d) {
      std::vector<float> x;
      for (int64_t i = 0; i < 8; ++i) x.push_back(Element(d, i));
      arguments_.push_back({MakeBuffer<float>(client_.get(), client_.devices()[static_cast<size_t>(d)], kF32, x, {8})});
    }
  }
  void TearDown() override {
    for (const auto& of_device : arguments_) Destroy(of_device[0]);
    Destroy(executable_);
  }
  void Check(size_t device, PJRT_Buffer* result) {
    std::vector<float> y;
    EXPECT_TRUE(ReadBuffer(result, &y).ok());
    EXPECT_EQ(y, kCollectives[GetParam()].expected(static_cast<int64_t>(device))) << "device " << device;
    Destroy(result);
  }
  const ClientScope client_{kDevices};
  PJRT_LoadedExecutable* executable_ = nullptr;
  std::vector<std::vector<PJRT_Buffer*>> arguments_;
};

TEST_P(CollectivesTest, OneCallForAllDevices) {
  std::vector<std::vector<PJRT_Buffer*>> results;
  const Result ran = Execute(executable_, arguments_, &results);
  ASSERT_TRUE(ran.ok()) << ran.message;
  for (size_t d = 0; d < results.size(); ++d) Check(d, results[d][0]);
}

TEST_P(CollectivesTest, ACallForEachDevice) {
  for (int run = 0; run < 3; ++run) {
    std::vector<std::thread> threads;
    for (size_t d = 0; d < static_cast<size_t>(kDevices); ++d) {
      threads.emplace_back([&, d] {
        std::vector<std::vector<PJRT_Buffer*>> results;
        const Result ran = Execute(executable_, {arguments_[d]}, &results, {}, client_.devices()[d]);
        ASSERT_TRUE(ran.ok()) << ran.message;
        Check(d, results[0][0]);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// Threads of a framework each compile the program for themselves.
TEST_P(CollectivesTest, ACallForEachDeviceWithAnExecutableOfItsOwn) {
  const Collective& c = kCollectives[GetParam()];
  const std::string code = std::string("module { func.func @main(%x: tensor<8xf32>) -> ") + c.result_type + " {\n" +
                           c.body + "\nreturn %y : " + c.result_type + " } }";
  std::vector<std::thread> threads;
  for (size_t d = 0; d < static_cast<size_t>(kDevices); ++d) {
    threads.emplace_back([&, d] {
      PJRT_LoadedExecutable* own = nullptr;
      ASSERT_TRUE(Compile(client_.get(), code, "mlir", CompileOptionsOf(c.replicas, kDevices / c.replicas), &own).ok());
      for (int run = 0; run < 3; ++run) {
        std::vector<std::vector<PJRT_Buffer*>> results;
        const Result ran = Execute(own, {arguments_[d]}, &results, {}, client_.devices()[d]);
        ASSERT_TRUE(ran.ok()) << ran.message;
        Check(d, results[0][0]);
      }
      Destroy(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CollectiveLimitTest, TheLimitOnARunEndsTheWaitForADeviceThatDoesNotCome) {
  const ClientScope client(2, {.numbers = {{"max_seconds", 1}}});
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(),
                      R"(HloModule sum, replica_count=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] all-reduce(x), replica_groups={{0,1}}, to_apply=add
})",
                      "hlo", CompileOptionsOf(2, 1), &executable)
                  .ok());
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2}, {2});
  std::vector<std::vector<PJRT_Buffer*>> results;
  const auto begin = std::chrono::steady_clock::now();
  const Result ran = Execute(executable, {{x}}, &results, {}, client.devices()[0]);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(ran.code, kDeadlineExceeded);
  EXPECT_NE(ran.message.find("waited 1 s for device 1"), std::string::npos) << ran.message;
  if (results[0][0] != nullptr) Destroy(results[0][0]);
  Destroy(x);
  Destroy(executable);
}

// XLA's CPU runs these, too: what is absent takes no part.
TEST(AbsentDevicesTest, OneDeviceReducesAlone) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(),
                                  R"(HloModule sum
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
  z = f32[2] collective-permute(y), source_target_pairs={{0,0},{1,2}}
  alone = f32[2] all-reduce(z), replica_groups={{1}}, to_apply=add
  each = f32[2] all-reduce(alone), replica_groups={{0},{1}}, to_apply=add
  gathered = f32[2] all-gather(each), dimensions={0}, replica_groups={{1}}
  ROOT scattered = f32[2] reduce-scatter(gathered), dimensions={0}, replica_groups={{1}}, to_apply=add
})",
                                  "hlo", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2}, {2});
  std::vector<std::vector<PJRT_Buffer*>> results;
  const Result ran = Execute(executable, {{x}}, &results);
  ASSERT_TRUE(ran.ok()) << ran.message;
  std::vector<float> z;
  EXPECT_TRUE(ReadBuffer(results[0][0], &z).ok());
  EXPECT_EQ(z, (std::vector<float>{1, 2}));
  Destroy(results[0][0]);
  Destroy(x);
  Destroy(executable);
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest, testing::Range<size_t>(0, std::size(kCollectives)),
                         [](const testing::TestParamInfo<size_t>& info) {
                           return std::string(kCollectives[info.param].name);
                         });

}  // namespace
}  // namespace hlokit::pjrt_test
