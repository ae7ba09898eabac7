// SPDX-License-Identifier: Apache-2.0
// Programs partitioned by hand over 2, 4 and 8 devices, joined by collectives, equal the whole program. Integers, so
// that the order of sums has no effect.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "ir/core/str_cat.h"
#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

// Arrangement of the devices of a run, and the attributes of a collective among all of them.
struct Arrangement {
  const char* name;
  bool partitions;                // otherwise replicas
  const char* reduce_attributes;  // all-reduce, all-gather, reduce-scatter
  const char* move_attributes;    // all-to-all, ragged-all-to-all
  const char* give_attributes;    // collective-broadcast, from the first device of the group
};
constexpr Arrangement kArrangements[] = {
    {"replicas", false, "replica_groups={}", "replica_groups={}", "replica_groups={{$ALL}}"},
    {"partitions", true, "channel_id=1, replica_groups={{0}}", "channel_id=1, replica_groups={}",
     "channel_id=1, replica_groups={{$ALL}}"},
    {"flattened", true, "channel_id=1, replica_groups=[1,$N]<=[$N], use_global_device_ids=true",
     "channel_id=1, replica_groups=[1,$N]<=[$N]", "channel_id=1, replica_groups=[1,$N]<=[$N]"},
};

constexpr std::string_view kWhole = R"(HloModule whole
add {
  p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q)
}
ENTRY e {
  i = s32[8,16] iota(), iota_dimension=1
  j = s32[8,16] iota(), iota_dimension=0
  x = s32[8,16] multiply(i, j)
  w = s32[16,8] iota(), iota_dimension=0
  v = s32[8,24] iota(), iota_dimension=1
  h = s32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = s32[8,24] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = s32[16,8] transpose(x), dimensions={1,0}
  zero = s32[] constant(0)
  padded = s32[8,17] pad(x, zero), padding=0_0x1_0
  before = s32[8,16] slice(padded), slice={[0:8], [0:16]}
  d = s32[8,16] subtract(x, before)
  total = s32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  ROOT r = (s32[8,24], s32[16,8], s32[8,16], s32[8,16], s32[]) tuple(y, t, x, d, total)
})";

