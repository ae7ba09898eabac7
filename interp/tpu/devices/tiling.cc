// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/devices/tiling.h"

#include <algorithm>
#include <vector>

#include "ir/core/saturating.h"

namespace hlokit::tpu {

namespace {

int64_t SizeOf(Shape array, int64_t dimension) {
  return array.is_unbounded(dimension) ? 1 : std::max<int64_t>(array.dim(dimension), 0);
}

int64_t RoundUp(int64_t value, int64_t unit) {
  const int64_t rest = value % unit;
  return rest == 0 ? value : SaturatingAdd(value, unit - rest);
}

// Elements of an array in the tiles that its layout gives: the first tile rounds the dimensions it covers up.
int64_t TiledElements(Shape array, absl::Span<const int64_t> tile) {
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

int64_t ArrayBytes(const Machine& machine, Shape array) {
  int64_t bits = std::max(BitsOf(array.element_type()), 1);
  if (ClassOf(array.element_type()) == ElementClass::kPred) bits = 8;
  const LayoutRecord* layout = array.layout();
  if (layout != nullptr && layout->extras != nullptr) {
    if (layout->extras->element_size_in_bits > 0) bits = layout->extras->element_size_in_bits;
    if (!layout->extras->tiles.empty()) {
      return SaturatingMultiply(TiledElements(array, layout->extras->tiles[0]), bits) / 8;
    }
  }
  const int64_t lanes = static_cast<int64_t>(machine.lanes);
  const int64_t sublanes = static_cast<int64_t>(machine.sublanes);
  const Minor minor = MinorOf(array);
  // Narrow types pack several rows into the 32 bits of a position.
  const int64_t packing = std::max<int64_t>(32 / bits, 1);
  if (minor.rows == 1 && minor.outer == 1) {
    const int64_t row = lanes * packing;
    return SaturatingMultiply(RoundUp(minor.columns, minor.columns >= row ? row : lanes), bits) / 8;
  }
  int64_t tile_rows = sublanes;
  while (tile_rows > 2 && minor.rows <= tile_rows / 2) tile_rows /= 2;
  const int64_t rows = RoundUp(minor.rows, tile_rows);
  return SaturatingMultiply(SaturatingMultiply(SaturatingMultiply(minor.outer, rows), RoundUp(minor.columns, lanes)),
                            bits) /
         8;
}

}  // namespace

int64_t ElementsOf(Shape array) {
  int64_t elements = 1;
  for (int64_t i = 0; i < array.rank(); ++i) elements = SaturatingMultiply(elements, SizeOf(array, i));
  return elements;
}

namespace {

constexpr int64_t kMaxChoices = 8;  // dimensions among which a layout is looked for

// How much larger an array with these minor dimensions is than its elements.
double Growth(int64_t rows, int64_t columns) {
  const int64_t tile = rows <= 2 ? 2 : rows <= 4 ? 4 : 8;
  return static_cast<double>(RoundUp(rows, rows == 1 ? 1 : tile)) / static_cast<double>(rows) *
         static_cast<double>(RoundUp(columns, 128)) / static_cast<double>(columns);
}

}  // namespace

Minor MinorOf(Shape array) {
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
    double best = Growth(SizeOf(array, dimensions[1]), SizeOf(array, dimensions[0]));
    if (best > 2) {
      for (size_t c = 0; c < dimensions.size(); ++c) {
        for (size_t r = 0; r < dimensions.size(); ++r) {
          if (r == c) continue;
          const double growth = Growth(SizeOf(array, dimensions[r]), SizeOf(array, dimensions[c]));
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

int64_t PaddedBytes(const Machine& machine, Shape shape) {
  if (shape.IsArray()) return ArrayBytes(machine, shape);
  // Tuples may share elements and nest deeply; the parser bounds the number of leaves.
  int64_t bytes = 0;
  std::vector<Shape> open = {shape};
  while (!open.empty()) {
    const Shape s = open.back();
    open.pop_back();
    if (s.IsArray()) {
      bytes = SaturatingAdd(bytes, ArrayBytes(machine, s));
    } else {
      for (Shape element : s.elements()) open.push_back(element);
    }
  }
  return bytes;
}

}  // namespace hlokit::tpu
