// SPDX-License-Identifier: Apache-2.0
// Reshard plans between all tilings of small arrays over small meshes.
#include "passes/sharding/partition/reshard_plan.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/partition/tiling_store.h"

namespace hlokit::spmd {
namespace {

Tiling Tiled(int64_t devices, std::vector<AxisList> dims) {
  Tiling tiling;
  tiling.kind = ShardingKind::kTiled;
  tiling.device_count = devices;
  tiling.dims = std::move(dims);
  tiling.Normalize();
  return tiling;
}

// All ways to give some of three axes of size two, in any order, to two dimensions.
std::vector<Tiling> AllTilings() {
  std::vector<Tiling> tilings;
  std::vector<int64_t> strides = {1, 2, 4};
  do {
    for (size_t first = 0; first <= 3; ++first) {
      for (size_t second = 0; first + second <= 3; ++second) {
        std::vector<AxisList> dims(2);
        for (size_t k = 0; k < first; ++k) AppendAxis(&dims[0], {strides[k], 2});
        for (size_t k = first; k < first + second; ++k) AppendAxis(&dims[1], {strides[k], 2});
        Tiling tiling = Tiled(8, std::move(dims));
        if (std::find(tilings.begin(), tilings.end(), tiling) == tilings.end()) tilings.push_back(std::move(tiling));
      }
    }
  } while (std::next_permutation(strides.begin(), strides.end()));
  return tilings;
}

double BytesOfParts(const std::vector<int64_t>& sizes, const Tiling& tiling) {
  double bytes = 4;
  for (int64_t size : LocalSizes(sizes, tiling)) bytes *= static_cast<double>(size);
  return bytes;
}

void CheckAllPairs(const std::vector<int64_t>& sizes) {
  const std::vector<Tiling> tilings = AllTilings();
  double whole = 4;
  for (int64_t size : sizes) whole *= static_cast<double>(size);
  for (const Tiling& from : tilings) {
    for (const Tiling& to : tilings) {
      const ReshardPlan plan = PlanReshard(sizes, 4, from, to);
      ASSERT_EQ(plan.steps.empty(), from == to);
      // Each step changes what its kind may change, and the last one leads to the target.
      Tiling at = from;
      for (const ReshardStep& step : plan.steps) {
        Tiling after = step.after;
        const int64_t tiles = after.tiles();
        after.Normalize();
        switch (step.kind) {
          case MoveKind::kSlice:
            EXPECT_GT(tiles, at.tiles());
            break;
          case MoveKind::kAllGather:
            EXPECT_LT(tiles, at.tiles());
            break;
          case MoveKind::kPermute:
          case MoveKind::kAllToAll:
            EXPECT_EQ(tiles, at.tiles());
            break;
        }
        at = after;
      }
      EXPECT_TRUE(plan.steps.empty() || at == to);
      // Never dearer than to gather everything, nor free where a device gets what it had not.
      EXPECT_LE(plan.cost, whole + 100);
      const bool local = IsSubTilingOrEqual(sizes, to, from);
      EXPECT_GE(plan.cost, local ? 0 : BytesOfParts(sizes, to) / 8);
      EXPECT_LT(plan.cost, local ? 1 : whole + 100);
    }
  }
}

TEST(ReshardPlan, AllPairsOfTilings) { CheckAllPairs({16, 8}); }

TEST(ReshardPlan, UnevenSizes) {
  const Tiling rows = Tiled(4, {{{1, 4}}, {}}), columns = Tiled(4, {{}, {{1, 4}}}), halves = Tiled(4, {{{2, 2}}, {}});
  const std::vector<int64_t> sizes = {10, 7};
  EXPECT_EQ(PlanReshard(sizes, 4, rows, columns).steps.size(), 1u);  // all-to-all of padded parts
  // Parts of three do not make parts of five.
  const ReshardPlan plan = PlanReshard(sizes, 4, rows, halves);
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].kind, MoveKind::kAllGather);
  EXPECT_TRUE(plan.rematerialized);
}

TEST(ReshardPlan, TransposeIsOneAllToAll) {
  const Tiling a = Tiled(8, {{{1, 8}}, {}}), b = Tiled(8, {{}, {{1, 8}}});
  const ReshardPlan plan = PlanReshard(std::vector<int64_t>{64, 64}, 4, a, b);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, MoveKind::kAllToAll);
}

TEST(ReshardPlan, UnrelatedOrdersArePermuted) {
  Tiling a = Tiled(6, {{{1, 6}}, {}}), b = a;
  b.order = {5, 0, 3, 1, 4, 2};
  const ReshardPlan plan = PlanReshard(std::vector<int64_t>{12, 5}, 4, a, b);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, MoveKind::kPermute);
}

}  // namespace
}  // namespace hlokit::spmd