// Each device computes its shard of the same arrays from its number. $N devices; $C = 16 / N columns, $R = 8 / N rows.
constexpr std::string_view kSharded = R"(HloModule sharded
add {
  p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q)
}
ENTRY e {
  number = u32[] $ID()
  id = s32[] convert(number)
  zero = s32[] constant(0)
  columns = s32[] constant($C)
  rows = s32[] constant($R)
  column = s32[] multiply(id, columns)
  row = s32[] multiply(id, rows)

  // Columns of x and rows of w: the product is a sum over devices, of which each keeps some rows.
  i0 = s32[8,$C] iota(), iota_dimension=1
  c = s32[8,$C] broadcast(column), dimensions={}
  i = s32[8,$C] add(i0, c)
  j = s32[8,$C] iota(), iota_dimension=0
  x = s32[8,$C] multiply(i, j)
  w0 = s32[$C,8] iota(), iota_dimension=0
  cw = s32[$C,8] broadcast(column), dimensions={}
  w = s32[$C,8] add(w0, cw)
  part = s32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = s32[$R,8] reduce-scatter(part), $REDUCE, dimensions={0}, to_apply=add
  // v is on the first device only, which gives it to the others.
  made = s32[8,24] iota(), iota_dimension=1
  nothing = s32[8,24] broadcast(zero), dimensions={}
  first = pred[] compare(id, zero), direction=EQ
  held = s32[8,24] select(first, made, nothing)
  v = s32[8,24] collective-broadcast(held), $GIVE
  y0 = s32[$R,24] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = s32[8,24] all-gather(y0), $REDUCE, dimensions={0}

  // From columns to rows by an all-to-all, then all rows of the transpose.
  mine = s32[$C,8] transpose(x), dimensions={1,0}
  pieces = s32[$C,$N,$R] reshape(mine)
  swapped = s32[$C,$N,$R] all-to-all(pieces), $MOVE, dimensions={1}
  turned = s32[$N,$C,$R] transpose(swapped), dimensions={1,0,2}
  t0 = s32[16,$R] reshape(turned)
  t = s32[16,8] all-gather(t0), $REDUCE, dimensions={1}

  // The same exchange with sizes that the devices tell each other: mine are rows $R * id and on, of each device's columns.
  device = s32[$N] iota(), iota_dimension=0
  one_each = s32[] constant($R)
  sizes = s32[$N] broadcast(one_each), dimensions={}
  offsets = s32[$N] multiply(device, sizes)
  places = s32[$N] broadcast(row), dimensions={}
  empty = s32[8,$C] broadcast(zero), dimensions={}
  exchanged = s32[8,$C] ragged-all-to-all(x, empty, offsets, sizes, places, sizes), $MOVE
  by_device = s32[$N,$R,$C] reshape(exchanged)
  by_row = s32[$R,$N,$C] transpose(by_device), dimensions={1,0,2}
  x0 = s32[$R,16] reshape(by_row)
  xs = s32[8,16] all-gather(x0), $REDUCE, dimensions={0}

  // The column to the left of mine is my neighbor's; the first device gets zeros.
  last = s32[8,1] slice(x), slice={[0:8], [$L:$C]}
  left = s32[8,1] collective-permute(last), $PERMUTE
  both = s32[8,$E] concatenate(left, x), dimensions={1}
  before = s32[8,$C] slice(both), slice={[0:8], [0:$C]}
  d0 = s32[8,$C] subtract(x, before)
  d = s32[8,16] all-gather(d0), $REDUCE, dimensions={1}

  mine_total = s32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  total = s32[] all-reduce(mine_total), $REDUCE, to_apply=add
  ROOT r = (s32[8,24], s32[16,8], s32[8,16], s32[8,16], s32[]) tuple(y, t, xs, d, total)
})";

class ShardedTest : public testing::TestWithParam<int> {};

TEST_P(ShardedTest, EqualsTheWhole) {
  const int n = GetParam();
  const TextRun whole = RunText(kWhole);
  ASSERT_EQ(whole.error, "");
  for (const Arrangement& arrangement : kArrangements) {
    std::string pairs, all;
    for (int d = 0; d + 1 < n; ++d) StrAppend(&pairs, d == 0 ? "" : ",", "{", d, ",", d + 1, "}");
    for (int d = 0; d < n; ++d) StrAppend(&all, d == 0 ? "" : ",", d);
    const std::string permute =
        StrCat(arrangement.partitions ? "channel_id=1, " : "", "source_target_pairs={", pairs, "}");
    std::string text = absl::StrReplaceAll(kSharded.data(), {{"$REDUCE", arrangement.reduce_attributes},
                                                             {"$MOVE", arrangement.move_attributes},
                                                             {"$GIVE", arrangement.give_attributes},
                                                             {"$PERMUTE", permute}});
    text = absl::StrReplaceAll(text, {{"$N", std::to_string(n)},
                                      {"$ALL", all},
                                      {"$C", std::to_string(16 / n)},
                                      {"$R", std::to_string(8 / n)},
                                      {"$L", std::to_string(16 / n - 1)},
                                      {"$E", std::to_string(16 / n + 1)},
                                      {"$ID", arrangement.partitions ? "partition-id" : "replica-id"}});
    const TextRun run = RunOnDevices(text, "", arrangement.partitions ? 1 : n, arrangement.partitions ? n : 1);
    ASSERT_EQ(run.error, "") << arrangement.name << "\n" << text;
    const size_t leaves = whole.results.size();
    ASSERT_EQ(run.results.size(), leaves * static_cast<size_t>(n));
    for (size_t i = 0; i < run.results.size(); ++i) {
      EXPECT_EQ(run.results[i], whole.results[i % leaves]) << arrangement.name << ", device " << i / leaves;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ShardedTest, testing::Values(2, 4, 8));

}  // namespace
}  // namespace hlokit::interp
