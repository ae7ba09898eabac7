// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/tiling_arithmetic.h"

#include <algorithm>
#include <utility>

#include "ir/core/saturating.h"

namespace hlokit {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

bool SameSubgroups(const Tiling& a, const Tiling& b) {
  return a.maximal == b.maximal && a.manual == b.manual && a.unreduced == b.unreduced;
}

Tiling Normalized(Tiling tiling) {
  tiling.Normalize();
  return tiling;
}

bool Contains(absl::Span<const int64_t> dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// Part `tile` of `tiles` of a dimension, cut off at its end.
struct Interval {
  int64_t begin;
  int64_t end;
};
Interval PartOf(int64_t size, int64_t tiles, int64_t tile) {
  const int64_t part = CeilDiv(size, tiles);
  const int64_t begin = std::min(SaturatingMultiply(part, tile), size);
  return {begin, std::min(SaturatingAdd(begin, part), size)};
}

bool LiesWithin(Interval sub, Interval super) {
  return sub.begin == sub.end || (super.begin <= sub.begin && sub.end <= super.end);
}

// Returns true if the parts of a dimension lie within those under `super`, whose axes are the major ones of `sub`.
bool PartsNest(int64_t size, const AxisList& sub, const AxisList& super) {
  const int64_t tiles = SizeOf(sub), coarse = SizeOf(super);
  if (coarse == 1 || tiles == coarse || size % tiles == 0) return true;
  // Equal multiples of the small parts, or else each by itself, if there are few.
  if (CeilDiv(size, coarse) == SaturatingMultiply(CeilDiv(size, tiles), tiles / coarse)) return true;
  if (std::min(tiles, size) > kMaxListedDevices) return false;
  // Parts from `size` on are empty.
  for (int64_t tile = 0; tile < std::min(tiles, size); ++tile) {
    if (!LiesWithin(PartOf(size, tiles, tile), PartOf(size, coarse, tile / (tiles / coarse)))) return false;
  }
  return true;
}

bool PartsNestByDevice(absl::Span<const int64_t> sizes, const Tiling& sub, const Tiling& super) {
  if (sub.device_count > kMaxListedDevices) return false;
  for (int64_t position = 0; position < sub.device_count; ++position) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      const AxisList &fine = sub.dims[d], &coarse = super.dims[d];
      if (!LiesWithin(PartOf(sizes[d], SizeOf(fine), TileNumber(fine, position)),
                      PartOf(sizes[d], SizeOf(coarse), TileNumber(coarse, position)))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

bool IsSubTilingOrEqual(absl::Span<const int64_t> sizes, const Tiling& sub, const Tiling& super) {
  if (super.replicated_everywhere() && sub.kind != ShardingKind::kManual) return true;
  if (!sub.tiled() || !super.tiled()) {
    if (sub.replicated_everywhere() && super.tiled()) return !super.has_subgroups() && super.tiles() == 1;
    return sub == super;
  }
  if (sub.dims.size() != sizes.size() || super.dims.size() != sizes.size()) return false;
  const std::optional<std::pair<Tiling, Tiling>> both = InOneOrder(sub, super);
  if (!both) return sub == super;
  const auto& [a, b] = *both;
  if (!SameSubgroups(a, b)) return false;
  bool prefixes = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!IsPrefix(b.dims[d], a.dims[d])) {
      prefixes = false;
    } else if (!PartsNest(sizes[d], a.dims[d], b.dims[d])) {
      return false;
    }
  }
  return prefixes || PartsNestByDevice(sizes, a, b);
}

bool IsMoreSpecific(const Tiling& a, const Tiling& b) {
  const auto rank = [](const Tiling& t) {
    switch (t.kind) {
      case ShardingKind::kManual:
        return 3;
      case ShardingKind::kTiled:
        return 2;
      case ShardingKind::kMaximal:
      case ShardingKind::kUnreduced:
        return 1;
      case ShardingKind::kReplicated:
      case ShardingKind::kUnknown:
      case ShardingKind::kNamed:
        return 0;
    }
    return 0;
  };
  if (a.tiled() && b.tiled()) return a.tiles() > b.tiles();
  return rank(a) > rank(b);
}

bool CanPermute(const Tiling& source, const Tiling& target) {
  if (!source.tiled() || !target.tiled() || source == target || source.device_count != target.device_count)
    return false;
  if (source.dims.size() != target.dims.size()) return false;
  for (size_t d = 0; d < source.dims.size(); ++d) {
    if (SizeOf(source.dims[d]) != SizeOf(target.dims[d])) return false;
  }
  return SizeOf(source.maximal) == SizeOf(target.maximal) && SizeOf(source.manual) == SizeOf(target.manual) &&
         SizeOf(source.unreduced) == SizeOf(target.unreduced);
}

namespace {

// Returns the merged axes of one dimension, or nullopt. `others`: axes that the rest of `into` has.
std::optional<AxisList> MergeDim(const AxisList& source, const AxisList& into, absl::Span<const DeviceAxis> others,
                                 int64_t count, MergePolicy policy) {
  if (source == into || source.empty()) return into;
  if (policy == MergePolicy::kWholeDimensions) return into.empty() ? std::optional<AxisList>(source) : std::nullopt;
  if (IsPrefix(source, into)) return into;
  if (!IsPrefix(into, source)) return std::nullopt;
  // The axes up to the first that is taken elsewhere.
  AxisList rest = source, merged;
  if (const int64_t have = SizeOf(into); have > 1) {
    std::optional<AxisList> front = TakeMajor(&rest, have);
    if (!front) return std::nullopt;
    merged = *std::move(front);
  }
  for (const DeviceAxis& axis : rest) {
    const std::optional<AxisList> left = Subtract({axis}, others, count);
    if (!left) return std::nullopt;
    if (left->empty()) break;
    if (left->front().end() != axis.end()) break;
    AppendAxis(&merged, left->front());
    if (left->front() != axis) break;
  }
  return merged == into ? std::nullopt : std::optional<AxisList>(merged);
}

}  // namespace

std::optional<Tiling> Merge(const Tiling& source, const Tiling& into, MergePolicy policy) {
  if (!source.tiled()) return source.replicated_everywhere() ? std::optional<Tiling>(into) : std::nullopt;
  if (into.replicated_everywhere()) return source;
  if (!into.tiled() || source.dims.size() != into.dims.size()) return std::nullopt;
  const std::optional<std::pair<Tiling, Tiling>> both = InOneOrder(source, into);
  if (!both) return source == into ? std::optional<Tiling>(into) : std::nullopt;
  const auto& [a, b] = *both;
  if (!SameSubgroups(a, b)) return std::nullopt;
  Tiling merged = b;
  for (size_t d = 0; d < a.dims.size(); ++d) {
    AxisList others = b.replicated;
    for (size_t e = 0; e < b.dims.size(); ++e) {
      if (e != d) others.insert(others.end(), b.dims[e].begin(), b.dims[e].end());
    }
    std::optional<AxisList> dim = MergeDim(a.dims[d], b.dims[d], others, b.device_count, policy);
    if (!dim) return std::nullopt;
    merged.dims[d] = *std::move(dim);
  }
  AppendAxes(&merged.replicated, a.replicated);
  std::vector<const AxisList*> lists = {&merged.maximal, &merged.manual, &merged.unreduced, &merged.replicated};
  for (const AxisList& dim : merged.dims) lists.push_back(&dim);
  if (!Complement(lists, merged.device_count)) return std::nullopt;
  for (MetadataId id : source.metadata) {
    if (std::find(merged.metadata.begin(), merged.metadata.end(), id) == merged.metadata.end()) {
      merged.metadata.push_back(id);
    }
  }
  return Normalized(std::move(merged));
}

Tiling Transpose(const Tiling& tiling, absl::Span<const int64_t> dims) {
  return *TransposeWithCollapsedDims(tiling, dims);
}

std::optional<Tiling> TransposeWithCollapsedDims(const Tiling& tiling, absl::Span<const int64_t> to_from) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  result.dims.assign(to_from.size(), {});
  std::vector<bool> taken(tiling.dims.size());
  for (size_t i = 0; i < to_from.size(); ++i) {
    if (to_from[i] < 0) continue;
    result.dims[i] = tiling.dims[ToSize(to_from[i])];
    taken[ToSize(to_from[i])] = true;
  }
  for (size_t d = 0; d < taken.size(); ++d) {
    if (!taken[d] && !tiling.dims[d].empty()) return std::nullopt;
  }
  return result;
}

Tiling CarryDims(const Tiling& tiling, absl::Span<const int64_t> from, absl::Span<const int64_t> to, int64_t rank) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  result.dims.assign(ToSize(rank), {});
  for (size_t i = 0; i < from.size(); ++i) result.dims[ToSize(to[i])] = tiling.dims[ToSize(from[i])];
  return Normalized(std::move(result));
}

