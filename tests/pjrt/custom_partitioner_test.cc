// SPDX-License-Identifier: Apache-2.0
// Custom-calls that callbacks of the framework divide among devices.
#include <string>
#include <vector>

#include "pjrt/c_api/partitioner_args.h"
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

const PJRT_Custom_Partitioner_Extension* Extension() {
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_Custom_Partitioner) {
      return reinterpret_cast<const PJRT_Custom_Partitioner_Extension*>(e);
    }
  }
  return nullptr;
}

// Doubles the part of a device, or fails.
struct Doubler {
  std::string program;
  std::string error;
  std::string config;  // of the last call
  int cleaned = 0, destroyed = 0;
  std::vector<JAX_CustomCallPartitioner_string> shardings;

  static void Partition(JAX_CustomCallPartitioner_Callbacks* callbacks,
                        JAX_CustomCallPartitioner_Partition_Args* args) {
    auto& self = *static_cast<Doubler*>(callbacks->private_data);
    self.config.assign(args->backend_config.data, args->backend_config.size);
    args->header.data = &self;
    args->header.cleanup_fn = [](void* data) { ++static_cast<Doubler*>(data)->cleaned; };
    args->header.has_error = !self.error.empty();
    if (args->header.has_error) {
      args->header.code = static_cast<PJRT_Error_Code>(kFailedPrecondition);
      args->header.error_msg = {self.error.data(), self.error.size()};
      return;
    }
    EXPECT_EQ(args->num_args, 1u);
    EXPECT_TRUE(args->op_args[0].has_sharding && args->op_result.has_sharding);
    self.shardings.assign(1, args->op_args[0].sharding);
    args->args_sharding = self.shardings.data();
    args->result_sharding = args->op_args[0].sharding;
    args->mlir_module = {self.program.data(), self.program.size()};
  }
};

constexpr char kProgram[] = R"(HloModule divided, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  y = f32[4] custom-call(x), custom_call_target="test.doubled", sharding={devices=[2]<=[2]}, backend_config="seven"
  ROOT z = f32[4] add(y, y), sharding={devices=[2]<=[2]}
})";

Result RunDivided(Doubler* doubler, std::vector<std::vector<float>>* values) {
  JAX_CustomCallPartitioner_Callbacks callbacks = {};
  callbacks.private_data = doubler;
  callbacks.partition = Doubler::Partition;
  callbacks.dtor = [](JAX_CustomCallPartitioner_Callbacks* c) { ++static_cast<Doubler*>(c->private_data)->destroyed; };
  const std::string name = "test.doubled";
  PJRT_Register_Custom_Partitioner_Args args = {sizeof(args), name.data(), name.size(), &callbacks};
  EXPECT_CALL_OK(Extension()->register_custom_partitioner(&args));
  const ClientScope client(2);
  PJRT_LoadedExecutable* executable = nullptr;
  Result result = Compile(client.get(), kProgram, "hlo", CompileOptionsOf(1, 2, /*spmd=*/true), &executable);
  if (result.ok()) {
    std::vector<std::vector<PJRT_Buffer*>> arguments, results;
    for (size_t d = 0; d < 2; ++d) {
      const float first = static_cast<float>(2 * d);
      arguments.push_back({MakeBuffer<float>(client.get(), client.devices()[d], kF32, {first, first + 1}, {2})});
    }
    result = Execute(executable, arguments, &results);
    for (size_t d = 0; d < 2; ++d) {
      EXPECT_TRUE(ReadBuffer(results[d][0], &values->emplace_back()).ok());
      Destroy(results[d][0]);
      Destroy(arguments[d][0]);
    }
    Destroy(executable);
  }
  // The callbacks end with this function: another partitioner takes their place.
  static JAX_CustomCallPartitioner_Callbacks none = {};
  none.partition = [](JAX_CustomCallPartitioner_Callbacks*, JAX_CustomCallPartitioner_Partition_Args* a) {
    a->header.has_error = true;
  };
  args.callbacks = &none;
  EXPECT_CALL_OK(Extension()->register_custom_partitioner(&args));
  EXPECT_EQ(doubler->destroyed, 1);
  return result;
}

TEST(CustomPartitionerTest, TheProgramOfADeviceStandsForTheCall) {
  ASSERT_NE(Extension(), nullptr);
  Doubler doubler;
  doubler.program =
      "module { func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n%y = stablehlo.add %x, %x : tensor<2xf32>\n"
      "return %y : tensor<2xf32> } }";
  std::vector<std::vector<float>> values;
  const Result ran = RunDivided(&doubler, &values);
  ASSERT_TRUE(ran.ok()) << ran.message;
  EXPECT_EQ(values, (std::vector<std::vector<float>>{{0, 4}, {8, 12}}));
  EXPECT_EQ(doubler.config, "seven");
  EXPECT_EQ(doubler.cleaned, 1);
}

TEST(CustomPartitionerTest, AnErrorOfThePartitionerIsThatOfTheCompilation) {
  Doubler doubler;
  doubler.error = "no sharding is good enough";
  std::vector<std::vector<float>> values;
  const Result ran = RunDivided(&doubler, &values);
  EXPECT_EQ(ran.code, kFailedPrecondition);
  EXPECT_NE(ran.message.find("no sharding is good enough"), std::string::npos) << ran.message;
  EXPECT_EQ(doubler.cleaned, 1);
}

TEST(CustomPartitionerTest, AProgramThatIsNoneIsAnError) {
  Doubler doubler;
  doubler.program = "module { nonsense }";
  std::vector<std::vector<float>> values;
  EXPECT_EQ(RunDivided(&doubler, &values).code, kInvalidArgument);
}

TEST(CustomPartitionerTest, AProgramWithOtherParametersIsAnError) {
  Doubler doubler;
  doubler.program =
      "module { func.func @main() -> tensor<2xf32> {\n%y = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
      "return %y : tensor<2xf32> } }";
  std::vector<std::vector<float>> values;
  EXPECT_EQ(RunDivided(&doubler, &values).code, kInvalidArgument);
}

}  // namespace
}  // namespace hlokit::pjrt_test
