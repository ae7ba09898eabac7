// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/replica_groups_parser.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/sharding/replica_groups.h"
#include "parser/hlo/device_list_parser.h"

namespace hlokit {
namespace {

constexpr DiagnosticKind kBadGroups = DiagnosticKind::kBadReplicaGroups;

bool ParseList(TextCursor& in, ReplicaGroups* groups) {
  if (!in.Expect('{', "before replica groups")) return false;
  if (in.TryConsume('}')) return true;
  do {
    std::vector<int64_t>& group = groups->groups.emplace_back();
    if (!in.Expect('{', "before a replica group")) return false;
    if (in.TryConsume('}')) continue;
    do {
      if (!in.Int(&group.emplace_back())) return false;
    } while (in.TryConsume(','));
    if (!in.Expect('}', "after a replica group")) return false;
  } while (in.TryConsume(','));
  return in.Expect('}', "after replica groups");
}

bool ParseIota(TextCursor& in, ReplicaGroups* groups) {
  groups->kind = ReplicaGroups::Kind::kIota;
  const uint32_t start = in.Offset();
  TileAssignment& tiles = groups->tiles;
  if (!ParseNumbers(in, '[', ']', "the number and size of replica groups", &tiles.dims)) return false;
  const std::optional<int64_t> count = DeviceCount(tiles.dims);
  if (tiles.dims.size() != 2 || !count) {
    return in.Error(kBadGroups, {start, in.Here() - start},
                    "expected the number of replica groups and their size, both positive, with a product below 2^63");
  }
  if (!in.TryConsume("<=")) {
    return in.ErrorHere(DiagnosticKind::kUnexpectedToken,
                        StrCat("expected `<=` and an iota, found ", in.DescribeNext()));
  }
  if (!ParseIotaTileAssignment(in, kBadGroups, &tiles.iota)) return false;
  const std::optional<int64_t> iota_count = DeviceCount(tiles.iota.reshape);
  if (iota_count == count) return true;
  return in.Error(kBadGroups, {start, in.Here() - start},
                  StrCat("the replica groups have ", *count, " devices, but the iota has ", iota_count.value_or(0)));
}

bool ParseMeshGroups(TextCursor& in, Context* context, ReplicaGroups* groups) {
  groups->kind = ReplicaGroups::Kind::kMesh;
  const uint32_t start = in.Offset();
  if (!ParseMesh(in, context, kBadGroups, &groups->mesh)) return false;
  if (!AxisReader(in, *context, kBadGroups, groups->mesh).Set(&groups->axes)) return false;
  if (std::optional<std::string> error = CheckMeshGroups(*context, groups)) {
    return in.Error(kBadGroups, {start, in.Here() - start}, *std::move(error));
  }
  return true;
}

}  // namespace

bool ParseReplicaGroups(TextCursor& in, Context* context, ListId* id) {
  ReplicaGroups groups;
  const char next = in.Peek();
  if (next == '[') {
    if (!ParseIota(in, &groups)) return false;
  } else if (AtMesh(in)) {
    if (!ParseMeshGroups(in, context, &groups)) return false;
  } else if (!ParseList(in, &groups)) {
    return false;
  }
  *id = EncodeReplicaGroups(context, groups);
  return true;
}

}  // namespace hlokit
