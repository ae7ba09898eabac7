// SPDX-License-Identifier: Apache-2.0
// Devices and communicators of processes, and what they send to each other beside collectives.
#include "interp/processes/world.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/graph/context.h"
#include "tests/unit/interp/processes/fake_transport.h"

namespace hlokit::interp {
namespace {

TEST(WorldTest, DevicesAreDividedInOrder) {
  FakeNetwork network(3);
  FakeTransport transport(&network, 1);
  const FakeWorld world(&transport, 30);
  for (int64_t devices = 3; devices <= 20; ++devices) {
    EXPECT_EQ(world.FirstDevice(devices, 0), 0);
    EXPECT_EQ(world.FirstDevice(devices, 3), devices);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_LT(world.FirstDevice(devices, rank), world.FirstDevice(devices, rank + 1)) << devices;
      for (int64_t d = world.FirstDevice(devices, rank); d < world.FirstDevice(devices, rank + 1); ++d) {
        EXPECT_EQ(world.ProcessOf(d, devices), rank) << d << " of " << devices;
      }
    }
  }
}

TEST(WorldTest, GroupHasTheProcessesOfItsDevices) {
  FakeNetwork network(4);
  FakeTransport transport(&network, 2);
  FakeWorld world(&transport, 30);
  // Processes have the devices 0 and 1, 2 and 3, 4 and 5, 6 and 7.
  const absl::StatusOr<ProcessGroup*> group = world.GroupOf({5, 1, 4, 0}, 8);
  ASSERT_TRUE(group.ok());
  EXPECT_EQ((*group)->ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ((*group)->self, 1u);
  EXPECT_EQ((*group)->process_of, (std::vector<size_t>{1, 0, 1, 0}));
  EXPECT_EQ((*group)->members_of, (std::vector<std::vector<size_t>>{{1, 3}, {0, 2}}));
  EXPECT_GE((*group)->communicator, 0);
}

TEST(WorldTest, CommunicatorsAreMadeOnce) {
  FakeNetwork network(4);
  FakeTransport transport(&network, 0);
  FakeWorld world(&transport, 30);
  const absl::StatusOr<ProcessGroup*> first = world.GroupOf({0, 7}, 8), again = world.GroupOf({0, 7}, 8);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(world.calls.size(), 1u);
  // In another order, the group has the same processes and other members.
  const absl::StatusOr<ProcessGroup*> reversed = world.GroupOf({7, 0}, 8);
  ASSERT_TRUE(reversed.ok());
  EXPECT_NE(*first, *reversed);
}

TEST(WorldTest, GroupOfOneProcessHasNoCommunicator) {
  FakeNetwork network(4);
  FakeTransport transport(&network, 3);
  FakeWorld world(&transport, 30);
  const absl::StatusOr<ProcessGroup*> group = world.GroupOf({6, 7}, 8);
  ASSERT_TRUE(group.ok());
  EXPECT_LT((*group)->communicator, 0);
  EXPECT_TRUE(world.calls.empty());
}

TEST(WorldTest, AllGatherBytesOfDifferentSizes) {
  FakeNetwork network(3);
  RunProcesses(&network, [](FakeWorld& world) {
    const absl::StatusOr<std::vector<std::string>> all = world.AllGatherBytes(
        std::string(static_cast<size_t>(world.rank()) * 1000, static_cast<char>('a' + world.rank())));
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(*all, (std::vector<std::string>{"", std::string(1000, 'b'), std::string(2000, 'c')}));
  });
}

TEST(WorldTest, FirstProcessGathersValuesInTheOrderOfDevices) {
  FakeNetwork network(3);
  Context context;
  const Shape shape = context.shapes.Array(ElementType::kS32, {2});
  RunProcesses(&network, [&](FakeWorld& world) {
    std::vector<Literal> values;
    for (int64_t d = world.FirstDevice(5, world.rank()); d < world.FirstDevice(5, world.rank() + 1); ++d) {
      values.push_back(Literal::Zeros(shape));
      values.back().values<int32_t>()[1] = static_cast<int32_t>(d);
    }
    ASSERT_TRUE(world.GatherValues(5, 1, {shape}, &values).ok());
    if (world.rank() != 0) return;
    ASSERT_EQ(values.size(), 5u);
    for (int32_t d = 0; d < 5; ++d) EXPECT_EQ(values[static_cast<size_t>(d)].values<int32_t>()[1], d);
  });
}

TEST(WorldTest, OtherProgramIsAnError) {
  FakeNetwork network(3);
  RunProcesses(&network, [](FakeWorld& world) {
    EXPECT_TRUE(world.CheckProgram(7).ok());
    const absl::Status different = world.CheckProgram(world.rank() == 2 ? 8 : 7);
    EXPECT_EQ(different.message(),
              world.rank() == 2 ? "process 0 runs another program" : "process 2 runs another program");
  });
}

TEST(WorldTest, WaitsEndIfNothingCan) {
  FakeNetwork network(2);
  network.loses_data = true;
  FakeTransport transport(&network, 0);
  FakeWorld world(&transport, 0.1);
  world.all_wait = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.AllGatherBytes("x").status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.Flush()));
  Context context;
  const Shape shape = context.shapes.Array(ElementType::kS32, {1});
  std::vector<Literal> values(1, Literal::Zeros(shape));
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.GatherValues(2, 1, {shape}, &values)));
}

TEST(WorldTest, WaitGoesOnWhileOthersCompute) {
  FakeNetwork network(2);
  network.loses_data = true;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    const std::lock_guard<std::mutex> lock(network.mutex);
    network.loses_data = false;
  });
  RunProcesses(
      &network,
      [](FakeWorld& world) {
        EXPECT_TRUE(world.AllGatherBytes("x").ok());
        EXPECT_GT(world.idle_reports, 0);
      },
      /*timeout_seconds=*/0.1);
  later.join();
}

TEST(WorldTest, LimitGrowsWithTheBytes) {
  FakeNetwork network(1);
  FakeTransport transport(&network, 0);
  const FakeWorld world(&transport, 30);
  EXPECT_DOUBLE_EQ(world.LimitOf(0), 30);
  EXPECT_DOUBLE_EQ(world.LimitOf(100'000'000), 130);
}

}  // namespace
}  // namespace hlokit::interp
