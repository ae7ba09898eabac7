// SPDX-License-Identifier: Apache-2.0
// Where the elements of an array lie in memory: dimension order and tiles.
//
// A tile of n extents applies to the n most minor dimensions, in memory order: [.., a, b] with tile (s,t) becomes
// [.., ceil(a/s), ceil(b/t), s, t]. Further tiles apply to the result. `*` combines a dimension with the next more
// minor one before it is tiled. Positions beyond the end of a dimension are padding.
#ifndef HLOKIT_IR_TYPES_TILED_LAYOUT_H_
#define HLOKIT_IR_TYPES_TILED_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/types/shape.h"

namespace hlokit {

class TiledLayout {
 public:
  // Requires: an array without unbounded dimensions.
  explicit TiledLayout(Shape array);

  // Returns false if the number of positions overflows; other methods then have no meaning.
  bool ok() const { return ok_; }
  // Returns the number of positions, padding included.
  int64_t position_count() const { return position_count_; }
  // Returns the position of the element at an index, in elements.
  int64_t PositionOf(absl::Span<const int64_t> index) const;
  // Sets the index of the element at a position. Returns false for padding.
  bool IndexAt(int64_t position, absl::Span<int64_t> index) const;

  // A part of an index: index[dim] / unit % size.
  struct Part {
    int64_t dim;
    int64_t size;
    int64_t unit;
  };
  // Returns the parts whose mixed-radix number is the position, major first; nullopt if there is padding, or dimensions
  // are combined.
  std::optional<std::vector<Part>> Parts() const;

 private:
  // One extent of a tile: dimensions [begin, end) before it, which are combined.
  struct Group {
    size_t begin, end;
    int64_t size;    // of the combined dimensions
    int64_t extent;  // of the tile
  };
  struct Level {
    std::vector<int64_t> dims;  // before the tile
    std::vector<Group> groups;  // of the most minor of them
    size_t first = 0;           // dimension of a group
  };

  bool AddTile(absl::Span<const int64_t> tile);

  std::vector<int64_t> order_;  // dimensions from major to minor
  size_t added_ = 0;            // dimensions of size 1 before them, for tiles of more extents
  std::vector<Level> levels_;
  std::vector<int64_t> dims_;  // after all tiles
  int64_t position_count_ = 1;
  bool ok_ = true;
};

// Returns true if the layout of an array has tiles.
inline bool HasTiles(Shape array) {
  const LayoutRecord* const layout = array.layout();
  return layout != nullptr && layout->extras != nullptr && !layout->extras->tiles.empty();
}

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_TILED_LAYOUT_H_