Tiling ReplicateDims(const Tiling& tiling, absl::Span<const int64_t> dims) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  for (int64_t d : dims) result.dims[ToSize(d)].clear();
  return Normalized(std::move(result));
}

Tiling ReplicateDimsExcept(const Tiling& tiling, absl::Span<const int64_t> dims) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  for (int64_t d = 0; d < tiling.rank(); ++d) {
    if (!Contains(dims, d)) result.dims[ToSize(d)].clear();
  }
  return Normalized(std::move(result));
}

Tiling ReplicateAllDims(const Tiling& tiling, int64_t rank) { return CarryDims(tiling, {}, {}, rank); }

Tiling AddDims(const Tiling& tiling, int64_t dim, int64_t count) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(dim), ToSize(count), AxisList());
  return result;
}

Tiling MoveTiles(const Tiling& tiling, int64_t from, int64_t to) {
  if (!tiling.tiled() || from == to) return tiling;
  Tiling result = tiling;
  AppendAxes(&result.dims[ToSize(to)], tiling.dims[ToSize(from)]);
  result.dims[ToSize(from)].clear();
  return result;
}

Tiling MergeDimWithNext(const Tiling& tiling, int64_t dim) {
  if (!tiling.tiled()) return tiling;
  Tiling result = MoveTiles(tiling, dim + 1, dim);
  result.dims.erase(result.dims.begin() + static_cast<std::ptrdiff_t>(dim + 1));
  return result;
}

