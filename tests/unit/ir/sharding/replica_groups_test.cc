// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/replica_groups.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

class ReplicaGroupsTest : public ::testing::Test {
 protected:
  ListId Iota(int64_t groups, int64_t size, IotaTileAssignment order) {
    ReplicaGroups result;
    result.kind = ReplicaGroups::Kind::kIota;
    result.tiles = TileAssignment::Iota({groups, size}, std::move(order));
    return EncodeReplicaGroups(&context_, result);
  }
  // Encodes groups over a mesh of axes x, y, ...
  ListId OverMesh(std::vector<int64_t> sizes, IotaTileAssignment order, std::vector<AxisRef> axes) {
    ReplicaGroups result;
    result.kind = ReplicaGroups::Kind::kMesh;
    for (size_t i = 0; i < sizes.size(); ++i) {
      result.mesh.names.push_back(context_.strings.Intern(std::string(1, static_cast<char>('x' + i))));
    }
    result.mesh.devices = TileAssignment::Iota(std::move(sizes), std::move(order));
    result.axes = std::move(axes);
    EXPECT_EQ(CheckMeshGroups(context_, &result), std::nullopt);
    const ListId id = EncodeReplicaGroups(&context_, result);
    EXPECT_EQ(DecodeReplicaGroups(context_, id), result);
    return id;
  }
  Groups Expand(ListId id) { return ExpandReplicaGroups(context_, id, 1000).value(); }
  std::string Text(ListId id) {
    std::string text;
    TextWriter out(&text);
    PrintReplicaGroups(out, context_, id);
    out.Flush();
    return text;
  }

  Context context_;
};

TEST_F(ReplicaGroupsTest, Lists) {
  const ListId none = EncodeReplicaGroups(&context_, {});
  EXPECT_EQ(none, context_.lists.Intern({}));
  EXPECT_EQ(Text(none), "{}");
  EXPECT_EQ(Text(ListId()), "{}");
  EXPECT_TRUE(DecodeReplicaGroups(context_, none).all());
  EXPECT_EQ(CountReplicaGroups(context_, none).groups, 0);
  EXPECT_EQ(Expand(none), Groups());

  const Groups groups = {{0, 3}, {1}, {}};
  const ListId id = EncodeReplicaGroups(&context_, ReplicaGroups::List(groups));
  EXPECT_EQ(Text(id), "{{0,3},{1},{}}");
  EXPECT_EQ(Expand(id), groups);
  const ReplicaGroupCounts counts = CountReplicaGroups(context_, id);
  EXPECT_EQ(counts.groups, 3);
  EXPECT_EQ(counts.group_size, 2);
  EXPECT_EQ(counts.devices, 3);
  EXPECT_FALSE(counts.uniform);
  EXPECT_EQ(Text(EncodeReplicaGroups(&context_, ReplicaGroups::List({{}}))), "{{}}");
}

TEST_F(ReplicaGroupsTest, Iotas) {
  const ListId id = Iota(4, 2, {{2, 4}, {1, 0}});
  EXPECT_EQ(Text(id), "[4,2]<=[2,4]T(1,0)");
  EXPECT_EQ(Expand(id), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(EncodeReplicaGroups(&context_, DecodeReplicaGroups(context_, id)), id);

  const ListId huge = Iota(1000000, 1000000, {{1000000000000}, {0}});
  EXPECT_EQ(CountReplicaGroups(context_, huge).groups, 1000000);
  EXPECT_EQ(CountReplicaGroups(context_, huge).devices, 1000000000000);
  EXPECT_EQ(ExpandReplicaGroups(context_, huge, 1 << 20).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ReplicaGroupsTest, Meshes) {
  const IotaTileAssignment natural{{8}, {0}};
  ListId id = OverMesh({2, 4}, natural, {{1}});
  EXPECT_EQ(Text(id), "mesh['x'=2,'y'=4] {'y'}");
  EXPECT_EQ(Expand(id), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(CountReplicaGroups(context_, id).groups, 2);
  EXPECT_EQ(CountReplicaGroups(context_, id).group_size, 4);
  EXPECT_EQ(Expand(OverMesh({2, 4}, natural, {{0}})), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  // The order of the axes is the order within a group.
  EXPECT_EQ(Expand(OverMesh({2, 4}, natural, {{0}, {1}})), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(Expand(OverMesh({2, 4}, natural, {{1}, {0}})), (Groups{{0, 4, 1, 5, 2, 6, 3, 7}}));
  EXPECT_EQ(Expand(OverMesh({2, 4}, natural, {})), (Groups{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
  // Sub-axes.
  EXPECT_EQ(Expand(OverMesh({8}, natural, {{0, 1, 2}})), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(Expand(OverMesh({8}, natural, {{0, 2, 2}})), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  id = OverMesh({8}, natural, {{0, 4, 2}, {0, 1, 2}});
  EXPECT_EQ(Text(id), "mesh['x'=8] {'x':(4)2,'x':(1)2}");
  EXPECT_EQ(Expand(id), (Groups{{0, 4, 1, 5}, {2, 6, 3, 7}}));
  // Devices in another order.
  id = OverMesh({2, 4}, {{4, 2}, {1, 0}}, {{1}});
  EXPECT_EQ(Text(id), "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}");
  EXPECT_EQ(Expand(id), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  const int64_t million = 1000000;
  EXPECT_FALSE(
      ExpandReplicaGroups(context_, OverMesh({million, million}, {{million * million}, {0}}, {{0}}), 1000).ok());
}

}  // namespace
}  // namespace hlokit
