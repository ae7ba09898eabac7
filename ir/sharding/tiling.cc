// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/tiling.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

// Returns the axes of a tile assignment by its dimensions, or nullopt if the assignment has none.
std::optional<std::vector<AxisList>> AxesOfDims(AxisList axes, absl::Span<const int64_t> dims) {
  std::vector<AxisList> lists;
  for (int64_t d : dims) {
    std::optional<AxisList> list = TakeMajor(&axes, d);
    if (!list) return std::nullopt;
    lists.push_back(*std::move(list));
  }
  return lists;
}

std::optional<std::vector<AxisList>> AxesOfIota(const TileAssignment& tiles) {
  const IotaTileAssignment& iota = tiles.iota;
  std::vector<int64_t> strides(iota.reshape.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * iota.reshape[i];
  AxisList axes;
  for (int64_t d : iota.perm) AppendAxis(&axes, {strides[ToSize(d)], iota.reshape[ToSize(d)]});
  return AxesOfDims(std::move(axes), tiles.dims);
}

// The axes of the positions of an array with these dimensions.
std::vector<AxisList> RowMajorAxes(absl::Span<const int64_t> dims) {
  std::vector<AxisList> lists(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    AppendAxis(&lists[i], {stride, dims[i]});
    stride *= dims[i];
  }
  return lists;
}

void SetLists(std::vector<AxisList> lists, const std::vector<SubgroupType>& subgroups, Tiling* tiling) {
  const size_t rank = lists.size() - subgroups.size();
  for (size_t i = 0; i < subgroups.size(); ++i) {
    AxisList& list = lists[rank + i];
    switch (subgroups[i]) {
      case SubgroupType::kMaximal:
        AppendAxes(&tiling->maximal, list);
        break;
      case SubgroupType::kManual:
        AppendAxes(&tiling->manual, list);
        break;
      case SubgroupType::kUnreduced:
        AppendAxes(&tiling->unreduced, list);
        break;
      case SubgroupType::kReplicated:
        break;
    }
  }
  lists.resize(rank);
  tiling->dims = std::move(lists);
}

bool SetTiles(const ShardingLeaf& leaf, Tiling* tiling) {
  const TileAssignment& tiles = leaf.tiles;
  tiling->device_count = tiles.device_count();
  if (tiles.is_iota()) {
    if (std::optional<std::vector<AxisList>> lists = AxesOfIota(tiles)) {
      SetLists(*std::move(lists), leaf.subgroups, tiling);
      return true;
    }
  } else {
    // Often the devices in ascending order have a pattern, also if they are not all devices.
    std::vector<int64_t> sorted = tiles.devices;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> ranks;
    for (int64_t device : tiles.devices) {
      ranks.push_back(std::lower_bound(sorted.begin(), sorted.end(), device) - sorted.begin());
    }
    if (std::optional<AxisList> axes = AxesOfPositions(ranks)) {
      if (std::optional<std::vector<AxisList>> lists = AxesOfDims(*std::move(axes), tiles.dims)) {
        SetLists(*std::move(lists), leaf.subgroups, tiling);
        if (sorted.front() != 0 || sorted.back() + 1 != static_cast<int64_t>(sorted.size())) tiling->order = sorted;
        return true;
      }
    }
  }
  // An order of devices of its own.
  TileAssignment listed = tiles;
  if (!listed.Expand(kMaxExpandedDevices)) return false;
  tiling->order = std::move(listed.devices);
  SetLists(RowMajorAxes(tiles.dims), leaf.subgroups, tiling);
  return true;
}

class MeshAxes {
 public:
  explicit MeshAxes(const Mesh& mesh) : mesh_(mesh), strides_(ToSize(mesh.rank()), 1) {
    for (size_t i = strides_.size(); i-- > 1;) strides_[i - 1] = strides_[i] * mesh.axis_size(static_cast<int64_t>(i));
  }
  AxisList List(absl::Span<const AxisRef> refs) const {
    AxisList list;
    for (const AxisRef& ref : refs) {
      const int64_t size = ref.SizeIn(mesh_), minor = mesh_.axis_size(ref.axis) / (ref.pre_size * size);
      AppendAxis(&list, {strides_[ToSize(ref.axis)] * minor, size});
    }
    return list;
  }
  // The parts of an axis by axes of the mesh, major first. Returns false if it has none.
  bool Refs(absl::Span<const DeviceAxis> axes, std::vector<AxisRef>* refs) const {
    for (DeviceAxis axis : axes) {
      while (axis.size > 1) {
        int64_t at = 0;  // the axis of the mesh with the major end of `axis`
        while (at < mesh_.rank() && (strides_[ToSize(at)] >= axis.end() || mesh_.axis_size(at) == 1)) ++at;
        if (at == mesh_.rank()) return false;
        const int64_t stride = strides_[ToSize(at)], whole = mesh_.axis_size(at), end = stride * whole;
        if (end % axis.end() != 0) return false;
        const int64_t low = std::max(stride, axis.stride);
        if (axis.end() % low != 0 || low % stride != 0 || low % axis.stride != 0) return false;
        const int64_t size = axis.end() / low;
        refs->push_back(size == whole ? AxisRef{at, 1, 0} : AxisRef{at, end / axis.end(), size});
        axis.size /= size;
      }
    }
    return true;
  }

 private:
  const Mesh& mesh_;
  std::vector<int64_t> strides_;
};

bool SetNamed(const ShardingLeaf& leaf, int64_t rank, Tiling* tiling) {
  const MeshAxes mesh(leaf.mesh);
  tiling->device_count = leaf.mesh.device_count();
  for (const DimSharding& dim : leaf.dims) tiling->dims.push_back(mesh.List(dim.axes));
  tiling->dims.resize(ToSize(std::max<int64_t>(rank, 0)));
  tiling->manual = mesh.List(leaf.manual);
  tiling->unreduced = mesh.List(leaf.unreduced);
  tiling->replicated = mesh.List(leaf.replicated);
  const TileAssignment& devices = leaf.mesh.devices;
  if (devices.is_iota() && devices.iota.IsIdentity()) return true;
  TileAssignment listed = devices;
  if (!listed.Expand(kMaxExpandedDevices)) return false;
  tiling->order = std::move(listed.devices);
  return true;
}

// Returns the lists of a tiling in the order of its tile assignment.
std::vector<const AxisList*> ListsOf(const Tiling& tiling) {
  std::vector<const AxisList*> lists;
  for (const AxisList& dim : tiling.dims) lists.push_back(&dim);
  lists.insert(lists.end(), {&tiling.maximal, &tiling.manual, &tiling.unreduced});
  return lists;
}

// Returns the positions of the devices of `tiling` in another order, by the tiles of `tiling`, ascending within those
// that have equal parts; and the axes there.
std::optional<Tiling> Rebase(const Tiling& tiling, absl::Span<const int64_t> order) {
  if (tiling.device_count > kMaxExpandedDevices) return std::nullopt;
  absl::flat_hash_map<int64_t, int64_t> position;
  for (int64_t i = 0; i < tiling.device_count; ++i) position[order.empty() ? i : order[ToSize(i)]] = i;
  ShardingLeaf leaf = LeafOf(tiling);
  if (leaf.kind != ShardingKind::kTiled || !leaf.tiles.Expand(kMaxExpandedDevices)) return std::nullopt;
  for (int64_t& device : leaf.tiles.devices) {
    const auto found = position.find(device);
    if (found == position.end()) return std::nullopt;
    device = found->second;
  }
  if (!leaf.subgroups.empty() && leaf.subgroups.back() == SubgroupType::kReplicated) {
    if (!leaf.tiles.SortLastDim(kMaxExpandedDevices)) return std::nullopt;
  }
  std::optional<AxisList> axes = AxesOfPositions(leaf.tiles.devices);
  if (!axes) return std::nullopt;
  std::optional<std::vector<AxisList>> lists = AxesOfDims(*std::move(axes), leaf.tiles.dims);
  if (!lists) return std::nullopt;
  Tiling rebased = tiling;
  rebased.order.assign(order.begin(), order.end());
  rebased.maximal.clear();
  rebased.manual.clear();
  rebased.unreduced.clear();
  rebased.replicated.clear();
  SetLists(*std::move(lists), leaf.subgroups, &rebased);
  return rebased;
}

}  // namespace

