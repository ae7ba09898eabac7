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

TEST(CollectiveTableTest, CollectivesOfALoopRunAsOftenAsItDoes) {
  const auto module = Parse(R"(HloModule m, num_partitions=2
    body {
      p = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      one = s32[] constant(1)
      next = s32[] add(i, one)
      v = f32[8] get-tuple-element(p), index=1
      moved = f32[8] collective-permute(v), channel_id=1, source_target_pairs={{0,1},{1,0}}
      ROOT t = (s32[], f32[8]) tuple(next, moved)
    }
    condition {
      p = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      five = s32[] constant(5)
      ROOT less = pred[] compare(i, five), direction=LT
    }
    ENTRY e {
      x = f32[4] parameter(0)
      whole = f32[8] all-gather(x), channel_id=2, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
      zero = s32[] constant(0)
      state = (s32[], f32[8]) tuple(zero, whole)
      loop = (s32[], f32[8]) while(state), condition=condition, body=body
      ROOT r = f32[8] get-tuple-element(loop), index=1
    })");
  const std::vector<CollectiveRow> rows = CollectiveTable(*module);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].runs, 5);
  EXPECT_EQ(rows[1].runs, 1);
  EXPECT_EQ(rows[1].bytes, 16);
  EXPECT_EQ(rows[1].result_bytes, 32);
  const auto totals = CountByKind(rows);
  EXPECT_EQ(totals.at("collective-permute").count, 1);
  EXPECT_EQ(totals.at("collective-permute").runs, 5);
  EXPECT_EQ(totals.at("collective-permute").bytes, 160);
}

}  // namespace
}  // namespace hlokit::tpu
