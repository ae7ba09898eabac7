// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls, most of them right and some with wrong or deleted objects: an error or the documented
// behavior, never a crash, and the values are right in the end.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr char kPrograms[][400] = {
    R"(module { func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
      %c = stablehlo.constant dense<2.0> : tensor<4xf32>
      %y = stablehlo.multiply %x, %c : tensor<4xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      return %y, %z : tensor<4xf32>, tensor<f32> } })",
    R"(module { func.func @main(%x: tensor<4xf32> {jax.buffer_donor = true}, %y: tensor<4xf32>) -> tensor<4xf32> {
      %z = stablehlo.add %x, %y : tensor<4xf32>
      return %z : tensor<4xf32> } })",
    R"(module { func.func @main() -> tensor<4xf32> {
      %z = stablehlo.iota dim = 0 : tensor<4xf32>
      return %z : tensor<4xf32> } })",
    R"(module { func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32> }) : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32> } })",
};

class Sequence {
 public:
  explicit Sequence(uint32_t seed) : random_(seed), client_(2) {
    for (const char* program : kPrograms) {
      const bool replicated = std::string_view(program).find("all_reduce") != std::string_view::npos;
      PJRT_LoadedExecutable* executable = nullptr;
      const Result result =
          Compile(client_.get(), program, "mlir", CompileOptionsOf(replicated ? 2 : 1, 1), &executable);
      EXPECT_TRUE(result.ok()) << result.message;
      executables_.push_back(executable);
    }
  }
  ~Sequence() {
    for (PJRT_Buffer* buffer : buffers_) Destroy(buffer);
    for (PJRT_Event* event : events_) Destroy(event);
    for (PJRT_LoadedExecutable* executable : executables_) Destroy(executable);
  }

  void Step() {
    switch (Below(12)) {
      case 0:
      case 1:
      case 2:
        buffers_.push_back(MakeBuffer<float>(client_.get(), client_.devices()[Below(2)], kF32,
                                             std::vector<float>(4, static_cast<float>(Below(100))),
                                             Below(4) == 0 ? std::vector<int64_t>{2} : std::vector<int64_t>{4}));
        break;
      case 3:
      case 4:
      case 5:
        Run();
        break;
      case 6:
        if (PJRT_Buffer* const buffer = AnyBuffer()) {
          std::string bytes;
          const Result result = ReadRawBuffer(buffer, &bytes);
          EXPECT_EQ(result.ok(), !IsDeleted(buffer)) << result.message;
        }
        break;
      case 7:
        if (PJRT_Buffer* const buffer = AnyBuffer()) {
          auto args = Garbage<PJRT_Buffer_Delete_Args>();
          args.buffer = buffer;
          EXPECT_CALL_OK(Api().PJRT_Buffer_Delete(&args));
        }
        break;
      case 8:
        if (!buffers_.empty()) {
          const size_t i = Below(buffers_.size());
          Destroy(buffers_[i]);
          buffers_.erase(buffers_.begin() + static_cast<ptrdiff_t>(i));
        }
        break;
      case 9:
        if (PJRT_Buffer* const buffer = AnyBuffer()) {
          auto args = Garbage<PJRT_Buffer_CopyToDevice_Args>();
          args.buffer = buffer;
          args.dst_device = client_.devices()[Below(2)];
          if (Take(Api().PJRT_Buffer_CopyToDevice(&args)).ok()) buffers_.push_back(args.dst_buffer);
        }
        break;
      case 10:
        if (PJRT_Buffer* const buffer = AnyBuffer()) {
          auto args = Garbage<PJRT_Buffer_ReadyEvent_Args>();
          args.buffer = buffer;
          EXPECT_CALL_OK(Api().PJRT_Buffer_ReadyEvent(&args));
          events_.push_back(args.event);
        }
        break;
      case 11:
        if (PJRT_Buffer* const buffer = AnyBuffer()) {
          auto up = Garbage<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
          up.buffer = buffer;
          if (!Take(Api().PJRT_Buffer_IncreaseExternalReferenceCount(&up)).ok()) break;
          auto pointer = Garbage<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
          pointer.buffer = buffer;
          if (Take(Api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer)).ok()) {
            EXPECT_GE(*static_cast<float*>(pointer.device_memory_ptr), 0.0F);
          }
          auto down = Garbage<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
          down.buffer = buffer;
          EXPECT_CALL_OK(Api().PJRT_Buffer_DecreaseExternalReferenceCount(&down));
        }
        break;
    }
  }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  PJRT_Buffer* AnyBuffer() { return buffers_.empty() ? nullptr : buffers_[Below(buffers_.size())]; }

  // Runs a program on arguments of any shape and device.
  void Run() {
    const size_t program = Below(std::size(kPrograms));
    const size_t devices = program == 3 ? 2 : 1;
    const size_t count = program == 2 ? 0 : program == 1 ? 2 : 1;
    std::vector<std::vector<PJRT_Buffer*>> arguments(devices), results;
    for (std::vector<PJRT_Buffer*>& list : arguments) {
      for (size_t i = 0; i < count; ++i) list.push_back(AnyBuffer());
    }
    const Result result = Execute(executables_[program], arguments, &results);
    for (const std::vector<PJRT_Buffer*>& list : results) {
      for (PJRT_Buffer* const buffer : list) {
        EXPECT_EQ(buffer != nullptr, result.ok()) << result.message;
        if (buffer != nullptr) buffers_.push_back(buffer);
      }
    }
  }

  std::mt19937 random_;
  ClientScope client_;
  std::vector<PJRT_LoadedExecutable*> executables_;
  std::vector<PJRT_Buffer*> buffers_;
  std::vector<PJRT_Event*> events_;
};

// HLOKIT_PJRT_SEQUENCES: how many; 50.
TEST(RandomCallsTest, NoSequenceCrashes) {
  const char* const given = std::getenv("HLOKIT_PJRT_SEQUENCES");
  const auto sequences = given == nullptr ? 50U : static_cast<uint32_t>(std::strtoul(given, nullptr, 10));
  for (uint32_t seed = 0; seed < sequences; ++seed) {
    Sequence sequence(seed);
    for (int i = 0; i < 100; ++i) sequence.Step();
  }
}

TEST(RandomCallsTest, ThreadsCallAtTheSameTime) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uint32_t seed = 0; seed < 5; ++seed) {
        Sequence sequence(1000 * (t + 1) + seed);
        for (int i = 0; i < 100; ++i) sequence.Step();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hlokit::pjrt_test
