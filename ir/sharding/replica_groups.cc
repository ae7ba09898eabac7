// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/replica_groups.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

enum GroupTag : int64_t { kListTag, kIotaTag, kMeshTag };

// The mesh as one tile assignment whose last dimensions span a group: every axis is split where its sub-axes begin and
// end, and the used sub-axes are moved to the end in the order they are named.
struct SplitMesh {
  std::vector<int64_t> dims;
  std::vector<int64_t> perm;
};

SplitMesh SplitByAxes(const Mesh& mesh, absl::Span<const AxisRef> axes) {
  SplitMesh split;
  std::vector<int64_t> place(axes.size());  // of each used axis among the new dimensions
  std::vector<bool> used;
  std::vector<std::vector<size_t>> parts(static_cast<size_t>(mesh.rank()));
  for (size_t i = 0; i < axes.size(); ++i) parts[static_cast<size_t>(axes[i].axis)].push_back(i);
  const auto add = [&](int64_t size, bool in_group) {
    split.dims.push_back(size);
    used.push_back(in_group);
  };
  for (size_t axis = 0; axis < parts.size(); ++axis) {
    std::sort(parts[axis].begin(), parts[axis].end(),
              [axes](size_t a, size_t b) { return axes[a].pre_size < axes[b].pre_size; });
    int64_t done = 1;  // product of the sizes so far
    for (size_t i : parts[axis]) {
      if (axes[i].pre_size != done) add(axes[i].pre_size / done, false);
      place[i] = static_cast<int64_t>(split.dims.size());
      add(axes[i].SizeIn(mesh), true);
      done = axes[i].pre_size * axes[i].SizeIn(mesh);
    }
    if (parts[axis].empty() || done != mesh.axis_size(static_cast<int64_t>(axis))) {
      add(mesh.axis_size(static_cast<int64_t>(axis)) / done, false);
    }
  }
  for (size_t d = 0; d < used.size(); ++d) {
    if (!used[d]) split.perm.push_back(static_cast<int64_t>(d));
  }
  split.perm.insert(split.perm.end(), place.begin(), place.end());
  return split;
}

}  // namespace

ListId EncodeReplicaGroups(Context* context, const ReplicaGroups& groups) {
  std::vector<int64_t> list;
  switch (groups.kind) {
    case ReplicaGroups::Kind::kList:
      if (!groups.groups.empty()) list.push_back(kListTag);
      for (const std::vector<int64_t>& group : groups.groups) EncodeList(group, &list);
      break;
    case ReplicaGroups::Kind::kIota:
      list = {kIotaTag, groups.tiles.dims[0], groups.tiles.dims[1]};
      EncodeIotaTileAssignment(groups.tiles.iota, &list);
      break;
    case ReplicaGroups::Kind::kMesh:
      list = {kMeshTag};
      EncodeMesh(groups.mesh, &list);
      EncodeAxes(groups.axes, &list);
      break;
  }
  return context->lists.Intern(list);
}

ReplicaGroups DecodeReplicaGroups(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  ReplicaGroups groups;
  if (list.empty()) return groups;
  size_t at = 1;
  switch (static_cast<GroupTag>(list[0])) {
    case kListTag:
      while (at < list.size()) groups.groups.push_back(DecodeList(list, &at));
      break;
    case kIotaTag:
      groups.kind = ReplicaGroups::Kind::kIota;
      groups.tiles.dims = {list[1], list[2]};
      at = 3;
      groups.tiles.iota = DecodeIotaTileAssignment(list, &at);
      break;
    case kMeshTag:
      groups.kind = ReplicaGroups::Kind::kMesh;
      groups.mesh = DecodeMesh(list, &at);
      groups.axes = DecodeAxes(list, &at);
      break;
  }
  return groups;
}

std::optional<std::string> CheckMeshGroups(const Context& context, ReplicaGroups* groups) {
  if (std::optional<std::string> error = CheckMesh(context, &groups->mesh)) return error;
  if (groups->mesh.names.empty()) return "expected a mesh with axes in replica groups";
  return AxisUses(context, groups->mesh).Add(groups->axes);
}

ReplicaGroupCounts CountReplicaGroups(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  ReplicaGroupCounts counts;
  if (list.empty()) return counts;
  if (list[0] == kListTag) {
    for (size_t at = 1; at < list.size(); at += 1 + static_cast<size_t>(list[at])) {
      if (counts.groups++ == 0) counts.group_size = list[at];
      counts.uniform &= list[at] == counts.group_size;
      counts.devices += list[at];
    }
    return counts;
  }
  const ReplicaGroups groups = DecodeReplicaGroups(context, id);
  if (groups.kind == ReplicaGroups::Kind::kIota) {
    counts.groups = groups.tiles.dims[0];
    counts.group_size = groups.tiles.dims[1];
    counts.devices = groups.tiles.device_count();
  } else {
    counts.devices = groups.mesh.device_count();
    counts.group_size = AxesSize(groups.mesh, groups.axes);
    counts.groups = counts.devices / counts.group_size;
  }
  return counts;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> ExpandReplicaGroups(const Context& context, ListId id,
                                                                      int64_t limit) {
  const ReplicaGroupCounts counts = CountReplicaGroups(context, id);
  if (counts.devices > limit || counts.groups > limit) {
    return absl::ResourceExhaustedError(
        StrCat("the replica groups have ", counts.devices, " devices, exceeding the limit of ", limit));
  }
  ReplicaGroups groups = DecodeReplicaGroups(context, id);
  if (groups.kind == ReplicaGroups::Kind::kList) return std::move(groups.groups);
  TileAssignment tiles = std::move(groups.tiles);
  if (groups.kind == ReplicaGroups::Kind::kMesh) {
    SplitMesh split = SplitByAxes(groups.mesh, groups.axes);
    tiles = std::move(groups.mesh.devices);
    tiles.dims = std::move(split.dims);
    if (!tiles.Transpose(split.perm, limit)) return absl::ResourceExhaustedError("the mesh is too large to list");
  }
  if (!tiles.Expand(limit)) return absl::ResourceExhaustedError("the replica groups are too large to list");
  std::vector<std::vector<int64_t>> result;
  result.reserve(static_cast<size_t>(counts.groups));
  for (auto it = tiles.devices.begin(); it != tiles.devices.end(); it += counts.group_size) {
    result.emplace_back(it, it + counts.group_size);
  }
  return result;
}

void PrintReplicaGroups(TextWriter& out, const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  if (list.empty() || list[0] == kListTag) {
    out << '{';
    for (size_t at = 1; at < list.size();) {
      const auto size = static_cast<size_t>(list[at]);
      out << (at == 1 ? "{" : ",{");
      PrintInts(out, list.subspan(at + 1, size));
      out << '}';
      at += 1 + size;
    }
    out << '}';
    return;
  }
  const ReplicaGroups groups = DecodeReplicaGroups(context, id);
  if (groups.kind == ReplicaGroups::Kind::kIota) {
    PrintTileAssignment(out, groups.tiles);
    return;
  }
  PrintMesh(out, context, groups.mesh);
  out << " {";
  PrintAxes(out, context, groups.mesh, groups.axes, ",");
  out << '}';
}

}  // namespace hlokit
