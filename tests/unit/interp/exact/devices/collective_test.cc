// SPDX-License-Identifier: Apache-2.0
// Each collective in each group mode, on devices whose operands identify them: 10 * replica + partition.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view kAdd = R"(add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT sum = s32[] add(a, b)
}
)";

// Returns a module whose `id` is s32[1] {10 * replica + partition}, with `body` after it.
std::string WithId(std::string_view body) {
  return StrCat("HloModule m\n", kAdd, R"(digits {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  hundred = s32[] constant(100)
  shifted = s32[] multiply(a, hundred)
  ROOT joined = s32[] add(shifted, b)
}
ENTRY e {
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  ten = u32[] constant(10)
  tens = u32[] multiply(replica, ten)
  number = u32[] add(tens, partition)
  signed = s32[] convert(number)
  id = s32[1] reshape(signed)
)",
                body, "}\n");
}

Strings ResultsOf(std::string_view body, int64_t replicas, int64_t partitions) {
  const TextRun run = RunOnDevices(WithId(body), "", replicas, partitions);
  EXPECT_EQ(run.error, "");
  return run.results;
}

std::string ErrorOf(std::string_view body, int64_t replicas, int64_t partitions) {
  return RunOnDevices(WithId(body), "", replicas, partitions).error;
}

TEST(CollectiveTest, AllReduceAmongReplicas) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] all-reduce(id), replica_groups={{0,1}}, to_apply=add", 2, 2),
            (Strings{"s32[1] {10}", "s32[1] {12}", "s32[1] {10}", "s32[1] {12}"}));
}

TEST(CollectiveTest, AllReduceAmongReplicasAndPartitions) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] all-reduce(id), channel_id=1, replica_groups={{0},{1}}, to_apply=add", 2, 2),
            (Strings{"s32[1] {1}", "s32[1] {1}", "s32[1] {21}", "s32[1] {21}"}));
}

TEST(CollectiveTest, AllReduceAmongDevices) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] all-reduce(id), channel_id=1, replica_groups={{0,3},{1,2}}, "
                      "use_global_device_ids=true, to_apply=add",
                      2, 2),
            (Strings{"s32[1] {11}", "s32[1] {11}", "s32[1] {11}", "s32[1] {11}"}));
}

TEST(CollectiveTest, NoGroupsAreOneOfAll) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] all-reduce(id), replica_groups={}, to_apply=add", 3, 1),
            (Strings{"s32[1] {30}", "s32[1] {30}", "s32[1] {30}"}));
}

TEST(CollectiveTest, GroupsAsAnIota) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] all-reduce(id), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), "
                      "use_global_device_ids=true, to_apply=add",
                      1, 4),
            (Strings{"s32[1] {2}", "s32[1] {4}", "s32[1] {2}", "s32[1] {4}"}));
}

TEST(CollectiveTest, AnyFunctionInTheOrderOfTheGroup) {
  EXPECT_EQ(
      ResultsOf("ROOT r = s32[1] all-reduce(id), channel_id=1, replica_groups={{2,0,1}}, use_global_device_ids=true, "
                "to_apply=digits",
                1, 3),
      (Strings{"s32[1] {20001}", "s32[1] {20001}", "s32[1] {20001}"}));
}

TEST(CollectiveTest, SeveralOperandsAndGroupsOfDifferentSizes) {
  EXPECT_EQ(ResultsOf("twice = s32[1] add(id, id)\n"
                      "ROOT r = (s32[1], s32[1]) all-reduce(id, twice), replica_groups={{0,1},{2}}, to_apply=add",
                      3, 1),
            (Strings{"s32[1] {10}", "s32[1] {20}", "s32[1] {10}", "s32[1] {20}", "s32[1] {20}", "s32[1] {40}"}));
}

TEST(CollectiveTest, AllReduceStartAndDone) {
  EXPECT_EQ(
      ResultsOf("s = s32[1] all-reduce-start(id), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, "
                "to_apply=add\nROOT r = s32[1] all-reduce-done(s)",
                1, 2),
      (Strings{"s32[1] {1}", "s32[1] {1}"}));
}

