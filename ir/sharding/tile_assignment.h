// SPDX-License-Identifier: Apache-2.0
// Which device holds which tile: an array of device numbers with dimensions, given in full or as a transposed iota
// `[8,2]<=[2,8]T(1,0)`: the numbers 0, 1, ... laid out in the shape [2,8], transposed by (1,0), reshaped to [8,2].
// Shardings, meshes and replica groups are made of these. An iota may stand for more devices than memory holds, so
// nothing here writes it out without a limit.
#ifndef HLOKIT_IR_SHARDING_TILE_ASSIGNMENT_H_
#define HLOKIT_IR_SHARDING_TILE_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/text_writer.h"

namespace hlokit {

// Most devices that an iota is written out for where that cannot be avoided.
inline constexpr int64_t kMaxExpandedDevices = int64_t{1} << 22;

// The product of `dims`, each at least 1; nullopt otherwise, and when it does not fit in int64.
std::optional<int64_t> DeviceCount(absl::Span<const int64_t> dims);

// 0, 1, ... in the shape `reshape`, transposed by `perm`: position i of the result is dimension perm[i]. An order with
// no dimensions is absent; canonical ones have no dimensions of size one (but [1] itself) and none that could be
// merged.
struct IotaTileAssignment {
  std::vector<int64_t> reshape;
  std::vector<int64_t> perm;

  bool empty() const { return reshape.empty(); }
  // True for 0, 1, 2, ... (in canonical form).
  bool IsIdentity() const { return reshape.size() == 1; }
  // True if `perm` is a permutation of the dimensions and their product fits.
  bool Valid() const;
  void Canonicalize();
  // The device at a position of the flattened result.
  int64_t At(int64_t position) const;
  friend bool operator==(const IotaTileAssignment&, const IotaTileAssignment&) = default;
};

struct TileAssignment {
  std::vector<int64_t> dims;
  IotaTileAssignment iota;       // empty: `devices` lists them
  std::vector<int64_t> devices;  // row-major

  static TileAssignment Iota(std::vector<int64_t> dims, IotaTileAssignment order);

  bool is_iota() const { return !iota.empty(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  // 0 when it does not fit in int64.
  int64_t device_count() const { return DeviceCount(dims).value_or(0); }
  int64_t At(int64_t position) const { return is_iota() ? iota.At(position) : devices[static_cast<size_t>(position)]; }

  // Lists the devices of an iota. False, and nothing changed, when they are more than `limit`.
  bool Expand(int64_t limit);
  // Reorders the dimensions; an iota stays one where that is possible, and else is listed. False when there are more
  // than `limit` to list.
  bool Transpose(absl::Span<const int64_t> perm, int64_t limit);
  // Sorts the devices of each group along the last dimension. As for Transpose.
  bool SortLastDim(int64_t limit);

  friend bool operator==(const TileAssignment&, const TileAssignment&) = default;
};

// "4,1,2"
void PrintInts(TextWriter& out, absl::Span<const int64_t> values);
// "[2,8]T(1,0)", "[16]"
void PrintIotaTileAssignment(TextWriter& out, const IotaTileAssignment& order);
// "[8,2]<=[2,8]T(1,0)", "[2,1]1,0"
void PrintTileAssignment(TextWriter& out, const TileAssignment& tiles);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_TILE_ASSIGNMENT_H_
