// SPDX-License-Identifier: Apache-2.0
// Short forms of a builder for arithmetic on arrays of known shapes.
#ifndef HLOKIT_PASSES_EXPANDERS_ARRAY_BUILDER_H_
#define HLOKIT_PASSES_EXPANDERS_ARRAY_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "ir/builder/builder.h"

namespace hlokit {

class ArrayBuilder {
 public:
  using Id = InstructionId;
  using Dims = std::vector<int64_t>;

  explicit ArrayBuilder(Builder* builder) : b_(*builder) {}

  Builder& builder() const { return b_; }
  Shape Of(Id x) const { return b_.shape_of(x); }
  ElementType TypeOf(Id x) const { return Of(x).element_type(); }
  Dims SizesOf(Id x) const { return {Of(x).dims().begin(), Of(x).dims().end()}; }
  Shape Array(ElementType type, const Dims& sizes) const { return b_.shapes().Array(type, sizes); }

  // ---- elementwise; operands have one shape ----
  Id Add(Id x, Id y) { return b_.MakeLike(Opcode::kAdd, {x, y}); }
  Id Subtract(Id x, Id y) { return b_.MakeLike(Opcode::kSubtract, {x, y}); }
  Id Multiply(Id x, Id y) { return b_.MakeLike(Opcode::kMultiply, {x, y}); }
  Id Divide(Id x, Id y) { return b_.MakeLike(Opcode::kDivide, {x, y}); }
  Id Minimum(Id x, Id y) { return b_.MakeLike(Opcode::kMinimum, {x, y}); }
  Id And(Id x, Id y) { return b_.MakeLike(Opcode::kAnd, {x, y}); }
  Id Negate(Id x) { return b_.MakeLike(Opcode::kNegate, {x}); }
  Id Abs(Id x) { return b_.MakeLike(Opcode::kAbs, {x}); }
  Id Sqrt(Id x) { return b_.MakeLike(Opcode::kSqrt, {x}); }
  Id Square(Id x) { return Multiply(x, x); }
  Id Compare(ComparisonDirection direction, Id x, Id y) { return b_.MakeCompare(direction, x, y); }
  Id Select(Id mask, Id x, Id y) { return b_.Make(Opcode::kSelect, Of(x), {mask, x, y}); }
  // Returns an array like `x` with all elements equal to `value`.
  Id Like(Id x, double value) { return b_.MakeSplat(Of(x), b_.MakeScalarConstant(TypeOf(x), value)); }

  // ---- shapes ----
  // Returns `x` with the layout of `shape`, which is equal otherwise.
  Id InLayoutOf(Shape shape, Id x) { return b_.MakeCopy(x, shape); }
  Id InDefaultLayout(Id x) { return InLayoutOf(Array(TypeOf(x), SizesOf(x)), x); }
  Id Iota(const Dims& sizes, int64_t dimension) {
    const AttrValue attrs[] = {b_.Int(Attr::kIotaDimension, dimension)};
    return b_.Make(Opcode::kIota, Array(ElementType::kS32, sizes), {}, attrs);
  }
  // Dimension k of `x` becomes dimension positions[k].
  Id Broadcast(Id x, const Dims& sizes, const Dims& positions) {
    const AttrValue attrs[] = {b_.List(Attr::kDimensions, positions)};
    return b_.Make(Opcode::kBroadcast, Array(TypeOf(x), sizes), {x}, attrs);
  }
  Id Reshape(Id x, const Dims& sizes) { return b_.MakeReshape(x, Array(TypeOf(x), sizes)); }
  Id Transpose(Id x, const Dims& order) {
    Dims sizes;
    for (int64_t d : order) sizes.push_back(Of(x).dim(d));
    const AttrValue attrs[] = {b_.List(Attr::kDimensions, order)};
    return b_.Make(Opcode::kTranspose, Array(TypeOf(x), sizes), {x}, attrs);
  }
  // Returns the elements begin .. end - 1 of a dimension.
  Id Slice(Id x, int64_t dimension, int64_t begin, int64_t end) {
    Dims sizes = SizesOf(x), ranges;
    for (int64_t d = 0; d < Of(x).rank(); ++d) {
      const bool cut = d == dimension;
      ranges.insert(ranges.end(), {cut ? begin : 0, cut ? end : Of(x).dim(d), 1});
    }
    sizes[static_cast<size_t>(dimension)] = end - begin;
    const AttrValue attrs[] = {b_.List(Attr::kSlice, ranges)};
    return b_.Make(Opcode::kSlice, Array(TypeOf(x), sizes), {x}, attrs);
  }
  Id Concatenate(std::initializer_list<Id> parts, int64_t dimension) {
    Dims sizes = SizesOf(*parts.begin());
    sizes[static_cast<size_t>(dimension)] = 0;
    for (Id part : parts) sizes[static_cast<size_t>(dimension)] += Of(part).dim(dimension);
    const AttrValue attrs[] = {b_.List(Attr::kDimensions, {dimension})};
    return b_.Make(Opcode::kConcatenate, Array(TypeOf(*parts.begin()), sizes), std::vector<Id>(parts), attrs);
  }
  // Adds `count` zeros at the end of a dimension.
  Id PadEnd(Id x, int64_t dimension, int64_t count) {
    Dims sizes = SizesOf(x), padding(3 * sizes.size(), 0);
    sizes[static_cast<size_t>(dimension)] += count;
    padding[3 * static_cast<size_t>(dimension) + 1] = count;
    const AttrValue attrs[] = {b_.List(Attr::kPadding, padding)};
    return b_.Make(Opcode::kPad, Array(TypeOf(x), sizes), {x, b_.MakeScalarConstant(TypeOf(x), 0)}, attrs);
  }
  // Returns element `index` of a dimension, without that dimension. `index`: an s32 scalar within the dimension.
  Id At(Id x, int64_t dimension, Id index) {
    Dims sizes = SizesOf(x);
    sizes[static_cast<size_t>(dimension)] = 1;
    const Id zero = b_.MakeScalarConstant(ElementType::kS32, 0);
    std::vector<Id> operands(sizes.size() + 1, zero);
    operands[0] = x;
    operands[static_cast<size_t>(dimension) + 1] = index;
    const AttrValue attrs[] = {b_.List(Attr::kDynamicSliceSizes, sizes)};
    const Id slice = b_.Make(Opcode::kDynamicSlice, Array(TypeOf(x), sizes), operands, attrs);
    sizes.erase(sizes.begin() + dimension);
    return Reshape(slice, sizes);
  }

  // ---- combining ----
  // Reduces dimensions by `opcode` from `init`.
  Id Reduce(Id x, Opcode opcode, double init, const Dims& dimensions) {
    return b_.MakeReduce(x, b_.MakeScalarConstant(TypeOf(x), init), dimensions, b_.MakeReducer(opcode, TypeOf(x)));
  }
  Id Sum(Id x, const Dims& dimensions) { return Reduce(x, Opcode::kAdd, 0, dimensions); }

 private:
  Builder& b_;
};

// Returns true if `x` is an array of this element type and these sizes, none of them dynamic, in any layout.
inline bool IsArrayOf(Shape x, ElementType type, absl::Span<const int64_t> sizes) {
  return x.IsArray() && x.element_type() == type && x.dims() == sizes && !x.has_dynamic_dims();
}

// Returns first, first + 1, ..., `count` numbers.
inline std::vector<int64_t> Sequence(int64_t count, int64_t first = 0) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_EXPANDERS_ARRAY_BUILDER_H_