TEST(CollectiveTest, AllGather) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[2] all-gather(id), replica_groups={{1,0}}, dimensions={0}", 2, 2),
            (Strings{"s32[2] {10, 0}", "s32[2] {11, 1}", "s32[2] {10, 0}", "s32[2] {11, 1}"}));
  EXPECT_EQ(ResultsOf("ROOT r = s32[4] all-gather(id), channel_id=1, replica_groups={{0,1}}, dimensions={0}", 2, 2)[3],
            "s32[4] {0, 1, 10, 11}");
  EXPECT_EQ(ResultsOf("ROOT r = s32[2] all-gather(id), channel_id=1, replica_groups={{0,2},{1,3}}, dimensions={0}, "
                      "use_global_device_ids=true",
                      2, 2),
            (Strings{"s32[2] {0, 10}", "s32[2] {1, 11}", "s32[2] {0, 10}", "s32[2] {1, 11}"}));
}

TEST(CollectiveTest, AllGatherAlongAnInnerDimension) {
  EXPECT_EQ(ResultsOf("wide = s32[2,1] broadcast(id), dimensions={1}\n"
                      "ROOT r = s32[2,3] all-gather(wide), replica_groups={}, dimensions={1}",
                      3, 1)[0],
            "s32[2,3] { { 0, 10, 20 }, { 0, 10, 20 } }");
}

TEST(CollectiveTest, AllGatherStartOfSeveral) {
  EXPECT_EQ(
      ResultsOf("s = ((s32[1], s32[1]), (s32[2], s32[2])) all-gather-start(id, id), replica_groups={}, dimensions={0}\n"
                "ROOT r = (s32[2], s32[2]) all-gather-done(s)",
                2, 1),
      (Strings{"s32[2] {0, 10}", "s32[2] {0, 10}", "s32[2] {0, 10}", "s32[2] {0, 10}"}));
}

constexpr std::string_view kFour =
    "steps = s32[4] iota(), iota_dimension=0\nwide = s32[4] broadcast(signed), dimensions={}\n"
    "hundred = s32[] constant(100)\nhundreds = s32[4] broadcast(hundred), dimensions={}\n"
    "scaled = s32[4] multiply(steps, hundreds)\nx = s32[4] add(scaled, wide)\n";

TEST(CollectiveTest, ReduceScatter) {
  const std::string four(kFour);
  EXPECT_EQ(
      ResultsOf(four + "ROOT r = s32[2] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=add", 2, 2),
      (Strings{"s32[2] {10, 210}", "s32[2] {12, 212}", "s32[2] {410, 610}", "s32[2] {412, 612}"}));
  EXPECT_EQ(ResultsOf(four + "ROOT r = s32[1] reduce-scatter(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, "
                             "to_apply=add",
                      2, 2),
            (Strings{"s32[1] {22}", "s32[1] {422}", "s32[1] {822}", "s32[1] {1222}"}));
  EXPECT_EQ(
      ResultsOf(four + "ROOT r = s32[2] reduce-scatter(x), channel_id=1, replica_groups={{3,0},{1,2}}, dimensions={0}, "
                       "use_global_device_ids=true, to_apply=add",
                2, 2),
      (Strings{"s32[2] {411, 611}", "s32[2] {11, 211}", "s32[2] {411, 611}", "s32[2] {11, 211}"}));
}

TEST(CollectiveTest, AsynchronousReduceScatter) {
  EXPECT_EQ(ResultsOf(StrCat(kFour,
                             "s = ((s32[4]), s32[2]) reduce-scatter-start(x), channel_id=1, replica_groups={{0,1}}, "
                             "dimensions={0}, use_global_device_ids=true, to_apply=add\n"
                             "ROOT r = s32[2] reduce-scatter-done(s)"),
                      1, 2),
            (Strings{"s32[2] {1, 201}", "s32[2] {401, 601}"}));
}

