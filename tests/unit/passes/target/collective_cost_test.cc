// SPDX-License-Identifier: Apache-2.0
#include "passes/target/collective_cost.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit::tpu {
namespace {

double Us(const CollectiveTime& time) { return time.total() * 1e6; }

TEST(CollectiveCostTest, AllGatherOverALineAsMeasured) {
  // bf16[2048,8192] over the axis of 4 of an 8x4 v5e slice: 680 us measured.
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  const Topology topology = *ParseTopology(machine, "8x4");
  const int64_t group[] = {0, 8, 16, 24};
  const GroupSpan span = SpanOf(machine, topology, group);
  ASSERT_EQ(span.axes.size(), 1u);
  EXPECT_FALSE(span.axes[0].wraps);
  EXPECT_NEAR(Us(TimeOf(machine, CollectiveKind::kAllGather, 2048.0 * 8192 * 2, span)), 680, 34);
  // Three quarters of the bytes over one link, in any order: at least the time at its nominal rate.
  EXPECT_GT(Us(TimeOf(machine, CollectiveKind::kAllGather, 2048.0 * 8192 * 2, span)),
            0.75 * 2048 * 8192 * 2 / 45e9 * 1e6);
}

TEST(CollectiveCostTest, SmallMessagesCostTheirHops) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  const GroupSpan span = SpanOfAll(machine, *ParseTopology(machine, "16x16"));
  // 8 hops in each direction around two rings of 16.
  EXPECT_NEAR(Us(TimeOf(machine, CollectiveKind::kAllGather, 256, span)), 16, 1e-6);
}

TEST(CollectiveCostTest, AllReduceIsTwoGathersAndAllToAllAQuarter) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5p");
  const GroupSpan span = SpanOfAll(machine, *ParseTopology(machine, "4x4x4"));
  const double gather = TimeOf(machine, CollectiveKind::kAllGather, 1e9, span).ici;
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kReduceScatter, 1e9, span).ici / gather, 1, 1e-9);
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllReduce, 1e9, span).ici / gather, 2, 1e-9);
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllToAll, 1e9 / 64, span).ici / gather, 0.25, 1e-9);
}

TEST(CollectiveCostTest, WrappingHalvesAndAxesAdd) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  std::vector<int64_t> row(16);
  std::iota(row.begin(), row.end(), 0);
  const Topology wide = *ParseTopology(machine, "16x8");
  const double ring = TimeOf(machine, CollectiveKind::kAllGather, 1e9, SpanOf(machine, wide, row)).ici;
  const double all =
      TimeOf(machine, CollectiveKind::kAllGather, 1e9, SpanOfAll(machine, *ParseTopology(machine, "16x16"))).ici;
  EXPECT_NEAR(ring / all, 2 * (15.0 / 16) / (255.0 / 256), 1e-9);
  row.resize(8);
  const double line =
      TimeOf(machine, CollectiveKind::kAllGather, 1e9, SpanOf(machine, *ParseTopology(machine, "8x8"), row)).ici;
  EXPECT_NEAR(line / ring, 2 * (7.0 / 8) / (15.0 / 16), 1e-9);
}

TEST(CollectiveCostTest, SlicesAreFarApart) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  const GroupSpan one = SpanOfAll(machine, *ParseTopology(machine, "16x16"));
  const GroupSpan two = SpanOfAll(machine, *ParseTopology(machine, "2*16x16"));
  EXPECT_EQ(TimeOf(machine, CollectiveKind::kAllReduce, 1e9, one).dcn, 0);
  // Each chip sends half of its 256th to the other slice and receives as much; 8 chips share the 25 GB/s of a host.
  const double gather = 1e9 / 256 / 2 / (25e9 / 8) + 20e-6;
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllGather, 1e9, two).dcn, gather, 1e-9);
  // There and back.
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllReduce, 1e9, two).dcn, 2 * gather, 1e-9);
  // Around 32 slices: 31 of 32 parts of a large message and as many latencies, five steps of a small one.
  const GroupSpan many = SpanOfAll(machine, *ParseTopology(machine, "32*16x16"));
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllGather, 1e9, many).dcn, 1e9 / 256 * 31 / 32 / (25e9 / 8) + 31 * 20e-6,
              1e-9);
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllGather, 256, many).dcn, 5 * 20e-6, 1e-8);
}

