// SPDX-License-Identifier: Apache-2.0
#include "ir/types/tiled_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace hlokit {
namespace {
using Indices = absl::InlinedVector<int64_t, 12>;
}  // namespace

TiledLayout::TiledLayout(Shape array) {
  const LayoutRecord* const layout = array.layout();
  const auto rank = static_cast<size_t>(array.rank());
  order_.resize(rank);
  std::iota(order_.begin(), order_.end(), 0);
  if (layout != nullptr && layout->minor_to_major.size() == rank) {
    order_.assign(layout->minor_to_major.rbegin(), layout->minor_to_major.rend());
  }
  for (int64_t d : order_) dims_.push_back(array.dim(d));
  if (HasTiles(array)) {
    // Each level keeps the dimensions of the one before.
    constexpr size_t kMaxTiles = 64;
    if (layout->extras->tiles.size() > kMaxTiles) {
      ok_ = false;
      return;
    }
    size_t most = 0;
    for (const std::vector<int64_t>& tile : layout->extras->tiles) most = std::max(most, tile.size());
    added_ = most > rank ? most - rank : 0;
    dims_.insert(dims_.begin(), added_, 1);
    for (const std::vector<int64_t>& tile : layout->extras->tiles) ok_ = ok_ && AddTile(tile);
  }
  for (int64_t size : dims_) ok_ = ok_ && !__builtin_mul_overflow(position_count_, size, &position_count_);
}

bool TiledLayout::AddTile(absl::Span<const int64_t> tile) {
  Level level;
  level.dims = dims_;
  level.first = dims_.size() - tile.size();
  std::vector<int64_t> tiled(dims_.begin(), dims_.begin() + static_cast<ptrdiff_t>(level.first)), extents;
  Group group = {level.first, level.first, 1, 1};
  for (size_t i = 0; i < tile.size(); ++i) {
    if (__builtin_mul_overflow(group.size, dims_[level.first + i], &group.size)) return false;
    group.end = level.first + i + 1;
    const bool combines = tile[i] == kCombineDimension;
    if (combines && i + 1 < tile.size()) continue;
    group.extent = combines ? std::max<int64_t>(group.size, 1) : tile[i];
    if (group.extent < 1) return false;
    tiled.push_back(group.size / group.extent + (group.size % group.extent != 0 ? 1 : 0));
    extents.push_back(group.extent);
    level.groups.push_back(group);
    group = {group.end, group.end, 1, 1};
  }
  tiled.insert(tiled.end(), extents.begin(), extents.end());
  levels_.push_back(std::move(level));
  dims_ = std::move(tiled);
  return true;
}

int64_t TiledLayout::PositionOf(absl::Span<const int64_t> index) const {
  Indices at(added_, 0);
  for (int64_t d : order_) at.push_back(index[static_cast<size_t>(d)]);
  for (const Level& level : levels_) {
    Indices tiles(at.begin(), at.begin() + static_cast<ptrdiff_t>(level.first)), offsets;
    for (const Group& group : level.groups) {
      int64_t combined = 0;
      for (size_t d = group.begin; d < group.end; ++d) combined = combined * level.dims[d] + at[d];
      tiles.push_back(combined / group.extent);
      offsets.push_back(combined % group.extent);
    }
    tiles.insert(tiles.end(), offsets.begin(), offsets.end());
    at = std::move(tiles);
  }
  int64_t position = 0;
  for (size_t d = 0; d < dims_.size(); ++d) position = position * dims_[d] + at[d];
  return position;
}

bool TiledLayout::IndexAt(int64_t position, absl::Span<int64_t> index) const {
  if (position < 0 || position >= position_count_) return false;
  Indices at(dims_.size());
  for (size_t d = dims_.size(); d-- > 0; position /= dims_[d]) at[d] = position % dims_[d];
  for (size_t l = levels_.size(); l-- > 0;) {
    const Level& level = levels_[l];
    const size_t groups = level.groups.size();
    Indices before(level.dims.size());
    std::copy_n(at.begin(), level.first, before.begin());
    for (size_t g = 0; g < groups; ++g) {
      const Group& group = level.groups[g];
      int64_t combined = at[level.first + g] * group.extent + at[level.first + groups + g];
      if (combined >= group.size) return false;
      for (size_t d = group.end; d-- > group.begin; combined /= level.dims[d]) before[d] = combined % level.dims[d];
    }
    at = std::move(before);
  }
  for (size_t i = 0; i < order_.size(); ++i) index[static_cast<size_t>(order_[i])] = at[added_ + i];
  return true;
}

std::optional<std::vector<TiledLayout::Part>> TiledLayout::Parts() const {
  std::vector<Part> parts;
  for (size_t i = 0; i < added_; ++i) parts.push_back({-1, 1, 1});
  if (levels_.empty()) {
    for (size_t i = 0; i < order_.size(); ++i) parts.push_back({order_[i], dims_[i], 1});
    return parts;
  }
  for (size_t i = 0; i < order_.size(); ++i) parts.push_back({order_[i], levels_[0].dims[added_ + i], 1});
  for (const Level& level : levels_) {
    std::vector<Part> tiled(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(level.first)), offsets;
    for (const Group& group : level.groups) {
      if (group.end != group.begin + 1 || group.size % group.extent != 0) return std::nullopt;
      const Part& part = parts[group.begin];
      tiled.push_back({part.dim, part.size / group.extent, part.unit * group.extent});
      offsets.push_back({part.dim, group.extent, part.unit});
    }
    tiled.insert(tiled.end(), offsets.begin(), offsets.end());
    parts = std::move(tiled);
  }
  return parts;
}

}  // namespace hlokit
