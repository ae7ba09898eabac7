// SPDX-License-Identifier: Apache-2.0
// The replica groups of collectives: sets of participating devices. In the text
//   {{0,1},{2,3}}                              explicit groups; {} is one group of all devices
//   [2,4]<=[4,2]T(1,0)                         two groups of four, given by an iota (see tile_assignment.h)
//   mesh['x'=2,'y'=4] {'y'}                    along axes of a mesh: devices that differ only in these axes
// In the IR an interned list (attribute type kReplicaGroups). The last two may have more devices than memory holds;
// counts are available without expanding them.
#ifndef HLOKIT_IR_SHARDING_REPLICA_GROUPS_H_
#define HLOKIT_IR_SHARDING_REPLICA_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/sharding/mesh.h"
#include "ir/sharding/tile_assignment.h"

namespace hlokit {

struct ReplicaGroups {
  enum class Kind : uint8_t { kList, kIota, kMesh };

  Kind kind = Kind::kList;
  std::vector<std::vector<int64_t>> groups;  // list
  TileAssignment tiles;                      // iota: two dimensions, number of groups and group size
  Mesh mesh;                                 // mesh
  std::vector<AxisRef> axes;

  static ReplicaGroups List(std::vector<std::vector<int64_t>> groups) {
    ReplicaGroups result;
    result.groups = std::move(groups);
    return result;
  }
  // Returns true for `{}`.
  bool all() const { return kind == Kind::kList && groups.empty(); }
  friend bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;
};

// Encoding: empty for {}, else
//   list: 0, then for each group its size and its devices
//   iota: 1, groups, size, iota
//   mesh: 2, mesh, axes    (see mesh.h)
ListId EncodeReplicaGroups(Context* context, const ReplicaGroups& groups);
ReplicaGroups DecodeReplicaGroups(const Context& context, ListId id);

// Checks a mesh and the axes of its groups, and canonicalizes them.
std::optional<std::string> CheckMeshGroups(const Context& context, ReplicaGroups* groups);

struct ReplicaGroupCounts {
  int64_t groups = 0;      // 0 for {}
  int64_t group_size = 0;  // of the first group; 0 for {}
  int64_t devices = 0;     // in all groups; saturates
  bool uniform = true;     // all groups have one size
};
ReplicaGroupCounts CountReplicaGroups(const Context& context, ListId id);

// Returns the expanded groups, none for {}. Returns ResourceExhausted if they have more than `limit` devices in total.
absl::StatusOr<std::vector<std::vector<int64_t>>> ExpandReplicaGroups(const Context& context, ListId id, int64_t limit);

void PrintReplicaGroups(TextWriter& out, const Context& context, ListId id);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_REPLICA_GROUPS_H_