int64_t Tiling::tiles() const {
  int64_t product = 1;
  if (tiled()) {
    for (const AxisList& dim : dims) product *= SizeOf(dim);
  }
  return product;
}

AxisList Tiling::FreeAxes() const { return Complement(ListsOf(*this), device_count).value_or(AxisList()); }

void Tiling::Normalize() {
  if (!tiled() || std::any_of(dims.begin(), dims.end(), [](const AxisList& dim) { return !dim.empty(); })) return;
  ShardingKind whole = ShardingKind::kTiled;
  if (!has_subgroups()) {
    whole = ShardingKind::kReplicated;
  } else if (maximal.empty() && FreeAxes().empty() && manual.empty() != unreduced.empty()) {
    whole = unreduced.empty() ? ShardingKind::kManual : ShardingKind::kUnreduced;
  }
  if (whole == ShardingKind::kTiled) return;
  Tiling normal = Of(whole);
  normal.reduction = reduction;
  normal.group = group;
  normal.group_id = group_id;
  normal.metadata = std::move(metadata);
  *this = std::move(normal);
}

bool operator==(const Tiling& a, const Tiling& b) {
  if (a.kind != b.kind || a.group != b.group || a.group_id != b.group_id || a.reduction != b.reduction) return false;
  if (a.kind == ShardingKind::kMaximal) return a.device == b.device;
  if (!a.tiled()) return true;
  if (a.device_count != b.device_count) return false;
  if (a.order == b.order) {
    return a.dims == b.dims && a.maximal == b.maximal && a.manual == b.manual && a.unreduced == b.unreduced;
  }
  ShardingLeaf x = LeafOf(a), y = LeafOf(b);
  x.metadata = y.metadata;
  return x == y;
}

