// SPDX-License-Identifier: Apache-2.0
#include "passes/target/tiling.h"

#include <algorithm>
#include <vector>

#include "ir/core/saturating.h"

namespace hlokit::tpu {

namespace {

int64_t RoundUp(int64_t value, int64_t unit) {
  const int64_t rest = value % unit;
  return rest == 0 ? value : SaturatingAdd(value, unit - rest);
}

// Returns the elements of an array in the tiles of its layout. The first tile rounds up the dimensions it covers.
int64_t ElementsInOwnTiles(Shape array, absl::Span<const int64_t> tile) {
  const absl::Span<const int64_t> order = array.layout()->minor_to_major;
  int64_t elements = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= array.rank()) return ElementsOf(array);
    int64_t size = SizeOf(array, order[i]);
    if (i < tile.size()) {
      const int64_t extent = tile[tile.size() - 1 - i];
      if (extent > 0) size = RoundUp(size, extent);
    }
    elements = SaturatingMultiply(elements, size);
  }
  return elements;
}

int64_t ArrayBytes(const VectorTile& tile, Shape array) {
  const int64_t bits = StorageBits(array);
  const LayoutRecord* layout = array.layout();
  if (layout != nullptr && layout->extras != nullptr) {
    if (!layout->extras->tiles.empty()) {
      return SaturatingMultiply(ElementsInOwnTiles(array, layout->extras->tiles[0]), bits) / 8;
    }
  }
  const int64_t lanes = tile.lanes;
  const Minor minor = MinorOf(tile, array);
  // Narrow types pack several rows into a 32-bit position.
  const int64_t packing = std::max<int64_t>(32 / bits, 1);
  if (minor.rows == 1 && minor.outer == 1) {
    const int64_t row = lanes * packing;
    return SaturatingMultiply(RoundUp(minor.columns, minor.columns >= row ? row : lanes), bits) / 8;
  }
  const int64_t rows = RoundUp(minor.rows, TileRows(tile, minor.rows));
  return SaturatingMultiply(SaturatingMultiply(SaturatingMultiply(minor.outer, rows), RoundUp(minor.columns, lanes)),
                            bits) /
         8;
}

}  // namespace

int64_t StorageBits(Shape array) {
  const LayoutRecord* layout = array.layout();
  if (layout != nullptr && layout->extras != nullptr && layout->extras->element_size_in_bits > 0) {
    return layout->extras->element_size_in_bits;
  }
  return ClassOf(array.element_type()) == ElementClass::kPred ? 8 : std::max(BitsOf(array.element_type()), 1);
}

int64_t TileRows(const VectorTile& tile, int64_t rows) {
  int64_t tile_rows = tile.sublanes;
  while (tile_rows > 2 && rows <= tile_rows / 2) tile_rows /= 2;
  return tile_rows;
}

int64_t TiledElements(const VectorTile& tile, Shape array, absl::Span<const int64_t> minor_to_major) {
  int64_t elements = 1;
  for (size_t k = 0; k < minor_to_major.size(); ++k) {
    const int64_t size = SizeOf(array, minor_to_major[k]);
    const int64_t unit = minor_to_major.size() == 1 ? 1 : k == 0 ? tile.lanes : k == 1 ? TileRows(tile, size) : 1;
    elements = SaturatingMultiply(elements, RoundUp(size, unit));
  }
  return elements;
}