std::optional<Tiling> SplitDim(const Tiling& tiling, int64_t dim, int64_t tiles) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  AxisList& minor = result.dims[ToSize(dim)];
  std::optional<AxisList> major = TakeMajor(&minor, tiles);
  if (!major) return std::nullopt;
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(dim), *std::move(major));
  return result;
}

std::optional<Tiling> Reverse(const Tiling& tiling, absl::Span<const int64_t> dims) {
  if (!tiling.tiled() || std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return tiling.tiles(d) == 1; })) {
    return tiling;
  }
  if (tiling.device_count > kMaxListedDevices) return std::nullopt;
  // Position p of the result has the device at the position whose digits of the reversed dimensions are counted down.
  Tiling result = tiling;
  result.order.resize(ToSize(tiling.device_count));
  for (int64_t position = 0; position < tiling.device_count; ++position) {
    int64_t source = position;
    for (int64_t d : dims) {
      for (const DeviceAxis& axis : tiling.dims[ToSize(d)]) {
        const int64_t digit = position / axis.stride % axis.size;
        source += (axis.size - 1 - 2 * digit) * axis.stride;
      }
    }
    result.order[ToSize(position)] = tiling.DeviceAt(source);
  }
  // An order of its own, unless the assignment is one that has axes.
  std::optional<Tiling> plain = TilingOf(LeafOf(result), tiling.rank());
  return plain ? *plain : result;
}

std::optional<int64_t> DimToMoveTilesTo(absl::Span<const int64_t> sizes, const Tiling& tiling, int64_t dim) {
  if (!tiling.tiled() || tiling.tiles(dim) == 1) return std::nullopt;
  for (int64_t d = 0; d < tiling.rank(); ++d) {
    if (d == dim) continue;
    const int64_t tiles = SaturatingMultiply(tiling.tiles(d), tiling.tiles(dim));
    if (sizes[ToSize(d)] % tiles == 0) return d;
  }
  return std::nullopt;
}