TEST(CollectiveTest, AllToAllOfAnArray) {
  const std::string four(kFour);
  EXPECT_EQ(ResultsOf(four + "ROOT r = s32[4] all-to-all(x), replica_groups={{0,1}}, dimensions={0}", 2, 1),
            (Strings{"s32[4] {0, 100, 10, 110}", "s32[4] {200, 300, 210, 310}"}));
  EXPECT_EQ(
      ResultsOf(four + "ROOT r = s32[4] all-to-all(x), channel_id=1, replica_groups={{1,0}}, dimensions={0}", 2, 2),
      (Strings{"s32[4] {201, 301, 200, 300}", "s32[4] {1, 101, 0, 100}", "s32[4] {211, 311, 210, 310}",
               "s32[4] {11, 111, 10, 110}"}));
}

TEST(CollectiveTest, AllToAllOfATuple) {
  EXPECT_EQ(ResultsOf("hundred = s32[1] constant({100})\nplus = s32[1] add(id, hundred)\n"
                      "ROOT r = (s32[1], s32[1]) all-to-all(id, plus), channel_id=1, replica_groups={{0,1}}",
                      1, 2),
            (Strings{"s32[1] {0}", "s32[1] {1}", "s32[1] {100}", "s32[1] {101}"}));
}

TEST(CollectiveTest, CollectivePermute) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-permute(id), source_target_pairs={{0,1},{1,2}}", 3, 1),
            (Strings{"s32[1] {0}", "s32[1] {0}", "s32[1] {10}"}));
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-permute(id), channel_id=1, source_target_pairs={{0,1},{1,0}}", 2, 2),
            (Strings{"s32[1] {1}", "s32[1] {0}", "s32[1] {11}", "s32[1] {10}"}));
  EXPECT_EQ(
      ResultsOf("s = (s32[1], s32[1], u32[], u32[]) collective-permute-start(id), source_target_pairs={{0,1},{1,0}}\n"
                "ROOT r = s32[1] collective-permute-done(s)",
                2, 1),
      (Strings{"s32[1] {10}", "s32[1] {0}"}));
}

TEST(CollectiveTest, CollectivePermuteOfSeveralOperands) {
  EXPECT_EQ(ResultsOf("twice = s32[1] add(id, id)\n"
                      "ROOT r = (s32[1], s32[1]) collective-permute(id, twice), source_target_pairs={{1,0}}",
                      2, 1),
            (Strings{"s32[1] {10}", "s32[1] {20}", "s32[1] {0}", "s32[1] {0}"}));
}

TEST(CollectiveTest, AsynchronousAllToAll) {
  EXPECT_EQ(ResultsOf(StrCat(kFour,
                             "s = ((s32[4]), s32[4]) all-to-all-start(x), channel_id=1, replica_groups={{0,1}}, "
                             "dimensions={0}\nROOT r = s32[4] all-to-all-done(s)"),
                      1, 2),
            (Strings{"s32[4] {0, 100, 1, 101}", "s32[4] {200, 300, 201, 301}"}));
}

TEST(CollectiveTest, CollectivePermuteOfSlices) {
  EXPECT_EQ(ResultsOf(StrCat(kFour,
                             "one = s32[] constant(1)\ntwo = s32[] constant(2)\nfrom = (s32[]) tuple(one)\n"
                             "to = (s32[]) tuple(two)\nzero = s32[] constant(0)\n"
                             "out = s32[4] broadcast(zero), dimensions={}\n"
                             "ROOT r = s32[4] collective-permute(x, out, from, to), "
                             "source_target_pairs={{0,1}}, slice_sizes={{2}}"),
                      2, 1),
            (Strings{"s32[4] {0, 0, 0, 0}", "s32[4] {0, 0, 100, 200}"}));
}

