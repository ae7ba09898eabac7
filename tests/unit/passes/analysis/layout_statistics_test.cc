// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/layout_statistics.h"

#include <gtest/gtest.h>

#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

TEST(LayoutStatisticsTest, CountsArraysAndCopiesToAnotherLayout) {
  const auto module = Parse(R"(HloModule m
    ENTRY e {
      x = f32[4,2]{1,0} parameter(0)
      same = f32[4,2]{1,0} copy(x)
      other = f32[4,2]{0,1} copy(same)
      s = f32[] constant(1)
      ROOT t = (f32[4,2]{0,1}, f32[]) tuple(other, s)
    })");
  const LayoutStatistics layouts = CollectLayouts(*module);
  ASSERT_EQ(layouts.counts.size(), 2u);  // scalars and tuples have no dimensions
  EXPECT_EQ(layouts.counts[0].layout, "{1,0}");
  EXPECT_EQ(layouts.counts[0].arrays, 2);
  EXPECT_EQ(layouts.counts[0].bytes, 64);
  EXPECT_EQ(layouts.counts[1].layout, "{0,1}");
  ASSERT_EQ(layouts.changes.size(), 1u);
  EXPECT_EQ(layouts.changes[0].name(), "other");
  EXPECT_EQ(layouts.change_bytes, 32);
}

}  // namespace
}  // namespace hlokit
