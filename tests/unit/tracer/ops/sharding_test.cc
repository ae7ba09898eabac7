// SPDX-License-Identifier: Apache-2.0
// Sharding annotations: the tiles of a mesh and a spec, and where they are in lazy IR and HLO.
#include "tracer/ops/sharding.h"

#include "ir/text/printer.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/step/executor.h"
#include "tracer/step/partitioning.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

std::string TextOf(const Mesh& mesh, const PartitionSpec& spec) {
  const absl::StatusOr<Tiling> tiling = TilingOf(mesh, spec);
  return tiling.ok() ? tiling->Text() : std::string(tiling.status().message());
}

TEST(TilingTest, TilesFollowTheAxesOfTheirDimensions) {
  const Mesh mesh = {.shape = {2, 4}, .axis_names = {"data", "model"}};
  EXPECT_EQ(mesh.AxisNamed("model"), 1);
  EXPECT_EQ(mesh.AxisNamed("expert"), std::nullopt);
  EXPECT_EQ(TextOf(mesh, {{0}, {1}}), "{devices=[2,4]0,1,2,3,4,5,6,7}");
  EXPECT_EQ(TextOf(mesh, {{1}, {0}}), "{devices=[4,2]0,4,1,5,2,6,3,7}");
  EXPECT_EQ(TextOf(mesh, {{}, {0, 1}}), "{devices=[1,8]0,1,2,3,4,5,6,7}");
  EXPECT_EQ(TextOf(mesh, {{}, {1}}), "{devices=[1,4,2]0,4,1,5,2,6,3,7 last_tile_dim_replicate}");
  EXPECT_EQ(TextOf(mesh, {{}, {}}), "{replicated}");
  EXPECT_EQ(TextOf({.shape = {2}, .device_ids = {3, 1}}, {{0}}), "{devices=[2]3,1}");
  EXPECT_EQ(TextOf(mesh, {{0}, {0}}), "Each device mesh dimension should appear at most once in partition_spec");
  EXPECT_EQ(TextOf(mesh, {{2}}), "Axis 2 not found in mesh of 2 axes");
  EXPECT_EQ(TextOf({.shape = {2, 0}}, {{0}}), "sizes of a mesh must be positive");
  EXPECT_EQ(TextOf({.shape = {2, 2}, .device_ids = {0}}, {{0}}),
            "Number of device IDs must match the size of the mesh shape");
}

class ShardingTest : public TracingTest {
 protected:
  std::string Hlo(const Tensors& roots) {
    const absl::StatusOr<std::unique_ptr<Module>> module =
        LowerSubgraph(*tracer.device(), CollectSubgraphOfTensors(roots), "step");
    EXPECT_TRUE(module.ok()) << module.status().message();
    std::string text;
    TextWriter out(&text);
    PrintModule(out, **module);
    out.Flush();
    return text;
  }
  const Mesh mesh = {.shape = {2, 2}};
};

