// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/tile_assignment.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hlokit {
namespace {

// Calls visit(position in the array) for each element of the transposed array, in its order: an odometer over the new
// dimensions that tracks the old position.
template <typename Visit>
void ForEachTransposed(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm, int64_t count, Visit visit) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  std::vector<int64_t> at(perm.size(), 0);
  int64_t position = 0;
  for (int64_t n = 0; n < count; ++n) {
    visit(position);
    for (size_t i = perm.size(); i-- > 0;) {
      const size_t d = ToSize(perm[i]);
      position += strides[d];
      if (++at[i] < dims[d]) break;
      position -= strides[d] * dims[d];
      at[i] = 0;
    }
  }
}

// Effect of a transposition on the flat order of the elements.
enum class Effect : uint8_t { kNothing, kMovesUnitDims, kReorders };

Effect EffectOf(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm) {
  Effect effect = Effect::kNothing;
  int64_t last = -1;
  for (size_t i = 0; i < perm.size(); ++i) {
    const int64_t d = perm[i];
    if (dims[ToSize(d)] == 1) {
      if (ToSize(d) != i && dims[i] != 1) effect = Effect::kMovesUnitDims;
      continue;
    }
    if (d <= last) return Effect::kReorders;
    last = d;
  }
  return effect;
}

// If the tiles have exactly the dimensions of the iota, transposing the tiles transposes the iota.
std::optional<IotaTileAssignment> TransposedOrder(const TileAssignment& tiles, absl::Span<const int64_t> perm) {
  const IotaTileAssignment& order = tiles.iota;
  if (order.IsIdentity()) return IotaTileAssignment{tiles.dims, std::vector<int64_t>(perm.begin(), perm.end())};
  std::vector<int64_t> place(tiles.dims.size(), -1);  // of each tile dimension among those larger than 1
  size_t n = 0;
  for (size_t i = 0; i < tiles.dims.size(); ++i) {
    if (tiles.dims[i] == 1) continue;
    if (n >= order.perm.size() || order.reshape[ToSize(order.perm[n])] != tiles.dims[i]) return std::nullopt;
    place[i] = static_cast<int64_t>(n++);
  }
  if (n != order.perm.size()) return std::nullopt;
  IotaTileAssignment transposed{order.reshape, {}};
  for (int64_t d : perm) {
    if (place[ToSize(d)] >= 0) transposed.perm.push_back(order.perm[ToSize(place[ToSize(d)])]);
  }
  return transposed;
}

// Returns the iota whose groups of `group` consecutive positions have the elements of the groups of `order`, sorted:
// the dimensions within a group move to their natural order. The outermost of them may have to be split in two. Returns
// nullopt unless a group consists of whole dimensions and one such part.
std::optional<IotaTileAssignment> GroupsSorted(const IotaTileAssignment& order, int64_t group) {
  std::vector<int64_t> dims = order.reshape, perm = order.perm;
  size_t first = perm.size();  // of the dimensions within a group
  while (group > 1) {
    if (first == 0) return std::nullopt;
    const int64_t d = perm[--first];
    const int64_t size = dims[ToSize(d)];
    if (size <= group) {
      if (group % size != 0) return std::nullopt;
      group /= size;
      continue;
    }
    if (size % group != 0) return std::nullopt;
    dims[ToSize(d)] = size / group;
    dims.insert(dims.begin() + d + 1, group);
    for (int64_t& p : perm) p += p > d ? 1 : 0;
    perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(++first), d + 1);
    group = 1;
  }
  std::sort(perm.begin() + static_cast<std::ptrdiff_t>(first), perm.end());
  return IotaTileAssignment{std::move(dims), std::move(perm)};
}

}  // namespace

std::optional<int64_t> DeviceCount(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) {
    if (d < 1 || __builtin_mul_overflow(product, d, &product)) return std::nullopt;
  }
  return product;
}

