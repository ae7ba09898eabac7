// SPDX-License-Identifier: Apache-2.0
// Reshapes of dynamic arrays: the elements within the sizes keep their row-major order.
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {
namespace {

// Dimensions [from_begin, from_end) that become [to_begin, to_end): they have as many elements.
struct DimensionGroup {
  int64_t from_begin, from_end, to_begin, to_end;
};

// Returns the smallest groups of dimensions of a reshape between arrays with elements.
std::vector<DimensionGroup> GroupsOf(Shape from, Shape to) {
  std::vector<DimensionGroup> groups;
  int64_t a = 0, b = 0;
  while (a < from.rank() || b < to.rank()) {
    DimensionGroup group = {a, a, b, b};
    int64_t from_size = 1, to_size = 1;
    do {
      if (a < from.rank() && (from_size <= to_size || b == to.rank())) {
        from_size *= from.dim(a++);
      } else {
        to_size *= to.dim(b++);
      }
    } while (from_size != to_size && (a < from.rank() || b < to.rank()));
    // A dimension of one element belongs to neither side.
    group.from_end = a;
    group.to_end = b;
    groups.push_back(group);
  }
  return groups;
}

// Returns the first dimension of the range with another size than 1, or `end`.
int64_t FirstWide(Shape shape, int64_t begin, int64_t end) {
  while (begin < end && shape.dim(begin) == 1) ++begin;
  return begin;
}

}  // namespace

absl::StatusOr<Padder::InferredSizes> Padder::InferReshape(Instruction i) {
  const Instruction operand = i.operand(0);
  const Shape from = operand.shape(), to = i.shape();
  InferredSizes result{Sizes(static_cast<size_t>(to.rank())), {}};
  if (from.element_count() == 0) {
    // No size matters but that of a dimension that stays.
    for (int64_t d = 0; d < to.rank(); ++d) {
      if (to.is_dynamic(d))
        result.sizes[static_cast<size_t>(d)] = d < from.rank() ? SizeOf(operand.id(), d) : Number(0);
    }
    return result;
  }
  bool moves = false;
  for (const DimensionGroup& group : GroupsOf(from, to)) {
    std::vector<int64_t> sized, becomes;
    for (int64_t d = group.from_begin; d < group.from_end; ++d) {
      if (SizeOf(operand.id(), d).valid()) sized.push_back(d);
    }
    for (int64_t d = group.to_begin; d < group.to_end; ++d) {
      if (to.is_dynamic(d)) becomes.push_back(d);
    }
    if (sized.empty()) continue;
    if (becomes.empty()) return CannotPad(i, StrCat("dimension ", sized[0], " is dynamic, but no result of it"));
    if (becomes.size() > 1) return CannotPad(i, StrCat("dimension ", sized[0], " becomes several dynamic ones"));
    InstructionId elements;  // in the group
    int64_t factor = 1, divisor = 1;
    for (int64_t d = group.from_begin; d < group.from_end; ++d) {
      const InstructionId size = SizeOf(operand.id(), d);
      if (!size.valid()) {
        factor *= from.dim(d);
      } else {
        elements = elements.valid() ? Binary(Opcode::kMultiply, elements, size) : size;
      }
    }
    for (int64_t d = group.to_begin; d < group.to_end; ++d) {
      if (!to.is_dynamic(d)) divisor *= to.dim(d);
    }
    if (factor % divisor == 0) {
      factor /= divisor;
      divisor = 1;
    }
    if (factor != 1) elements = Binary(Opcode::kMultiply, elements, Number(factor));
    if (divisor != 1) elements = Binary(Opcode::kDivide, elements, Number(divisor));
    result.sizes[static_cast<size_t>(becomes[0])] = elements;
    // If the outermost dimension is dynamic on both sides, the valid elements come first on both.
    moves |= sized.size() > 1 || FirstWide(from, group.from_begin, sized[0]) != sized[0] ||
             FirstWide(to, group.to_begin, becomes[0]) != becomes[0];
  }
  if (!moves) return result;
  if (from.element_count() > std::numeric_limits<int32_t>::max()) return CannotPad(i, "the array is too large");
  result.value = Reordered(operand.id(), StaticOf(to), result.sizes);
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferDynamicReshape(Instruction i) {
  const Instruction operand = i.operand(0);
  const Shape from = operand.shape(), to = i.shape();
  InferredSizes result{Sizes(static_cast<size_t>(to.rank())), {}};
  for (int64_t d = 0; d < to.rank(); ++d) {
    if (!i.operand(1 + d).shape().IsScalar()) return CannotPad(i, "a size is not a scalar");
    if (to.is_dynamic(d)) result.sizes[static_cast<size_t>(d)] = i.operand(1 + d).id();
  }
  if (from.element_count() > std::numeric_limits<int32_t>::max() ||
      to.element_count() > std::numeric_limits<int32_t>::max()) {
    return CannotPad(i, "the array is too large");
  }
  result.value = Reordered(operand.id(), StaticOf(to), result.sizes);
  return result;
}

InstructionId Padder::Reordered(InstructionId operand, Shape shape, const Sizes& sizes) {
  const Shape from = builder_.shape_of(operand);
  Sizes from_sizes = SizesOf(operand);
  from_sizes.resize(static_cast<size_t>(from.rank()));
  if (from.element_count() == 0 || shape.element_count() == 0) {
    return builder_.MakeSplat(shape, Zero(shape.element_type()));
  }
  const Shape numbers = shapes().WithElementType(shape, ElementType::kS32);
  const auto splat = [&](int64_t value) { return builder_.MakeSplat(numbers, Number(value)); };
  // The number of each element of the result among those within the sizes. It does not matter for others.
  InstructionId number = splat(0), stride = Number(1);
  for (int64_t d = shape.rank(); d-- > 0;) {
    const InstructionId index = builder_.Make(Opcode::kIota, numbers, {}, {builder_.Int(Attr::kIotaDimension, d)});
    const InstructionId scaled = Binary(Opcode::kMultiply, index, builder_.MakeSplat(numbers, stride));
    number = Binary(Opcode::kAdd, number, scaled);
    if (d > 0) {
      stride = Binary(Opcode::kMultiply, stride, SizeOrBound(sizes[static_cast<size_t>(d)], shape.dim(d)));
    }
  }
  // The position of that element in the operand, of the bounds.
  InstructionId position = splat(0);
  int64_t bounds = 1;
  for (int64_t d = from.rank(); d-- > 0; bounds *= from.dim(d)) {
    const InstructionId size = from_sizes[static_cast<size_t>(d)];
    const InstructionId divisor =
        builder_.MakeSplat(numbers, Binary(Opcode::kMaximum, SizeOrBound(size, from.dim(d)), Number(1)));
    const InstructionId index = d == 0 ? number : Binary(Opcode::kRemainder, number, divisor);
    position = Binary(Opcode::kAdd, position, Binary(Opcode::kMultiply, index, splat(bounds)));
    if (d > 0) number = Binary(Opcode::kDivide, number, divisor);
  }
  const Shape flat = shapes().Array(from.element_type(), {from.element_count()});
  const AttrValue attrs[] = {builder_.List(Attr::kCollapsedSliceDims, {0}),
                             builder_.Int(Attr::kIndexVectorDim, numbers.rank()), builder_.List(Attr::kOffsetDims, {}),
                             builder_.List(Attr::kSliceSizes, {1}), builder_.List(Attr::kStartIndexMap, {0})};
  return builder_.Make(Opcode::kGather, shape, {builder_.MakeReshape(operand, flat), position}, attrs);
}

}  // namespace hlokit
