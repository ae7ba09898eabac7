// SPDX-License-Identifier: Apache-2.0
#include "passes/target/collective_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/parsed_module.h"

namespace hlokit::tpu {
namespace {

TEST(CollectiveTableTest, WhatRunsBetweenStartAndEndOverlaps) {
  const auto module = Parse(R"(HloModule m, is_scheduled=true
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }
    ENTRY e {
      x = f32[10] parameter(0)
      start = f32[10] all-reduce-start(x), replica_groups={{0,1}}, to_apply=sum
      n = f32[10] negate(x)
      done = f32[10] all-reduce-done(start)
      r = f32[10] all-reduce(n), replica_groups={{0,1}}, to_apply=sum
      ROOT t = (f32[10], f32[10]) tuple(done, r)
    })");
  const std::vector<CollectiveRow> rows = CollectiveTable(*module);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].instruction.name(), "start");
  EXPECT_EQ(rows[0].kind, "all-reduce");
  EXPECT_EQ(rows[0].groups, "{{0,1}}");
  EXPECT_EQ(rows[0].bytes, 40);
  EXPECT_TRUE(rows[0].async);
  EXPECT_EQ(rows[0].overlapped_instructions, 1);
  EXPECT_EQ(rows[0].overlapped_flops, 10);
  EXPECT_FALSE(rows[1].async);
  const auto totals = CountByKind(rows);
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals.at("all-reduce").count, 2);
  EXPECT_EQ(totals.at("all-reduce").async, 1);
  EXPECT_EQ(totals.at("all-reduce").bytes, 80);
}

}  // namespace
}  // namespace hlokit::tpu