bool IotaTileAssignment::Valid() const {
  if (reshape.empty() || perm.size() != reshape.size() || !DeviceCount(reshape)) return false;
  if (perm.size() == 1) return perm[0] == 0;
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

void IotaTileAssignment::Canonicalize() {
  // Merging adjacent dimensions can make others adjacent in both orders: repeat until nothing changes. Each iteration
  // removes a dimension.
  for (bool changed = reshape.size() > 1; changed;) {
    changed = false;
    std::vector<int64_t> renamed(reshape.size(), -1);
    size_t n = 0;
    for (size_t i = 0; i < reshape.size(); ++i) {
      if (reshape[i] == 1) continue;
      renamed[i] = static_cast<int64_t>(n);
      reshape[n++] = reshape[i];
    }
    reshape.resize(n);
    size_t m = 0;
    for (int64_t p : perm) {
      if (renamed[ToSize(p)] >= 0) perm[m++] = renamed[ToSize(p)];
    }
    perm.resize(m);
    for (size_t i = 1, base = 0; i < perm.size(); ++i) {
      if (perm[base] + static_cast<int64_t>(i - base) != perm[i]) {
        base = i;
        continue;
      }
      reshape[ToSize(perm[base])] *= reshape[ToSize(perm[i])];
      reshape[ToSize(perm[i])] = 1;
      changed = true;
    }
  }
  if (reshape.empty()) {
    reshape.assign(1, 1);
    perm.assign(1, 0);
  }
}

int64_t IotaTileAssignment::At(int64_t position) const {
  if (IsIdentity()) return position;
  int64_t device = 0;
  for (size_t i = perm.size(); i-- > 0;) {
    const size_t d = ToSize(perm[i]);
    int64_t part = position % reshape[d];
    position /= reshape[d];
    for (size_t minor = d + 1; minor < reshape.size(); ++minor) part *= reshape[minor];
    device += part;
  }
  return device;
}

TileAssignment TileAssignment::Iota(std::vector<int64_t> dims, IotaTileAssignment order) {
  order.Canonicalize();
  return {std::move(dims), std::move(order), {}};
}

bool TileAssignment::Expand(int64_t limit) {
  if (!is_iota()) return true;
  const int64_t count = device_count();
  if (count > limit) return false;
  devices.clear();
  devices.reserve(ToSize(count));
  ForEachTransposed(iota.reshape, iota.perm, count, [this](int64_t device) { devices.push_back(device); });
  iota = {};
  return true;
}

bool TileAssignment::Transpose(absl::Span<const int64_t> order, int64_t limit) {
  const Effect effect = EffectOf(dims, order);
  if (effect == Effect::kNothing) return true;
  std::vector<int64_t> new_dims;
  for (int64_t d : order) new_dims.push_back(dims[ToSize(d)]);
  if (effect == Effect::kMovesUnitDims) {
    dims = std::move(new_dims);
    return true;
  }
  if (is_iota()) {
    if (std::optional<IotaTileAssignment> transposed = TransposedOrder(*this, order)) {
      *this = Iota(std::move(new_dims), *std::move(transposed));
      return true;
    }
    if (!Expand(limit)) return false;
  }
  std::vector<int64_t> moved;
  moved.reserve(devices.size());
  ForEachTransposed(dims, order, static_cast<int64_t>(devices.size()),
                    [&](int64_t position) { moved.push_back(devices[ToSize(position)]); });
  devices = std::move(moved);
  dims = std::move(new_dims);
  return true;
}

bool TileAssignment::SortLastDim(int64_t limit) {
  const int64_t group = dims.back();
  if (is_iota()) {
    if (iota.reshape[ToSize(iota.perm.back())] == group) return true;
    if (std::optional<IotaTileAssignment> sorted = GroupsSorted(iota, group)) {
      iota = *std::move(sorted);
      iota.Canonicalize();
      return true;
    }
    if (!Expand(limit)) return false;
  }
  for (auto it = devices.begin(); it != devices.end(); it += group) std::sort(it, it + group);
  return true;
}

void PrintInts(TextWriter& out, absl::Span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out << ',';
    out << values[i];
  }
}

void PrintIotaTileAssignment(TextWriter& out, const IotaTileAssignment& order) {
  out << '[';
  PrintInts(out, order.reshape);
  out << ']';
  if (order.IsIdentity()) return;
  out << "T(";
  PrintInts(out, order.perm);
  out << ')';
}

void PrintTileAssignment(TextWriter& out, const TileAssignment& tiles) {
  out << '[';
  PrintInts(out, tiles.dims);
  out << ']';
  if (tiles.is_iota()) {
    out << "<=";
    PrintIotaTileAssignment(out, tiles.iota);
  } else {
    PrintInts(out, tiles.devices);
  }
}

}  // namespace hlokit
