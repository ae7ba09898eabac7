// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/tiling_store.h"

#include <utility>

namespace hlokit::spmd {
namespace {

void Append(std::vector<int64_t>* key, const AxisList& axes) {
  key->push_back(static_cast<int64_t>(axes.size()));
  for (const DeviceAxis& axis : axes) key->insert(key->end(), {axis.stride, axis.size});
}

std::vector<int64_t> KeyOf(const Tiling& tiling) {
  std::vector<int64_t> key = {static_cast<int64_t>(tiling.kind), static_cast<int64_t>(tiling.reduction)};
  if (!tiling.tiled()) return key;
  key.insert(key.end(), {tiling.device_count, tiling.rank()});
  for (const AxisList& dim : tiling.dims) Append(&key, dim);
  Append(&key, tiling.manual);
  Append(&key, tiling.unreduced);
  key.insert(key.end(), tiling.order.begin(), tiling.order.end());
  return key;
}

}  // namespace

TilingRef TilingStore::Intern(Tiling tiling) {
  if (tiling.kind == ShardingKind::kMaximal || tiling.kind == ShardingKind::kUnknown) tiling = Tiling();
  tiling.metadata.clear();
  tiling.replicated.clear();
  tiling.maximal.clear();
  tiling.group = ShardGroup::kNone;
  tiling.group_id = 0;
  if (tiling.kind != ShardingKind::kUnreduced && tiling.unreduced.empty()) tiling.reduction = ReductionOp::kSum;
  tiling.Normalize();
  std::unique_ptr<Tiling>& slot = tilings_[KeyOf(tiling)];
  if (slot == nullptr) slot = std::make_unique<Tiling>(std::move(tiling));
  return slot.get();
}

std::vector<int64_t> LocalSizes(absl::Span<const int64_t> sizes, const Tiling& tiling) {
  std::vector<int64_t> local(sizes.begin(), sizes.end());
  if (!tiling.tiled()) return local;
  for (size_t d = 0; d < local.size() && d < tiling.dims.size(); ++d) {
    local[d] = CeilOfRatio(local[d], SizeOf(tiling.dims[d]));
  }
  return local;
}

Shape LocalShape(ShapeTable* shapes, Shape whole, const Tiling& tiling) {
  if (!whole.IsArray() || !tiling.tiled() || tiling.tiles() == 1) return whole;
  return shapes->Array(whole.element_type(), LocalSizes(whole.dims(), tiling), {}, whole.layout());
}

Tiling WithDims(const Tiling& frame, std::vector<AxisList> dims) {
  Tiling tiling = frame;
  tiling.dims = std::move(dims);
  tiling.Normalize();
  return tiling;
}

int64_t PositionWithTile(const AxisList& axes, int64_t position, int64_t tile) {
  int64_t old = TileNumber(axes, position);
  for (size_t i = axes.size(); i-- > 0;) {
    position += (tile % axes[i].size - old % axes[i].size) * axes[i].stride;
    old /= axes[i].size;
    tile /= axes[i].size;
  }
  return position;
}

std::vector<AxisList> DimsOf(const Tiling& tiling, int64_t rank) {
  if (tiling.tiled() && tiling.rank() == rank) return tiling.dims;
  return std::vector<AxisList>(static_cast<size_t>(rank));
}

}  // namespace hlokit::spmd
