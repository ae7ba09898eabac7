// SPDX-License-Identifier: Apache-2.0
// Exchange of halos: what a device needs of a tiled dimension for its part of the result of a window operation, and
// from which neighbors it gets that.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_HALO_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_HALO_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace hlokit::spmd {

// Result index o needs the positions o * stride - low … + size - 1 of the dilated input, in which element e is at
// position e * base_dilation. Results outside of [begin, end) do not count.
struct HaloWindow {
  int64_t input = 0;
  int64_t output = 0;
  int64_t stride = 1;
  int64_t low = 0;
  int64_t base_dilation = 1;
  int64_t size = 1;  // dilated
  int64_t begin = 0;
  int64_t end = 0;
};

// As `low` of a reversed dimension: that of the array after the parts have changed places depends on their number.
inline constexpr int64_t kReversed = std::numeric_limits<int64_t>::min();

// Where device i, of `tiles`, gets its elements. Offsets are relative to the first element of its own part.
struct HaloPlan {
  int64_t tiles = 1;
  int64_t input_part = 0, output_part = 0;
  // The elements that are fetched, and those around them that need not exist.
  int64_t fetch_begin = 0, fetch_end = 0;
  int64_t begin = 0, end = 0;
  int64_t width = 0;          // elements for one device's results, from first(i)
  int64_t dilated_width = 0;  // positions, from the first that counts
  bool same_start = true;     // first(i) - i * input_part is equal for all i
  bool same_hole = true;      // as is the number of positions before the first that counts
  bool outside = false;       // some device needs elements that do not exist
  struct Piece {
    int64_t hop;               // from the device `hop` tiles behind this one; 0: this one
    int64_t begin, end;        // of its part
    std::vector<bool> needed;  // by tile
  };
  std::vector<Piece> pieces;
  double exchanged = 0;  // elements that a device receives

  // The first element of device i's window, and how many positions before the window it is.
  int64_t First(const HaloWindow& window, int64_t i) const;
  int64_t Hole(const HaloWindow& window, int64_t i) const;
};
HaloPlan PlanHalo(const HaloWindow& window, int64_t tiles);

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_HALO_H_