std::optional<Tiling> TilingOf(const ShardingLeaf& leaf, int64_t rank) {
  Tiling tiling;
  tiling.kind = leaf.kind;
  tiling.reduction = leaf.reduction;
  tiling.group = leaf.group;
  tiling.group_id = leaf.group_id;
  tiling.device = leaf.device;
  tiling.metadata = leaf.metadata;
  if (leaf.kind == ShardingKind::kTiled) {
    if (!SetTiles(leaf, &tiling)) return std::nullopt;
  } else if (leaf.kind == ShardingKind::kNamed) {
    if (leaf.mesh.maximal()) {
      tiling.kind = ShardingKind::kMaximal;
      tiling.device = leaf.mesh.devices.devices[0];
      return tiling;
    }
    tiling.kind = ShardingKind::kTiled;
    if (!SetNamed(leaf, rank < 0 ? leaf.data_rank() : rank, &tiling)) return std::nullopt;
    if (!tiling.order.empty()) {
      if (std::optional<Tiling> plain = Rebase(tiling, {})) tiling = *std::move(plain);
    }
  }
  tiling.Normalize();
  return tiling;
}

ShardingLeaf LeafOf(const Tiling& tiling) {
  ShardingLeaf leaf;
  leaf.kind = tiling.kind;
  leaf.reduction = tiling.reduction;
  leaf.group = tiling.group;
  leaf.group_id = tiling.group_id;
  leaf.metadata = tiling.metadata;
  if (tiling.kind == ShardingKind::kMaximal) leaf.device = tiling.device;
  if (!tiling.tiled()) return leaf;
  const AxisList free = tiling.FreeAxes();
  AxisList axes;  // in the order of the tile assignment
  const auto add = [&](const AxisList& list) {
    axes.insert(axes.end(), list.begin(), list.end());
    leaf.tiles.dims.push_back(SizeOf(list));
  };
  const auto add_subgroup = [&](const AxisList& list, SubgroupType type) {
    if (list.empty()) return;
    add(list);
    leaf.subgroups.push_back(type);
  };
  for (const AxisList& dim : tiling.dims) add(dim);
  add_subgroup(tiling.maximal, SubgroupType::kMaximal);
  add_subgroup(tiling.manual, SubgroupType::kManual);
  add_subgroup(tiling.unreduced, SubgroupType::kUnreduced);
  add_subgroup(free, SubgroupType::kReplicated);
  // The axes, by stride, are the dimensions of the reshape.
  std::vector<size_t> by_stride(axes.size());
  std::iota(by_stride.begin(), by_stride.end(), size_t{0});
  std::sort(by_stride.begin(), by_stride.end(), [&](size_t a, size_t b) { return axes[a].stride > axes[b].stride; });
  IotaTileAssignment iota;
  iota.perm.resize(axes.size());
  for (size_t i = 0; i < by_stride.size(); ++i) {
    iota.reshape.push_back(axes[by_stride[i]].size);
    iota.perm[by_stride[i]] = static_cast<int64_t>(i);
  }
  if (iota.reshape.empty()) iota = {{1}, {0}};
  leaf.tiles = TileAssignment::Iota(std::move(leaf.tiles.dims), std::move(iota));
  if (!tiling.order.empty() && leaf.tiles.Expand(kMaxExpandedDevices)) {
    for (int64_t& device : leaf.tiles.devices) device = tiling.DeviceAt(device);
    if (!leaf.subgroups.empty() && leaf.subgroups.back() == SubgroupType::kReplicated) {
      leaf.tiles.SortLastDim(kMaxExpandedDevices);
    }
  }
  NormalizeTiled(&leaf);
  return leaf;
}