std::vector<int64_t> TileSizes(const Tiling& tiling, absl::Span<const int64_t> sizes) {
  std::vector<int64_t> part(sizes.begin(), sizes.end());
  if (!tiling.tiled()) return part;
  for (size_t d = 0; d < part.size(); ++d) part[d] = CeilDiv(part[d], SizeOf(tiling.dims[d]));
  return part;
}

std::vector<int64_t> UntileSizes(const Tiling& tiling, absl::Span<const int64_t> sizes) {
  std::vector<int64_t> whole(sizes.begin(), sizes.end());
  if (!tiling.tiled()) return whole;
  for (size_t d = 0; d < whole.size(); ++d) whole[d] = SaturatingMultiply(whole[d], SizeOf(tiling.dims[d]));
  return whole;
}

std::optional<TileBounds> BoundsOf(const Tiling& tiling, absl::Span<const int64_t> sizes, int64_t device) {
  TileBounds bounds{std::vector<int64_t>(sizes.size(), 0), {sizes.begin(), sizes.end()}};
  if (tiling.kind == ShardingKind::kMaximal && device != tiling.device) return std::nullopt;
  if (!tiling.tiled()) return bounds;
  int64_t position = device;
  if (!tiling.order.empty()) {
    const auto found = std::find(tiling.order.begin(), tiling.order.end(), device);
    if (found == tiling.order.end()) return std::nullopt;
    position = found - tiling.order.begin();
  } else if (device < 0 || device >= tiling.device_count) {
    return std::nullopt;
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    const AxisList& axes = tiling.dims[d];
    const Interval part = PartOf(sizes[d], SizeOf(axes), TileNumber(axes, position));
    bounds.offset[d] = part.begin;
    bounds.limit[d] = part.end;
  }
  return bounds;
}

std::optional<Tiling> FinerCompatible(const Tiling& partial, const Tiling& target) {
  if (!partial.tiled() || !target.tiled() || partial.dims.size() != target.dims.size()) return std::nullopt;
  const std::optional<std::pair<Tiling, Tiling>> both = InOneOrder(partial, target);
  if (!both) return std::nullopt;
  const auto& [from, to] = *both;
  if (!SameSubgroups(from, to)) return std::nullopt;
  Tiling finer = from;
  finer.replicated = to.replicated;
  std::vector<int64_t> missing(from.dims.size());
  for (size_t d = 0; d < from.dims.size(); ++d) {
    const int64_t have = SizeOf(from.dims[d]), want = SizeOf(to.dims[d]);
    if (want % have != 0) return std::nullopt;
    missing[d] = want / have;
  }
  const auto free_axes = [&] {
    std::vector<const AxisList*> lists = {&finer.maximal, &finer.manual, &finer.unreduced, &finer.replicated};
    for (const AxisList& dim : finer.dims) lists.push_back(&dim);
    return Complement(lists, finer.device_count);
  };
  // First the axes that the dimension has in `target`, then any.
  for (const bool of_target : {true, false}) {
    for (size_t d = 0; d < finer.dims.size(); ++d) {
      const std::optional<AxisList> free = free_axes();
      if (!free) return std::nullopt;
      AxisList available = *free;
      if (of_target) {
        const std::optional<AxisList> taken = Subtract(to.dims[d], *free, finer.device_count);
        if (!taken) return std::nullopt;
        const std::optional<AxisList> own = Subtract(to.dims[d], *taken, finer.device_count);
        if (!own) return std::nullopt;
        available = *own;
      }
      while (missing[d] > 1 && !available.empty()) {
        const AxisList axes = TakeMajorDivisor(&available, missing[d]);
        if (axes.empty()) {
          available.erase(available.begin());
          continue;
        }
        AppendAxes(&finer.dims[d], axes);
        missing[d] /= SizeOf(axes);
      }
    }
  }
  if (std::any_of(missing.begin(), missing.end(), [](int64_t size) { return size > 1; })) return std::nullopt;
  finer.replicated.clear();
  return finer;
}

}  // namespace hlokit