TEST(CollectiveTest, CollectiveBroadcast) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-broadcast(id), replica_groups={{1,0}}", 3, 1),
            (Strings{"s32[1] {10}", "s32[1] {10}", "s32[1] {0}"}));
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-broadcast(id), channel_id=1, replica_groups={{1,0}}", 2, 2),
            (Strings{"s32[1] {1}", "s32[1] {1}", "s32[1] {11}", "s32[1] {11}"}));
}

TEST(CollectiveTest, CollectiveBroadcastFromDynamicRoots) {
  EXPECT_EQ(ResultsOf("root = s32[1] constant({1})\n"
                      "ROOT r = s32[1] collective-broadcast(id, root), replica_groups={{0,2}}, has_dynamic_root=true",
                      3, 1),
            (Strings{"s32[1] {20}", "s32[1] {0}", "s32[1] {20}"}));
  EXPECT_EQ(ErrorOf("root = s32[1] constant({-1})\n"
                    "ROOT r = s32[1] collective-broadcast(id, root), replica_groups={{0,1}}, has_dynamic_root=true",
                    2, 1),
            "r: replica 0, partition 0: the root of operand 0 is -1; the group has 2 devices");
}

TEST(CollectiveTest, CollectiveReduceIsAtTheFirstDeviceOfTheGroup) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-reduce(id), replica_groups={{0,1},{3,2},{4}}, to_apply=digits", 5, 1),
            (Strings{"s32[1] {10}", "s32[1] {0}", "s32[1] {0}", "s32[1] {3020}", "s32[1] {40}"}));
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-reduce(id), replica_groups={}, to_apply=add", 3, 1),
            (Strings{"s32[1] {30}", "s32[1] {0}", "s32[1] {0}"}));
}

TEST(CollectiveTest, CollectiveReduceAmongReplicasAndPartitions) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-reduce(id), replica_groups={{1,0}}, to_apply=add", 2, 2),
            (Strings{"s32[1] {0}", "s32[1] {0}", "s32[1] {10}", "s32[1] {12}"}));
  EXPECT_EQ(
      ResultsOf("ROOT r = s32[1] collective-reduce(id), channel_id=1, replica_groups={{1,0}}, to_apply=add", 2, 2),
      (Strings{"s32[1] {0}", "s32[1] {0}", "s32[1] {22}", "s32[1] {0}"}));
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-reduce(id), channel_id=1, replica_groups={{3,0},{1,2}}, "
                      "use_global_device_ids=true, to_apply=digits",
                      2, 2),
            (Strings{"s32[1] {0}", "s32[1] {110}", "s32[1] {0}", "s32[1] {1100}"}));
}

TEST(CollectiveTest, CollectiveReduceGivesZerosToDevicesInNoGroup) {
  EXPECT_EQ(ResultsOf("ROOT r = s32[1] collective-reduce(id), replica_groups={{1,0}}, to_apply=digits", 3, 1),
            (Strings{"s32[1] {0}", "s32[1] {1000}", "s32[1] {0}"}));
  // Their root is none.
  EXPECT_EQ(ResultsOf("root = s32[1] constant({1})\nROOT r = s32[1] collective-reduce(id, root), "
                      "replica_groups={{0,1}}, has_dynamic_root=true, to_apply=add",
                      3, 1),
            (Strings{"s32[1] {0}", "s32[1] {10}", "s32[1] {0}"}));
}

TEST(CollectiveTest, CollectiveReduceToDynamicRoots) {
  EXPECT_EQ(ResultsOf("roots = s32[2] constant({1, 0})\n"
                      "ROOT r = (s32[1], s32[]) collective-reduce(id, signed, roots), replica_groups={{0,1,2}}, "
                      "has_dynamic_root=true, to_apply=add",
                      3, 1),
            (Strings{"s32[1] {0}", "s32[] 30", "s32[1] {30}", "s32[] 0", "s32[1] {0}", "s32[] 0"}));
  const std::string_view computed =
      "one = u32[] constant(1)\nodd = u32[] add(replica, one)\nhalf = u32[] shift-right-logical(odd, one)\n"
      "is = s32[] convert(half)\nmod = s32[] constant(1)\nbit = s32[] and(is, mod)\nroot = s32[1] reshape(bit)\n"
      "ROOT r = s32[1] collective-reduce(id, root), replica_groups={{3,0},{1,2}}, has_dynamic_root=true, "
      "to_apply=digits";
  // The root is position 0 on devices 0 and 3, and position 1 on devices 1 and 2.
  EXPECT_EQ(ResultsOf(computed, 4, 1), (Strings{"s32[1] {0}", "s32[1] {0}", "s32[1] {1020}", "s32[1] {3000}"}));
}