std::optional<ShardingLeaf> NamedLeafOf(const Tiling& tiling, const Mesh& mesh) {
  if (!tiling.tiled()) return LeafOf(tiling);
  ShardingLeaf leaf;
  leaf.kind = ShardingKind::kNamed;
  leaf.reduction = tiling.reduction;
  leaf.metadata = tiling.metadata;
  leaf.mesh = mesh;
  TileAssignment devices = mesh.devices;
  if (mesh.device_count() != tiling.device_count) return std::nullopt;
  std::optional<Tiling> on_mesh = tiling;
  if (!(devices.is_iota() && devices.iota.IsIdentity()) || !tiling.order.empty()) {
    if (!devices.Expand(kMaxExpandedDevices)) return std::nullopt;
    on_mesh = Rebase(tiling, devices.devices);
    if (!on_mesh) return std::nullopt;
  }
  const MeshAxes axes(mesh);
  for (const AxisList& dim : on_mesh->dims) {
    if (!axes.Refs(dim, &leaf.dims.emplace_back().axes)) return std::nullopt;
  }
  const auto by_mesh = [](const AxisRef& a, const AxisRef& b) {
    return a.axis != b.axis ? a.axis < b.axis : a.pre_size < b.pre_size;
  };
  if (!axes.Refs(on_mesh->manual, &leaf.manual) || !axes.Refs(on_mesh->unreduced, &leaf.unreduced)) return std::nullopt;
  std::sort(leaf.manual.begin(), leaf.manual.end(), by_mesh);
  std::sort(leaf.unreduced.begin(), leaf.unreduced.end(), by_mesh);
  return leaf;
}

ShardingLeaf NamedLeafOf(Context* context, const Tiling& tiling) {
  if (!tiling.tiled()) return LeafOf(tiling);
  // Each list of axes is cut where the lists of dimensions end, so that the mesh has an axis for each entry.
  AxisList axes = tiling.FreeAxes();
  for (const AxisList* list : ListsOf(tiling)) axes.insert(axes.end(), list->begin(), list->end());
  std::sort(axes.begin(), axes.end(), [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride > b.stride; });
  Mesh mesh;
  for (size_t i = 0; i < axes.size(); ++i) {
    mesh.names.push_back(context->strings.Intern(StrCat("axis_", i)));
    mesh.devices.dims.push_back(axes[i].size);
  }
  if (tiling.order.empty()) {
    mesh.devices.iota = {{tiling.device_count}, {0}};
  } else {
    mesh.devices.devices = tiling.order;
  }
  return *NamedLeafOf(tiling, mesh);
}

bool SameSharding(const Context& context, ListId a, ListId b) {
  if (a == b) return true;
  const Sharding x = DecodeSharding(context, a), y = DecodeSharding(context, b);
  if (x.runs.empty() || y.runs.empty()) return x.runs.empty() == y.runs.empty();
  if (x.is_tuple == y.is_tuple && x.leaf_count() != y.leaf_count()) return false;
  const auto same = [](const ShardingLeaf& p, const ShardingLeaf& q) {
    const std::optional<Tiling> s = TilingOf(p, std::max(p.data_rank(), q.data_rank()));
    const std::optional<Tiling> t = TilingOf(q, std::max(p.data_rank(), q.data_rank()));
    return s && t && *s == *t;
  };
  // Run by run; a single leaf has no end.
  size_t i = 0, j = 0;
  int64_t rest_x = x.runs[0].count, rest_y = y.runs[0].count;
  while (i < x.runs.size() && j < y.runs.size()) {
    if (!same(x.runs[i].leaf, y.runs[j].leaf)) return false;
    if (!x.is_tuple && !y.is_tuple) return true;
    const int64_t both = !x.is_tuple ? rest_y : !y.is_tuple ? rest_x : std::min(rest_x, rest_y);
    if (x.is_tuple && (rest_x -= both) == 0 && ++i < x.runs.size()) rest_x = x.runs[i].count;
    if (y.is_tuple && (rest_y -= both) == 0 && ++j < y.runs.size()) rest_y = y.runs[j].count;
  }
  return true;
}

std::optional<std::pair<Tiling, Tiling>> InOneOrder(const Tiling& a, const Tiling& b) {
  if (a.device_count != b.device_count) return std::nullopt;
  if (a.order == b.order) return std::pair(a, b);
  if (std::optional<Tiling> moved = Rebase(b, a.order)) return std::pair(a, *std::move(moved));
  if (std::optional<Tiling> moved = Rebase(a, b.order)) return std::pair(*std::move(moved), b);
  return std::nullopt;
}

}  // namespace hlokit
