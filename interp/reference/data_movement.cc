// SPDX-License-Identifier: Apache-2.0
// Instructions that move elements to positions known from the text: each finds the operand element for every result
// element.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/reference/ops.h"
#include "ir/graph/attribute_views.h"
#include "ir/types/tiled_layout.h"

namespace hlokit::reference {
namespace {

// Returns the dimensions in memory order, from major to minor.
std::vector<int64_t> MajorToMinorOrder(Shape shape) {
  std::vector<int64_t> order;
  const LayoutRecord* layout = shape.layout();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool has = layout != nullptr && static_cast<int64_t>(layout->minor_to_major.size()) == shape.rank();
    order.push_back(has ? layout->minor_to_major[static_cast<size_t>(shape.rank() - 1 - d)] : d);
  }
  return order;
}

// Returns the row-major positions of the elements in memory order.
std::vector<int64_t> PositionsInMemory(Shape shape) { return GroupPositions(shape.dims(), MajorToMinorOrder(shape)); }

bool IsRowMajor(Shape shape) {
  const std::vector<int64_t> order = MajorToMinorOrder(shape);
  return std::is_sorted(order.begin(), order.end());
}

// Copies the bits of `from`, dense and little endian, to `to`, which has the same number.
void CopyBits(const Op& op, const Array& from, Array* to) {
  const int from_bits = BitsOf(from.type()), to_bits = BitsOf(to->type());
  if (from_bits == to_bits && from_bits >= 8) return to->CopyBytes(from);
  std::byte* out = to->mutable_data();
  op.ForEach(to->count() * to_bits, [&](int64_t bit) {
    const int64_t from_byte = bit / from_bits * from.width() + bit % from_bits / 8;
    const int64_t to_byte = bit / to_bits * to->width() + bit % to_bits / 8;
    const uint8_t value = static_cast<uint8_t>(from.data()[from_byte]) >> (bit % from_bits % 8) & 1;
    out[to_byte] |= static_cast<std::byte>(value << (bit % to_bits % 8));
  });
  // Signed elements narrower than a byte are stored sign-extended.
  if (to_bits >= 8 || !IsSigned(to->type())) return;
  for (int64_t i = 0; i < to->count(); ++i) to->SetInteger(i, static_cast<int64_t>(out[i]));
}

// Sets each element of the result to the operand element at the index that source(index) returns.
template <typename SourceOf>
void MoveElements(Op& op, const Array& from, SourceOf source_of) {
  int64_t to = 0;
  op.ForEachIndex(op.shape.dims(), [&](const Index& index) {
    op.out().CopyElement(to++, from, PositionOf(source_of(index), from.dims()));
  });
}

// Copies each element of the result from where it lies in the memory of the operand, byte for byte; what lies in
// padding or beyond the end of the operand is zero.
void BitcastMemory(Op& op) {
  const Array& from = op.in(0);
  Array& to = op.out();
  const TiledLayout from_layout(op.instruction.operand(0).shape()), to_layout(op.shape);
  int64_t bytes;
  if (!op.Require(
          from_layout.ok() && to_layout.ok() && !__builtin_mul_overflow(to_layout.position_count(), to.width(), &bytes),
          "the tiles of this bitcast are too large") ||
      !op.Require(from.type() == to.type() || std::min(BitsOf(from.type()), BitsOf(to.type())) >= 8,
                  "bitcast to another element width below a byte with layouts")) {
    return;
  }
  absl::flat_hash_map<int64_t, int64_t> element_at;  // by position in memory
  int64_t element = 0;
  op.ForEachIndex(from.dims(), [&](const Index& index) { element_at[from_layout.PositionOf(index)] = element++; });
  int64_t out = 0;
  op.ForEachIndex(to.dims(), [&](const Index& index) {
    const int64_t address = to_layout.PositionOf(index) * to.width();
    for (int64_t byte = 0; byte < to.width(); ++byte, ++out) {
      const auto at = element_at.find((address + byte) / from.width());
      if (at == element_at.end()) continue;
      to.mutable_data()[out] = from.data()[at->second * from.width() + (address + byte) % from.width()];
    }
  });
}

bool HasSameBits(const Array& a, const Array& b) {
  return static_cast<__int128>(a.count()) * BitsOf(a.type()) == static_cast<__int128>(b.count()) * BitsOf(b.type());
}

void BitcastArray(Op& op) {
  const Array& from = op.in(0);
  const Shape operand = op.instruction.operand(0).shape();
  const bool row_major = IsRowMajor(operand) && IsRowMajor(op.shape);
  const bool tiled = HasTiles(operand) || HasTiles(op.shape);
  const int from_bits = BitsOf(from.type()), to_bits = BitsOf(op.out().type());
  const bool byte_each = op.run.options.mixed_precision == interp::MixedPrecisionMode::kReinterpret &&
                         from_bits != to_bits && std::min(from_bits, to_bits) < 8;
  if (tiled || (!row_major && from_bits != to_bits)) return BitcastMemory(op);
  if (row_major && (byte_each || from.type() == op.out().type()) && from.bytes() > op.out().bytes()) {
    return op.out().CopyBytes(from);
  }
  if (!op.Require(HasSameBits(from, op.out()), "operand and result have different numbers of bits")) return;
  if (row_major) return CopyBits(op, from, &op.out());
  if (!op.Require(from_bits >= 8 || from.type() == op.out().type(),
                  "bitcast to another element width below a byte with layouts")) {
    return;
  }
  const std::vector<int64_t> places = PositionsInMemory(operand), targets = PositionsInMemory(op.shape);
  op.ForEach(op.out().count(), [&](int64_t i) {
    op.out().CopyElement(targets[static_cast<size_t>(i)], from, places[static_cast<size_t>(i)]);
  });
}

}  // namespace