TEST(CollectiveTest, RootsOfCollectiveReduceArePositionsInTheGroup) {
  const auto error = [](std::string_view root) {
    return ErrorOf(StrCat("root = s32[1] constant({", root,
                          "})\nROOT r = s32[1] collective-reduce(id, root), replica_groups={{0,1,2}}, "
                          "has_dynamic_root=true, to_apply=add"),
                   3, 1);
  };
  EXPECT_EQ(error("3"), "r: replica 0, partition 0: the root of operand 0 is 3; the group has 3 devices");
  EXPECT_EQ(error("-1"), "r: replica 0, partition 0: the root of operand 0 is -1; the group has 3 devices");
}

TEST(CollectiveTest, AsynchronousCollectiveReduce) {
  EXPECT_EQ(ResultsOf("s = ((s32[1]), s32[1]) collective-reduce-start(id), replica_groups={{1,0}}, to_apply=add\n"
                      "ROOT r = s32[1] collective-reduce-done(s)",
                      2, 1),
            (Strings{"s32[1] {0}", "s32[1] {10}"}));
}

// Each device sends one row to the first and two to the second.
constexpr std::string_view kRagged = R"(HloModule m
ENTRY e {
  input = s32[4] parameter(0)
  output = s32[5] parameter(1)
  offsets = s32[2] parameter(2)
  sizes = s32[2] parameter(3)
  places = s32[2] parameter(4)
  received = s32[2] parameter(5)
  ROOT r = s32[5] ragged-all-to-all(input, output, offsets, sizes, places, received), replica_groups={{0,1}}
})";

TEST(CollectiveTest, RaggedAllToAll) {
  const TextRun run = RunOnDevices(kRagged, R"(s32[4] {1, 2, 3, 4}
s32[5] {-1, -1, -1, -1, -1}
s32[2] {0, 1}
s32[2] {1, 2}
s32[2] {0, 0}
s32[2] {1, 1}
s32[4] {5, 6, 7, 8}
s32[5] {-2, -2, -2, -2, -2}
s32[2] {0, 1}
s32[2] {1, 2}
s32[2] {4, 2}
s32[2] {2, 2})",
                                   2, 1);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.results, (Strings{"s32[5] {1, -1, -1, -1, 5}", "s32[5] {2, 3, 6, 7, -2}"}));
}

// Each device sends its one row to both partitions of its replica, at the index of its own number.
TEST(CollectiveTest, RaggedAllToAllAmongPartitions) {
  EXPECT_EQ(ResultsOf("none = s32[2] constant({-1, -1})\nzeros = s32[2] constant({0, 0})\n"
                      "ones = s32[2] constant({1, 1})\nnth = s32[] convert(partition)\n"
                      "places = s32[2] broadcast(nth), dimensions={}\n"
                      "ROOT r = s32[2] ragged-all-to-all(id, none, zeros, ones, places, ones), channel_id=1, "
                      "replica_groups={{0,1}}",
                      2, 2),
            (Strings{"s32[2] {0, 1}", "s32[2] {0, 1}", "s32[2] {10, 11}", "s32[2] {10, 11}"}));
}