Shape WithTiles(const VectorTile& tile, ShapeTable& shapes, Shape array) {
  constexpr int kPositionBits = 32;
  const int bits = ClassOf(array.element_type()) == ElementClass::kPred ? 8 : std::max(BitsOf(array.element_type()), 1);
  if (!array.has_layout() || array.rank() == 0 || bits > kPositionBits || array.layout()->memory_space() != 0) {
    return array;
  }
  // Elements per 32-bit position: two of 16 bits, four of 8 bits, eight of fewer bits.
  const int packing = bits >= 32 ? 1 : bits >= 16 ? 2 : bits >= 8 ? 4 : 8;
  LayoutExtras extras;
  if (array.layout()->extras != nullptr) extras = *array.layout()->extras;
  extras.tiles.clear();
  if (array.rank() == 1) {
    const int64_t most = tile.sublanes * tile.lanes;
    int64_t row = tile.lanes * packing;
    while (row < most && row < array.dim(0)) row *= 2;
    extras.tiles.push_back({array.is_unbounded(0) ? most : row});
    if (packing > 1) extras.tiles.push_back({tile.lanes});
  } else {
    extras.tiles.push_back({TileRows(tile, array.dim(array.layout()->minor_to_major[1])), tile.lanes});
  }
  if (packing > 1) extras.tiles.push_back({packing, 1});
  return shapes.WithLayout(array, shapes.Layout(array.layout()->minor_to_major, extras));
}

int64_t ElementsOf(Shape array) {
  int64_t elements = 1;
  for (int64_t i = 0; i < array.rank(); ++i) elements = SaturatingMultiply(elements, SizeOf(array, i));
  return elements;
}

namespace {

constexpr int64_t kMaxChoices = 8;  // dimensions considered as minor

// Returns the ratio of the padded size with these minor dimensions to the number of elements.
double Growth(const VectorTile& tile, int64_t rows, int64_t columns) {
  return static_cast<double>(RoundUp(rows, rows == 1 ? 1 : TileRows(tile, rows))) / static_cast<double>(rows) *
         static_cast<double>(RoundUp(columns, tile.lanes)) / static_cast<double>(columns);
}

}  // namespace

Minor MinorOf(const VectorTile& tile, Shape array) {
  Minor result;
  const LayoutRecord* layout = array.layout();
  std::vector<int64_t> dimensions;  // minor first, larger than 1
  for (int64_t i = 0; i < array.rank(); ++i) {
    int64_t dimension = array.rank() - 1 - i;
    if (layout != nullptr && i < static_cast<int64_t>(layout->minor_to_major.size())) {
      dimension = layout->minor_to_major[i];
      if (dimension < 0 || dimension >= array.rank()) continue;
    }
    if (SizeOf(array, dimension) != 1) dimensions.push_back(dimension);
  }
  if (dimensions.empty()) return result;
  for (int64_t d : dimensions) {
    if (SizeOf(array, d) == 0) return {0, 1, 1, -1};
  }
  size_t column = 0;
  size_t row = 1;
  const int64_t count = static_cast<int64_t>(dimensions.size());
  if (count > 1 && count <= kMaxChoices && !HasTiles(array)) {
    double best = Growth(tile, SizeOf(array, dimensions[1]), SizeOf(array, dimensions[0]));
    if (best > 2) {
      for (size_t c = 0; c < dimensions.size(); ++c) {
        for (size_t r = 0; r < dimensions.size(); ++r) {
          if (r == c) continue;
          const double growth = Growth(tile, SizeOf(array, dimensions[r]), SizeOf(array, dimensions[c]));
          if (growth >= best) continue;
          best = growth;
          column = c;
          row = r;
        }
      }
    }
  }
  result.column_dimension = dimensions[column];
  result.columns = SizeOf(array, dimensions[column]);
  for (size_t k = 0; k < dimensions.size(); ++k) {
    if (k == column) continue;
    const int64_t size = SizeOf(array, dimensions[k]);
    if (k == row) {
      result.rows = size;
    } else {
      result.outer = SaturatingMultiply(result.outer, size);
    }
  }
  return result;
}

int64_t PaddedBytes(const VectorTile& tile, Shape shape) {
  if (shape.IsArray()) return ArrayBytes(tile, shape);
  // Tuples can share elements and nest deeply; the parser bounds the number of leaves.
  int64_t bytes = 0;
  std::vector<Shape> open = {shape};
  while (!open.empty()) {
    const Shape s = open.back();
    open.pop_back();
    if (s.IsArray()) {
      bytes = SaturatingAdd(bytes, ArrayBytes(tile, s));
    } else {
      for (Shape element : s.elements()) open.push_back(element);
    }
  }
  return bytes;
}

}  // namespace hlokit::tpu
