// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/duplicates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

TEST(DuplicatesTest, GroupsHaveWhatComputesTheSame) {
  const auto module = Parse(R"(HloModule m
    ENTRY e {
      x = f32[10] parameter(0)
      y = f32[10] parameter(1)
      a = f32[10] add(x, y)
      b = f32[10] add(y, x)
      c = f32[10] subtract(x, y)
      d = f32[10] subtract(y, x)
      ROOT t = (f32[10], f32[10], f32[10], f32[10]) tuple(a, b, c, d)
    })");
  const std::vector<DuplicateGroup> groups = FindDuplicates(*module);
  ASSERT_EQ(groups.size(), 1u);  // subtractions do not commute
  EXPECT_EQ(groups[0].first.name(), "a");
  ASSERT_EQ(groups[0].others.size(), 1u);
  EXPECT_EQ(groups[0].others[0].instruction.name(), "b");
  EXPECT_TRUE(groups[0].others[0].apart.empty());
  EXPECT_EQ(groups[0].bytes, 40);
}

TEST(DuplicatesTest, SaysWhatKeepsThemApart) {
  const auto module = Parse(R"(HloModule m
    ENTRY e {
      x = f32[4,2]{1,0} parameter(0)
      a = f32[4,2]{1,0} negate(x), sharding={replicated}
      b = f32[4,2]{0,1} negate(x)
      ROOT t = (f32[4,2]{1,0}, f32[4,2]{0,1}) tuple(a, b)
    })");
  const std::vector<DuplicateGroup> groups = FindDuplicates(*module);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].others[0].apart, (std::vector<std::string>{"layout", "sharding"}));
}

}  // namespace
}  // namespace hlokit