TEST(CollectiveCostTest, SquaresOfFourAreLinesOneAfterTheOther) {
  // 402 MB over the four chips of a v5p host: two of three quarters arrive over the link of the second axis, after the
  // first quarter over that of the first.
  const DeviceDescription machine = *BuiltinDeviceDescription("v5p");
  const GroupSpan span = SpanOfAll(machine, *ParseTopology(machine, "2x2x1"));
  const double rate = machine.ici_rate * machine.ici_efficiency;
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllGather, 402e6, span).ici, 0.75 * 402e6 / rate, 1e-9);
}

TEST(CollectiveCostTest, SiblingCoresShareTheLinksOfTheirChip) {
  // All-gathers of the even and of the odd cores of two chips take as long as one of both together at least.
  const DeviceDescription machine = *BuiltinDeviceDescription("v7x");
  const Topology topology = *ParseTopology(machine, "2x1x1");
  const int64_t even[] = {0, 2};
  EXPECT_NEAR(TimeOf(machine, CollectiveKind::kAllGather, 1e9, SpanOf(machine, topology, even)).ici,
              2 * 0.5e9 / (machine.ici_rate * machine.ici_efficiency), 1e-9);
}

TEST(CollectiveCostTest, NoneIsFasterThanTheLinksOfItsChips) {
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    const DeviceDescription machine = *BuiltinDeviceDescription(name);
    for (const char* text : {"2x1", "2x2", "4x2", "4x4", "8x4", "16x2", "16x16", "2x2x1", "2x2x2", "4x4x4", "4x8x4"}) {
      const absl::StatusOr<Topology> topology = ParseTopology(machine, text);
      if (!topology.ok()) continue;
      const int64_t per_chip = machine.devices_per_chip();
      // All devices, and rows, columns and every second device of them.
      for (int64_t stride : {int64_t{1}, per_chip, 2 * per_chip, topology->axes[0] * per_chip}) {
        for (int64_t size : {2, 4, 8, 16, 64}) {
          std::vector<int64_t> group;
          for (int64_t k = 0; k < size; ++k) group.push_back(k * stride);
          if (group.back() >= topology->Chips() * per_chip) continue;
          const GroupSpan span = SpanOf(machine, *topology, group);
          for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
            for (double bytes : {1e3, 1e6, 1e9}) {
              EXPECT_GE(TimeOf(machine, kind, bytes, span).total(), LowerBound(machine, kind, bytes, span) * (1 - 1e-9))
                  << name << " " << text << " stride " << stride << " size " << size;
            }
          }
        }
      }
    }
  }
}

TEST(CollectiveCostTest, NonsenseGroupsHaveATime) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5p");
  const Topology topology = *ParseTopology(machine, "2x2x2");
  for (std::vector<int64_t> group :
       std::vector<std::vector<int64_t>>{{}, {0}, {7, 7, 7}, {0, 3, 5}, {1 << 30, 2}, {-5, 4}}) {
    const double us = Us(TimeOf(machine, CollectiveKind::kAllReduce, 1e6, SpanOf(machine, topology, group)));
    // One device sends nothing; a megabyte to any other takes at least the time at the rate of all links of a chip, and
    // at most that over the slowest network and back.
    EXPECT_GE(us, group.size() > 1 && group[0] != group[1] ? 1e6 / 600e9 * 1e6 : 0);
    EXPECT_LT(us, 1e4);
  }
}

}  // namespace
}  // namespace hlokit::tpu
