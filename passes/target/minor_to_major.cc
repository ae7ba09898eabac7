// SPDX-License-Identifier: Apache-2.0
#include "passes/target/minor_to_major.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "ir/core/saturating.h"
#include "ir/ops/opcode_set.h"

namespace hlokit {

namespace {

using tpu::HasTiles;
using tpu::TiledElements;

// Compares the positions of the elements next to the first with those in an array of other dimensions. Returns false if
// one differs.
bool StepsAgree(Shape from, absl::Span<const int64_t> from_order, Shape to, absl::Span<const int64_t> to_order) {
  MinorToMajor place(static_cast<size_t>(from.rank()), 0), to_place(static_cast<size_t>(to.rank()), 0);
  int64_t stride = 1;
  for (int64_t d : from_order) {
    place[static_cast<size_t>(d)] = stride;
    stride = SaturatingMultiply(stride, SizeOf(from, d));
  }
  stride = 1;
  for (int64_t d : to_order) {
    to_place[static_cast<size_t>(d)] = stride;
    stride = SaturatingMultiply(stride, SizeOf(to, d));
  }
  int64_t step = 1;
  for (int64_t d = from.rank(); d-- > 0; step = SaturatingMultiply(step, SizeOf(from, d))) {
    if (SizeOf(from, d) == 1) continue;
    int64_t rest = step, at = 0;
    for (int64_t t = to.rank(); t-- > 0 && rest > 0;) {
      const int64_t size = std::max<int64_t>(SizeOf(to, t), 1);
      at = SaturatingAdd(at, SaturatingMultiply(rest % size, to_place[static_cast<size_t>(t)]));
      rest /= size;
    }
    if (at != place[static_cast<size_t>(d)]) return false;
  }
  return true;
}

int64_t MinorSize(Shape array, absl::Span<const int64_t> order) {
  for (int64_t d : order) {
    if (SizeOf(array, d) != 1) return SizeOf(array, d);
  }
  return 1;
}

}  // namespace

MinorToMajor DefaultOrder(int64_t rank) {
  MinorToMajor order;
  for (int64_t d = rank; d-- > 0;) order.push_back(d);
  return order;
}

MinorToMajor OrderWithMinor(Shape array, absl::Span<const int64_t> first) {
  MinorToMajor order;
  for (int64_t d : first) {
    if (SizeOf(array, d) != 1) order.push_back(d);
  }
  for (const bool ones : {false, true}) {
    for (int64_t d = array.rank(); d-- > 0;) {
      if ((SizeOf(array, d) == 1) == ones && !absl::c_linear_search(order, d)) order.push_back(d);
    }
  }
  return order;
}

MinorToMajor MinPaddingOrder(const tpu::VectorTile& tile, Shape array) {
  constexpr int64_t kMaxRank = 8;  // bound on the enumeration of orders
  MinorToMajor best = DefaultOrder(array.rank());
  if (array.rank() > kMaxRank) return best;
  for (int64_t a = array.rank(); a-- > 0;) {
    for (int64_t b = array.rank(); b-- > 0;) {
      if (a == b) continue;
      const int64_t first[] = {a, b};
      MinorToMajor order = OrderWithMinor(array, first);
      if (TiledElements(tile, array, order) < TiledElements(tile, array, best)) best = std::move(order);
    }
  }
  return best;
}

bool ReshapeIsBitcast(Shape from, absl::Span<const int64_t> from_order, Shape to, absl::Span<const int64_t> to_order) {
  if (from.element_count() <= 0 || to.element_count() <= 0) return from.element_count() == to.element_count();
  const int64_t row = MinorSize(from, from_order), to_row = MinorSize(to, to_order), all = from.element_count();
  return (row == to_row || row == all || to_row == all) && StepsAgree(from, from_order, to, to_order) &&
         StepsAgree(to, to_order, from, from_order);
}

bool IsLayoutBitcast(Instruction i) {
  if (i.opcode() == Opcode::kBitcast) return true;
  if (!OpcodeSet{Opcode::kReshape, Opcode::kTranspose}.Contains(i.opcode())) return false;
  const Shape from = i.operand(0).shape(), to = i.shape();
  if (!HasTiles(from) || !HasTiles(to)) return false;
  const absl::Span<const int64_t> in = from.layout()->minor_to_major, out = to.layout()->minor_to_major;
  if (i.opcode() == Opcode::kReshape) return ReshapeIsBitcast(from, in, to, out);
  // Dimension d of the result is permutation[d] of the operand; the position of dimensions of size 1 is irrelevant.
  const absl::Span<const int64_t> permutation = i.list_attr(Attr::kDimensions);
  if (static_cast<int64_t>(permutation.size()) != to.rank()) return false;
  MinorToMajor of, there;
  for (int64_t d : in) {
    if (SizeOf(from, d) != 1) of.push_back(d);
  }
  for (int64_t d : out) {
    if (SizeOf(to, d) != 1) there.push_back(permutation[static_cast<size_t>(d)]);
  }
  return of == there;
}

}  // namespace hlokit