TEST_F(ShardingTest, DataIsAnnotatedAsAParameterInEveryStep) {
  const Tensor w = F32({2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(MarkSharding(w, mesh, {{0}, {1}}).ok());
  ASSERT_TRUE(MarkSharding(w, mesh, {{0}, {1}}).ok());
  EXPECT_EQ(MarkSharding(w, mesh, {{1}, {0}}).message(), "Existing annotation must be cleared first.");
  EXPECT_EQ(MarkSharding(w, mesh, {{0}}).message(), "Partition spec length (1) should be equal to the input rank (2).");
  EXPECT_EQ(MarkSharding(w, {.shape = {2}, .device_ids = {1, 1}}, {{0}, {}}).message(),
            "the device IDs of the mesh are negative or not distinct");
  for (int step = 0; step < 2; ++step) {
    EXPECT_NE(Hlo({w + w}).find("parameter(0), sharding={devices=[2,2]0,1,2,3}"), std::string::npos) << Hlo({w + w});
    WriteInPlace(w, w * Scalar(2));
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  EXPECT_EQ(Values(w), (std::vector<double>{4, 8, 12, 16}));
  EXPECT_NE(TensorsToString({w + w}, {})
                .find("device_data(), xla_shape=f32[2,2]{1,0}, device=CPU:0, "
                      "sharding={devices=[2,2]0,1,2,3}"),
            std::string::npos);
}

TEST_F(ShardingTest, ResultsGetACustomCall) {
  const Tensor x = F32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = x * Scalar(3);
  ASSERT_TRUE(MarkSharding(y, mesh, {{}, {1}}).ok());
  const Tensor z = y + x;
  EXPECT_NE(TensorsToString({z}, {}).find("xla::custom_sharding(%3), xla_shape=f32[2,4]{1,0}, "
                                          "sharding={devices=[1,2,2]0,2,1,3 last_tile_dim_replicate}"),
            std::string::npos)
      << TensorsToString({z}, {});
  EXPECT_NE(Hlo({z}).find("custom_call_target=\"Sharding\", sharding={devices=[1,2,2]0,2,1,3 last_tile_dim_replicate}"),
            std::string::npos)
      << Hlo({z});
  EXPECT_EQ(Values(z)[7], 32);
}

TEST_F(ShardingTest, ItIsPartOfTheKey) {
  const auto compiled = [&] { return Counter("UncachedCompile"); };
  const Tensor a = Vector({1, 2}), b = Vector({3, 4});
  Values(a + a);
  EXPECT_EQ(compiled(), 1);
  Values(b + b);
  EXPECT_EQ(compiled(), 1);
  ASSERT_TRUE(MarkSharding(b, {.shape = {2}}, {{0}}).ok());
  EXPECT_EQ(Values(b + b), (std::vector<double>{6, 8}));
  EXPECT_EQ(compiled(), 2);
}

// A device that stands for those of a mesh.
class VirtualDeviceTest : public TracingTest {
 protected:
  VirtualDeviceTest() : TracingTest(Options()) {}

  static TracerOptions Options() {
    TracerOptions options = SmallOptions();
    options.client.platform = std::string(kSpmdPlatform);
    options.client.keep_lowered = true;
    return options;
  }
  static std::string TextOf(const Tensor& tensor) {
    const std::optional<Tiling> tiling = ShardingOf(tensor);
    return tiling ? tiling->Text() : "";
  }
  const Mesh mesh = {.shape = {2, 2}};
};

TEST_F(VirtualDeviceTest, ResultsOfStepsHaveTheDistributionsThatPropagationFinds) {
  const Tensor x = F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), w = F32({2, 2}, {1, 0, 0, 2});
  ASSERT_TRUE(MarkSharding(x, mesh, {{0}, {}}).ok());
  ASSERT_TRUE(MarkSharding(w, mesh, {{}, {1}}).ok());
  const Tensor y = Matmul(x, w), total = Sum(y);
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(TextOf(y), "{devices=[2,2]0,1,2,3}");
  EXPECT_EQ(TextOf(total), "");
  EXPECT_EQ(Values(y), (std::vector<double>{1, 4, 3, 8, 5, 12, 7, 16}));
  EXPECT_EQ(Values(total), (std::vector<double>{56}));
}

TEST_F(VirtualDeviceTest, PartsThatAreNotEqualArePadded) {
  const Tensor x = Vector({1, 2, 3, 4, 5});
  ASSERT_TRUE(MarkSharding(x, {.shape = {4}}, {{0}}).ok());
  EXPECT_EQ(Values(Sum(x)), (std::vector<double>{15}));
  EXPECT_EQ(Values(x * Scalar(2)), (std::vector<double>{2, 4, 6, 8, 10}));
}

TEST_F(VirtualDeviceTest, AnAnnotationCanBeTakenAwayAndReplaced) {
  const Tensor x = Vector({1, 2, 3, 4});
  const Tensor pending = x + x;
  for (const Tensor& tensor : {x, pending}) {
    ASSERT_TRUE(MarkSharding(tensor, {.shape = {4}}, {{0}}).ok());
    ClearSharding(tensor);
    EXPECT_EQ(TextOf(tensor), "");
    ASSERT_TRUE(MarkSharding(tensor, mesh, {{0}}).ok());
    EXPECT_EQ(TextOf(tensor), "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}");
  }
  EXPECT_EQ(Values(pending), (std::vector<double>{2, 4, 6, 8}));
}

}  // namespace
}  // namespace hlokit::lazy
