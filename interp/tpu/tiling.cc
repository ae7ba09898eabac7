#include "interp/tpu/tiling.h"

#include <algorithm>
#include <vector>

#include "passes/analysis/saturating.h"

namespace hlokit::tpu {

namespace {

int64_t SizeOf(Shape array, int64_t dimension) {
  return array.is_unbounded(dimension) ? 1 : std::max<int64_t>(array.dim(dimension), 0);
}

int64_t RoundUp(int64_t value, int64_t unit) {
  const int64_t rest = value % unit;
  return rest == 0 ? value : SatAdd(value, unit - rest);
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
    elements = SatMul(elements, size);
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
      return SatMul(TiledElements(array, layout->extras->tiles[0]), bits) / 8;
    }
  }
  const int64_t lanes = static_cast<int64_t>(machine.lanes);
  const int64_t sublanes = static_cast<int64_t>(machine.sublanes);
  const Minor minor = MinorOf(array);
  // Narrow types pack several rows into the 32 bits of a position.
  const int64_t packing = std::max<int64_t>(32 / bits, 1);
  if (minor.rows == 1 && minor.outer == 1) {
    const int64_t row = lanes * packing;
    return SatMul(RoundUp(minor.columns, minor.columns >= row ? row : lanes), bits) / 8;
  }
  int64_t tile_rows = sublanes;
  while (tile_rows > 2 && minor.rows <= tile_rows / 2) tile_rows /= 2;
  const int64_t rows = RoundUp(minor.rows, tile_rows);
  return SatMul(SatMul(SatMul(minor.outer, rows), RoundUp(minor.columns, lanes)), bits) / 8;
}

}  // namespace

int64_t ElementsOf(Shape array) {
  int64_t elements = 1;
  for (int64_t i = 0; i < array.rank(); ++i) elements = SatMul(elements, SizeOf(array, i));
  return elements;
}

Minor MinorOf(Shape array) {
  Minor result;
  const LayoutRecord* layout = array.layout();
  int64_t found = 0;
  for (int64_t i = 0; i < array.rank(); ++i) {
    int64_t dimension = array.rank() - 1 - i;
    if (layout != nullptr && i < static_cast<int64_t>(layout->minor_to_major.size())) {
      dimension = layout->minor_to_major[i];
      if (dimension < 0 || dimension >= array.rank()) continue;
    }
    const int64_t size = SizeOf(array, dimension);
    if (size == 1) continue;
    (found == 0   ? result.columns
     : found == 1 ? result.rows
                  : result.outer) = found < 2 ? size : SatMul(result.outer, size);
    ++found;
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
      bytes = SatAdd(bytes, ArrayBytes(machine, s));
    } else {
      for (Shape element : s.elements()) open.push_back(element);
    }
  }
  return bytes;
}

}  // namespace hlokit::tpu