TEST(CollectiveTest, RaggedAllToAllNamesWhoDoesNotFit) {
  const std::string device = "s32[4] {1, 2, 3, 4}\ns32[5] {0, 0, 0, 0, 0}\ns32[2] {0, 1}\ns32[2] {1, 2}\n";
  EXPECT_EQ(
      RunOnDevices(kRagged, device + "s32[2] {0, 0}\ns32[2] {1, 1}\n" + device + "s32[2] {4, 2}\ns32[2] {1, 2}", 2, 1)
          .error,
      "r: replica 0, partition 0: replica 0, partition 0 sends 2 rows to replica 1, partition 0, which expects 1");
  EXPECT_EQ(
      RunOnDevices(kRagged, device + "s32[2] {5, 0}\ns32[2] {1, 1}\n" + device + "s32[2] {4, 2}\ns32[2] {2, 2}", 2, 1)
          .error,
      "r: replica 0, partition 0: replica 0, partition 0 sends 1 rows from 0 to 5 of replica 0, partition 0; the "
      "input has 4, the output 5");
}

TEST(CollectiveTest, ThoseWhoDoNotComeAreNamed) {
  const std::string text = StrCat("HloModule m\n", kAdd, R"(sum {
  x = s32[] parameter(0)
  ROOT total = s32[] all-reduce(x), replica_groups={}, to_apply=add
}
same {
  x = s32[] parameter(0)
  ROOT c = s32[] copy(x)
}
other {
  x = s32[] parameter(0)
  ROOT elsewhere = s32[] all-reduce(x), replica_groups={}, to_apply=add
}
ENTRY e {
  id = u32[] replica-id()
  i = s32[] convert(id)
  ROOT r = s32[] conditional(i, i, i, i), branch_computations={sum, same, other}
})");
  EXPECT_EQ(RunOnDevices(text, "", 3, 1).error,
            "total: replica 0, partition 0: deadlock: waiting for devices that do not reach this collective: replica "
            "1, partition 0 has finished; replica 2, partition 0 waits at elsewhere");
}

TEST(CollectiveTest, GroupsThatTheRunDoesNotHave) {
  EXPECT_EQ(ErrorOf("ROOT r = s32[1] all-reduce(id), replica_groups={{0,1}}, to_apply=add", 1, 2),
            "r: replica 0, partition 0: replica_groups contain replica 1, but there are 1 x 2 devices (replicas x "
            "partitions)");
  EXPECT_EQ(ErrorOf("ROOT r = s32[1] all-reduce(id), replica_groups={{0,1}}, to_apply=add", 3, 1),
            "r: replica 0, partition 0: replica 2, partition 0 is in none of the replica groups; the run has 3 x 1 "
            "devices");
  EXPECT_EQ(ErrorOf("ROOT r = s32[2] all-gather(id), replica_groups={}, dimensions={0}", 3, 1),
            "r: replica 0, partition 0: the shapes are those of groups of 2 devices; in this run, of 3 x 1 devices "
            "(replicas x partitions), a group has 3");
}

TEST(CollectiveTest, InLoopsEachTripMeets) {
  const std::string text = StrCat("HloModule m\n", kAdd, R"(less {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = s32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], s32[]) tuple(j, y)
}
ENTRY e {
  id = u32[] partition-id()
  x = s32[] convert(id)
  zero = s32[] constant(0)
  t = (s32[], s32[]) tuple(zero, x)
  w = (s32[], s32[]) while(t), condition=less, body=body
  ROOT r = s32[] get-tuple-element(w), index=1
})");
  EXPECT_EQ(RunOnDevices(text, "", 1, 2).results, (Strings{"s32[] 4", "s32[] 4"}));
}

TEST(CollectiveTest, ANarrowOperandOfAWideFunction) {
  const std::string text = R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = bf16[1] constant({1.5})
  ROOT r = bf16[1] all-reduce(x), replica_groups={}, to_apply=add
})";
  EXPECT_EQ(RunOnDevices(text, "", 3, 1).results, (Strings{"bf16[1] {4.5}", "bf16[1] {4.5}", "bf16[1] {4.5}"}));
}

}  // namespace
}  // namespace hlokit::interp
