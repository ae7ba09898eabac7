// SPDX-License-Identifier: Apache-2.0
#include "passes/target/attention_cost.h"

#include <gtest/gtest.h>

#include "passes/target/device_description.h"

namespace hlokit::tpu {
namespace {

constexpr AttentionShape kTraining = {
    .heads = 96, .queries = 8192, .keys = 8192, .depth = 128, .causal = true, .query_block = 2048, .key_block = 2048};

double Seconds(const DeviceDescription& machine, AttentionShape shape) { return TimeOf(machine, shape).total; }

TEST(AttentionCostTest, TrainingKernelsAsProfiled) {
  // Qwen3-8B on v6e, 3 sequences of 8192: a layer takes 6.03 ms forward and 13.47 ms backward.
  const DeviceDescription machine = *BuiltinDeviceDescription("v6e");
  AttentionShape shape = kTraining;
  EXPECT_NEAR(Seconds(machine, shape), 6.03e-3, 0.6e-3);
  shape.backward = true;
  EXPECT_NEAR(Seconds(machine, shape), 13.47e-3, 1.3e-3);
}

TEST(AttentionCostTest, FlashAttentionAsProfiledInVectorMemory) {
  // Pallas' flash_attention on v6e with blocks of 512, one sequence of 32 heads: 23.5 us for 512, 238 for 2048.
  const DeviceDescription machine = *BuiltinDeviceDescription("v6e");
  AttentionShape shape{.heads = 32, .queries = 512, .keys = 512, .depth = 128, .causal = true};
  shape.masks_all_blocks = true;
  EXPECT_NEAR(Seconds(machine, shape), 23.5e-6, 2.4e-6);
  shape.queries = shape.keys = 2048;
  EXPECT_NEAR(Seconds(machine, shape), 238e-6, 24e-6);
  // Of 16 blocks of a head, 6 are above the diagonal.
  EXPECT_EQ(TimeOf(machine, shape).blocks, 32 * 10);
  // Its mask costs what it adds to the vector unit.
  shape.masks_all_blocks = false;
  EXPECT_LT(Seconds(machine, shape), 150e-6);
}

TEST(AttentionCostTest, CausalMasksSkipBlocksAboveTheDiagonal) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5p");
  AttentionShape shape = kTraining;
  const double causal = Seconds(machine, shape);
  shape.causal = false;
  // 10 of 16 blocks of 2048.
  EXPECT_NEAR(causal / Seconds(machine, shape), 0.625, 1e-3);
}

TEST(AttentionCostTest, HeadsNarrowerThanTheArrayLeaveItPartlyUnused) {
  // 128 of 256 rows and columns on v6e, all of them on v5p.
  for (const auto& [name, ratio] : {std::pair("v6e", 1.0), std::pair("v5p", 0.5)}) {
    const DeviceDescription machine = *BuiltinDeviceDescription(name);
    AttentionShape shape = kTraining;
    shape.depth = 256;
    const double wide = TimeOf(machine, shape).matrix;
    shape.depth = 128;
    EXPECT_NEAR(TimeOf(machine, shape).matrix / wide, ratio, 0.01) << name;
  }
}

TEST(AttentionCostTest, SmallBlocksOverlapLessAndFetchMore) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v6e");
  AttentionShape shape = kTraining;
  shape.causal = false;
  const AttentionTime large = TimeOf(machine, shape);
  shape.query_block = shape.key_block = 128;
  const AttentionTime small = TimeOf(machine, shape);
  EXPECT_GT(small.total, 1.5 * large.total);
  EXPECT_DOUBLE_EQ(small.total, small.matrix + std::max(small.vector, small.transcendental));
  EXPECT_NEAR(small.refetched_bytes / large.refetched_bytes, 63.0 / 3, 1e-9);
}

}  // namespace
}  // namespace hlokit::tpu
