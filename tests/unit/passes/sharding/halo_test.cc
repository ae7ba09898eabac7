// SPDX-License-Identifier: Apache-2.0
// Halos against a count of what each result needs.
#include "passes/sharding/partition/halo.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace hlokit::spmd {
namespace {

// Every element that a counting result of device i needs is within the device's window, and fetched by a piece.
void CheckCovers(const HaloWindow& window, int64_t tiles) {
  const HaloPlan plan = PlanHalo(window, tiles);
  for (int64_t o = window.begin; o < window.end; ++o) {
    const int64_t device = o / plan.output_part;
    for (int64_t k = 0; k < window.size; ++k) {
      const int64_t position = o * window.stride - window.low + k;
      const bool hole = position % window.base_dilation != 0;
      const int64_t element = position / window.base_dilation;
      if (hole || position < 0 || element >= window.input) continue;
      const int64_t first = plan.First(window, device);
      ASSERT_GE(element, first);
      ASSERT_LT(element, first + plan.width);
      const int64_t owner = element / plan.input_part, within = element % plan.input_part;
      const auto piece = std::find_if(plan.pieces.begin(), plan.pieces.end(),
                                      [&](const HaloPlan::Piece& p) { return device + p.hop == owner; });
      ASSERT_NE(piece, plan.pieces.end());
      EXPECT_TRUE(piece->begin <= within && within < piece->end);
      EXPECT_TRUE(piece->needed[static_cast<size_t>(device)]);
    }
  }
}

TEST(Halo, RandomWindows) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int n = 0; n < 2000; ++n) {
    HaloWindow window;
    window.input = draw(1, 20);
    window.output = draw(1, 20);
    window.stride = draw(1, 3);
    window.low = draw(-5, 5);
    window.base_dilation = draw(1, 3);
    window.size = draw(1, 5);
    window.begin = draw(0, window.output - 1);
    window.end = draw(window.begin, window.output);
    CheckCovers(window, draw(2, 8));
  }
}

TEST(Halo, NeighborsOfAConvolution) {
  HaloWindow window;
  window.input = window.output = window.end = 16;
  window.low = 1;
  window.size = 3;
  const HaloPlan plan = PlanHalo(window, 4);
  EXPECT_EQ(plan.pieces.size(), 3u);
  EXPECT_EQ(plan.width, 6);
  EXPECT_EQ(plan.exchanged, 2);
  EXPECT_TRUE(plan.same_start);
  EXPECT_TRUE(plan.outside);
}

}  // namespace
}  // namespace hlokit::spmd