namespace ops {

// `bitcast`: keeps the bytes in memory, so layouts determine the correspondence of elements. For padded or overlapping
// memory, the result has the leading part. Returns leaves other than arrays unchanged.
SlotValue Bitcast(Op& op) {
  if (!op.shape.IsArray() || op.operands[0].size() != 1) return op.operands[0];
  op.results = op.run.AllocateLeaves(op.shape);
  if (!op.run.failed()) BitcastArray(op);
  return SlotValue(op.results.begin(), op.results.end());
}

}  // namespace ops

namespace fill_ops {

// `bitcast-convert`
void BitcastConvert(Op& op) {
  if (op.Require(HasSameBits(op.in(0), op.out()), "operand and result have different numbers of bits")) {
    CopyBits(op, op.in(0), &op.out());
  }
}

// `broadcast`: dimension d of the operand is dimension `dimensions[d]` of the result; one of size 1 is repeated.
void Broadcast(Op& op) {
  const Array& from = op.in(0);
  const Dims dimensions = op.instruction.list_attr(Attr::kDimensions);
  if (!op.Require(dimensions.size() == from.dims().size(), "dimensions do not fit the operand")) return;
  MoveElements(op, from, [&](const Index& index) {
    Index source(dimensions.size(), 0);
    for (size_t d = 0; d < dimensions.size(); ++d) {
      if (from.dim(static_cast<int64_t>(d)) != 1) source[d] = index[static_cast<size_t>(dimensions[d])];
    }
    return source;
  });
}

// `concatenate`
void Concatenate(Op& op) {
  const size_t dim = static_cast<size_t>(op.instruction.list_attr(Attr::kDimensions)[0]);
  int64_t begin = 0;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const Array& from = op.in(k);
    int64_t i = 0;
    op.ForEachIndex(from.dims(), [&](const Index& index) {
      Index to = index;
      to[dim] += begin;
      op.out().CopyElement(PositionOf(to, op.shape.dims()), from, i++);
    });
    begin += from.dim(static_cast<int64_t>(dim));
  }
}

// `dynamic-reshape`, `reshape`: keeps the elements in row-major order.
void Reshape(Op& op) {
  if (op.Require(op.in(0).count() == op.out().count(), "operand and result have different numbers of elements")) {
    op.out().CopyBytes(op.in(0));
  }
}
void DynamicReshape(Op& op) { Reshape(op); }

// `iota`: numbers converted from s64.
void Iota(Op& op) {
  const size_t dim = static_cast<size_t>(op.instruction.int_attr(Attr::kIotaDimension));
  if (!op.Require(dim < op.shape.dims().size(), "iota_dimension is not a dimension of the result")) return;
  if (op.out().count() == 0) return;
  ShapeTable& shapes = op.run.program.module->context().shapes;
  const std::shared_ptr<Array> numbers =
      op.run.Allocate(shapes.Array(ElementType::kS64, {op.shape.dim(static_cast<int64_t>(dim))}));
  if (numbers == nullptr) return;
  for (int64_t i = 0; i < numbers->count() && op.run.Tick(); ++i) numbers->SetInteger(i, i);
  const Leaf line = Converted(op.run, numbers, op.out().type());
  if (line == nullptr) return;
  int64_t to = 0;
  op.ForEachIndex(op.shape.dims(), [&](const Index& index) { op.out().CopyElement(to++, *line, index[dim]); });
}

// `pad`: element i of a dimension moves to low + i (interior + 1); elements outside of the result are dropped.
void Pad(Op& op) {
  const PaddingView padding = PaddingView::Of(op.instruction);
  if (!op.Require(padding.ok() && padding.rank() == op.shape.rank(), "padding does not fit the operand")) return;
  op.ForEach(op.out().count(), [&](int64_t i) { op.out().CopyElement(i, op.in(1), 0); });
  int64_t from = 0;
  op.ForEachIndex(op.in(0).dims(), [&](const Index& index) {
    const int64_t i = from++;
    Index to = index;
    for (int64_t d = 0; d < op.shape.rank(); ++d) {
      int64_t& at = to[static_cast<size_t>(d)];
      // Interior padding may be any number if there are no two elements.
      if ((at != 0 && __builtin_mul_overflow(at, padding.interior(d) + 1, &at)) ||
          __builtin_add_overflow(at, padding.low(d), &at) || at < 0 || at >= op.shape.dim(d)) {
        return;
      }
    }
    op.out().CopyElement(PositionOf(to, op.shape.dims()), op.in(0), i);
  });
}

// `reverse`
void Reverse(Op& op) {
  MoveElements(op, op.in(0), [&](Index index) {
    for (int64_t d : op.instruction.list_attr(Attr::kDimensions)) {
      index[static_cast<size_t>(d)] = op.shape.dim(d) - 1 - index[static_cast<size_t>(d)];
    }
    return index;
  });
}

// `slice`
void Slice(Op& op) {
  const SliceView slice = SliceView::Of(op.instruction);
  if (!op.Require(slice.ok() && slice.rank() == op.shape.rank(), "slice does not fit the operand")) return;
  MoveElements(op, op.in(0), [&](Index index) {
    for (int64_t d = 0; d < slice.rank(); ++d) {
      index[static_cast<size_t>(d)] = slice.start(d) + index[static_cast<size_t>(d)] * slice.stride(d);
    }
    return index;
  });
}

// `transpose`: dimension d of the result is dimension `dimensions[d]` of the operand.
void Transpose(Op& op) {
  const Dims permutation = op.instruction.list_attr(Attr::kDimensions);
  MoveElements(op, op.in(0), [&](const Index& index) {
    Index from(index.size());
    for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(permutation[d])] = index[d];
    return from;
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference
