// SPDX-License-Identifier: Apache-2.0
// Assignment of tiles to devices: an array of device numbers with dimensions, given in full or as a transposed iota
// `[8,2]<=[2,8]T(1,0)`: the numbers 0, 1, ... in the shape [2,8], transposed by (1,0), reshaped to [8,2]. Used by
// shardings, meshes and replica groups. An iota may have more devices than memory holds, so it is only expanded up to a
// limit.
#ifndef HLOKIT_IR_SHARDING_TILE_ASSIGNMENT_H_
#define HLOKIT_IR_SHARDING_TILE_ASSIGNMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/text_writer.h"

namespace hlokit {

// Maximum number of devices of an iota that must be expanded.
inline constexpr int64_t kMaxExpandedDevices = int64_t{1} << 22;

// Returns an index of a vector. Requires: not negative.
inline size_t ToSize(int64_t i) { return static_cast<size_t>(i); }

// Returns the product of `dims`; nullopt if one is below 1 or the product overflows int64.
std::optional<int64_t> DeviceCount(absl::Span<const int64_t> dims);

// 0, 1, ... in the shape `reshape`, transposed by `perm`: position i of the result is dimension perm[i]. Absent if it
// has no dimensions. In canonical form it has no dimensions of size one (except [1] itself) and none that could be
// merged.
struct IotaTileAssignment {
  std::vector<int64_t> reshape;
  std::vector<int64_t> perm;

  bool empty() const { return reshape.empty(); }
  // Returns true for 0, 1, 2, ... Requires: canonical form.
  bool IsIdentity() const { return reshape.size() == 1; }
  // Returns true if `perm` is a permutation of the dimensions and their product does not overflow.
  bool Valid() const;
  void Canonicalize();
  // Returns the device at a position of the flattened result.
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
  // Returns 0 if the count overflows int64.
  int64_t device_count() const { return DeviceCount(dims).value_or(0); }
  int64_t At(int64_t position) const { return is_iota() ? iota.At(position) : devices[static_cast<size_t>(position)]; }

  // Expands an iota into a list. Returns false, and changes nothing, if it has more than `limit` devices.
  bool Expand(int64_t limit);
  // Transposes the dimensions; an iota stays one if possible, and is expanded otherwise. Returns false if it has more
  // than `limit` devices to expand.
  bool Transpose(absl::Span<const int64_t> perm, int64_t limit);
  // Sorts the devices of each group along the last dimension. Returns as Transpose.
  bool SortLastDim(int64_t limit);

  friend bool operator==(const TileAssignment&, const TileAssignment&) = default;
};

// Prints "4,1,2".
void PrintInts(TextWriter& out, absl::Span<const int64_t> values);
// Prints "[2,8]T(1,0)", "[16]".
void PrintIotaTileAssignment(TextWriter& out, const IotaTileAssignment& order);
// Prints "[8,2]<=[2,8]T(1,0)", "[2,1]1,0".
void PrintTileAssignment(TextWriter& out, const TileAssignment& tiles);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_TILE_ASSIGNMENT_H_
