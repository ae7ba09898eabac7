// SPDX-License-Identifier: Apache-2.0
// The extension for estimates, and what compiled programs say of a simulated TPU.
#include <map>
#include <string>
#include <string_view>

#include "pjrt/c_api/simulation_args.h"
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr std::string_view kDot =
    R"(module @dot { func.func @main(%x: tensor<256x512xf32>, %w: tensor<512x128xf32>) -> tensor<256x128xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x128xf32>) -> tensor<256x128xf32>
  return %y : tensor<256x128xf32> } })";
constexpr std::string_view kSharded = R"(module @sharded attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<1024x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %y : tensor<256xf32> } })";

const HlokitSimulation_Extension* Extension() {
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_HlokitSimulation) return reinterpret_cast<const HlokitSimulation_Extension*>(e);
  }
  return nullptr;
}

struct Texts {
  std::string text, json, document;
};

Result Simulate(std::string_view code, const std::string& options, std::string_view device, Texts* texts,
                bool with_document = false) {
  auto program = Zeroed<PJRT_Program>();
  std::string copy(code);
  program.code = copy.data();
  program.code_size = copy.size();
  program.format = "mlir";
  program.format_size = 4;
  auto args = Garbage<HlokitSimulation_Create_Args>();
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  args.device = device.data();
  args.device_size = device.size();
  args.with_document = with_document;
  const Result result = Take(Extension()->HlokitSimulation_Create(&args));
  if (!result.ok()) return result;
  *texts = {std::string(args.text, args.text_size), std::string(args.json, args.json_size),
            std::string(args.document, args.document_size)};
  auto destroy = Garbage<HlokitSimulation_Destroy_Args>();
  destroy.simulation = args.simulation;
  EXPECT_CALL_OK(Extension()->HlokitSimulation_Destroy(&destroy));
  return result;
}

TEST(SimulationTest, ReportsAProgramWithoutAClient) {
  ASSERT_NE(Extension(), nullptr);
  Texts texts;
  const Result result = Simulate(kDot, CompileOptionsOf(1, 1), "v5e", &texts);
  ASSERT_TRUE(result.ok()) << result.message;
  EXPECT_TRUE(texts.text.starts_with("module dot on v5e:1x1 (1 chip, 1 device)\n")) << texts.text;
  EXPECT_NE(texts.json.find("\"step_time_us\""), std::string::npos);
  EXPECT_EQ(texts.document, "");
  ASSERT_TRUE(Simulate(kDot, CompileOptionsOf(1, 1), "v5e", &texts, /*with_document=*/true).ok());
  EXPECT_NE(texts.document.find("hlokit.jax.estimate"), std::string::npos);
}

TEST(SimulationTest, PartitionsAsTheOptionsSay) {
  Texts texts;
  const Result result = Simulate(kSharded, CompileOptionsOf(1, 4, /*spmd=*/true), "v5p:2x2x1", &texts);
  ASSERT_TRUE(result.ok()) << result.message;
  EXPECT_NE(texts.text.find("(4 chips, 4 devices)"), std::string::npos) << texts.text;
  EXPECT_NE(texts.text.find("all-reduce"), std::string::npos) << texts.text;
}

TEST(SimulationTest, ErrorsSayWhatIsWrong) {
  Texts texts;
  EXPECT_NE(Simulate(kDot, CompileOptionsOf(1, 1), "v6", &texts).message.find("did you mean `v6e`?"),
            std::string::npos);
  EXPECT_EQ(Simulate(kSharded, CompileOptionsOf(1, 4, true), "v5p:1x1x1", &texts).code, kFailedPrecondition);
  EXPECT_EQ(Simulate("module {", CompileOptionsOf(1, 1), "v5e", &texts).code, kInvalidArgument);
  EXPECT_EQ(Simulate(kDot, "\xff", "v5e", &texts).code, kInvalidArgument);
  EXPECT_EQ(Take(Extension()->HlokitSimulation_Create(nullptr)).code, kInvalidArgument);
  auto args = Garbage<HlokitSimulation_Create_Args>();
  args.program = nullptr;
  EXPECT_EQ(Take(Extension()->HlokitSimulation_Create(&args)).code, kInvalidArgument);
}

std::map<std::string, float> CostsOf(const Options& options) {
  const ClientScope client(0, options);
  PJRT_LoadedExecutable* loaded = nullptr;
  const Result compiled = Compile(client.get(), kDot, "mlir", CompileOptionsOf(1, 1), &loaded);
  EXPECT_TRUE(compiled.ok()) << compiled.message;
  if (!compiled.ok()) return {};
  auto get = Query(Api().PJRT_LoadedExecutable_GetExecutable,
                   &PJRT_LoadedExecutable_GetExecutable_Args::loaded_executable, loaded);
  const auto costs =
      Query(Api().PJRT_Executable_GetCostAnalysis, &PJRT_Executable_GetCostAnalysis_Args::executable, get.executable);
  std::map<std::string, float> found;
  for (size_t i = 0; i < costs.num_properties; ++i) {
    const PJRT_NamedValue& value = costs.properties[i];
    found[std::string(value.name, value.name_size)] = value.float_value;
  }
  auto destroy = Garbage<PJRT_Executable_Destroy_Args>();
  destroy.executable = get.executable;
  EXPECT_CALL_OK(Api().PJRT_Executable_Destroy(&destroy));
  Destroy(loaded);
  return found;
}

TEST(SimulationTest, CostsHaveTheKeysOfXla) {
  const std::map<std::string, float> on_cpu = CostsOf({});
  const std::map<std::string, float> expected = {{"flops", 2.0f * 256 * 512 * 128}, {"transcendentals", 0.0f},
                                                 {"bytes accessed", 917504.0f},     {"bytes accessed0{}", 524288.0f},
                                                 {"bytes accessed1{}", 262144.0f},  {"bytes accessedout{}", 131072.0f},
                                                 {"utilization0{}", 1.0f},          {"utilization1{}", 1.0f}};
  EXPECT_EQ(on_cpu, expected);
  std::map<std::string, float> on_tpu = CostsOf({.texts = {{"device", "v5p:1x1x1"}}});
  EXPECT_GT(on_tpu["optimal_seconds"], 0.0f);
  on_tpu.erase("optimal_seconds");
  EXPECT_EQ(on_tpu, expected);
}

}  // namespace
}  // namespace hlokit::pjrt_test
