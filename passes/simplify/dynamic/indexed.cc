// SPDX-License-Identifier: Apache-2.0
// Inference of dynamic sizes for sorts and for indexed access.
#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {

// Sorts invalid elements last: an additional operand marks them, and the comparator compares only elements of one kind.
absl::StatusOr<Padder::InferredSizes> Padder::InferSort(Instruction i) {
  const int64_t arrays = i.operand_count();
  const Shape shape = i.operand(0).shape();
  Sizes sizes(static_cast<size_t>(shape.rank()));
  for (Instruction operand : i.operands()) {
    for (int64_t d = 0; d < shape.rank(); ++d) {
      InstructionId& size = sizes[static_cast<size_t>(d)];
      if (!size.valid()) size = SizeOf(operand.id(), d);
    }
  }
  InferredSizes result;
  for (int64_t k = 0; k < arrays; ++k) result.sizes.insert(result.sizes.end(), sizes.begin(), sizes.end());
  const int64_t along = i.list_attr(Attr::kDimensions)[0];
  const InstructionId size = sizes[static_cast<size_t>(along)];
  if (!size.valid()) return result;

  const ComputationId comparison = module_.CloneComputation(i.computation_attr(Attr::kToApply).id());
  const InstructionId before = module_.computation(comparison).root().id();
  const Shape choice = shapes().Scalar(ElementType::kPred);
  Builder apply(&module_, comparison);
  InstructionId sides[2];
  for (uint32_t side = 0; side < 2; ++side) {
    const uint32_t number = static_cast<uint32_t>(2 * arrays) + side;
    sides[side] = apply.WithName("inside").Make(Opcode::kParameter, choice, {}, {}, number);
  }
  apply.SetMetadata(at(before).metadata_id());
  const InstructionId apart = apply.MakeCompare(ComparisonDirection::kNe, sides[0], sides[1]);
  const InstructionId first = apply.Make(Opcode::kSelect, choice, {apart, sides[0], before});
  module_.SetRoot(comparison, first);

  std::vector<InstructionId> operands;
  std::vector<Shape> element_shapes;
  for (Instruction operand : i.operands()) {
    operands.push_back(operand.id());
    element_shapes.push_back(operand.shape());
  }
  const Shape bare = shapes().WithLayout(shape, shapes().DefaultLayout(shape.rank()));
  operands.push_back(ValidMask(shape.has_layout() ? shape : bare, along, size));
  element_shapes.push_back(at(operands.back()).shape());
  std::vector<AttrValue> attrs;
  for (AttrValue value : i.attrs()) {
    if (value.attr == Attr::kToApply) value.payload = comparison.value;
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  const InstructionId sorted = builder_.Make(Opcode::kSort, shapes().Tuple(element_shapes), operands, attrs);
  ++masks_;
  std::vector<InstructionId> elements;
  for (int64_t k = 0; k < arrays; ++k) elements.push_back(builder_.MakeElement(sorted, k));
  result.value = arrays == 1 ? elements[0] : builder_.MakeTuple(elements);
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferGather(Instruction i) {
  const GatherDims dims = GatherDims::Of(i);
  const Shape operand = i.operand(0).shape(), indices = i.operand(1).shape();
  const InstructionId operand_id = i.operand(0).id(), indices_id = i.operand(1).id();
  // Dimensions of the result: of the slice if in offset_dims, of the indices otherwise.
  std::vector<int64_t> slice_dims, index_dims;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (!absl::c_linear_search(dims.collapsed_slice_dims, d) && !absl::c_linear_search(dims.operand_batching_dims, d))
      slice_dims.push_back(d);
  }
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != dims.index_vector_dim) index_dims.push_back(d);
  }
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  size_t next_slice = 0, next_index = 0;
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    InstructionId& size = result.sizes[static_cast<size_t>(d)];
    if (absl::c_linear_search(dims.offset_dims, d)) {
      const int64_t from = slice_dims[next_slice++];
      if (dims.slice_sizes[from] == operand.dim(from)) size = SizeOf(operand_id, from);
    } else {
      size = SizeOf(indices_id, index_dims[next_index++]);
    }
  }
  // Clamp the indices so that the slice fits before the size.
  bool limited = false;
  std::vector<InstructionId> limits;
  for (size_t c = 0; c < dims.start_index_map.size(); ++c) {
    const int64_t d = dims.start_index_map[c];
    const InstructionId size = SizeOf(operand_id, d);
    const bool limit = size.valid() && dims.slice_sizes[d] != operand.dim(d);
    limits.push_back(limit ? size : InstructionId());
    limited |= limit;
  }
  // A batch dimension of the operand alone is one of the result too.
  for (size_t b = 0; b < dims.operand_batching_dims.size(); ++b) {
    const InstructionId size = SizeOf(operand_id, dims.operand_batching_dims[b]);
    for (int64_t d = 0, next = 0; d < i.shape().rank() && size.valid(); ++d) {
      if (absl::c_linear_search(dims.offset_dims, d)) continue;
      const bool same = index_dims[static_cast<size_t>(next++)] == dims.start_indices_batching_dims[b];
      if (same && !result.sizes[static_cast<size_t>(d)].valid()) result.sizes[static_cast<size_t>(d)] = size;
    }
  }
  if (!limited) return result;
  for (size_t c = 0; c < limits.size(); ++c) {
    const int64_t d = dims.start_index_map[c];
    limits[c] = Plus(SizeOrBound(limits[c], operand.dim(d)), -dims.slice_sizes[d]);
  }
  const InstructionId most = SpreadLimits(indices, limits, dims.index_vector_dim);
  module_.ReplaceOperand(i.id(), 1, builder_.Make(Opcode::kMinimum, indices, {indices_id, most}));
  return result;
}

InstructionId Padder::SpreadLimits(Shape indices, absl::Span<const InstructionId> limits, int64_t index_vector_dim) {
  const ElementType type = indices.element_type();
  std::vector<InstructionId> parts;
  for (InstructionId limit : limits) {
    parts.push_back(LimitOf(limit, type));
  }
  if (index_vector_dim == indices.rank() || parts.size() == 1) return builder_.MakeSplat(indices, parts[0]);
  const Shape one = shapes().Array(type, {1});
  for (InstructionId& part : parts) part = builder_.Make(Opcode::kReshape, one, {part});
  const AttrValue along[] = {builder_.List(Attr::kDimensions, {0})};
  const Shape vector = shapes().Array(type, {static_cast<int64_t>(parts.size())});
  const InstructionId joined = builder_.Make(Opcode::kConcatenate, vector, parts, along);
  const AttrValue spread[] = {builder_.List(Attr::kDimensions, {index_vector_dim})};
  return builder_.Make(Opcode::kBroadcast, indices, {joined}, spread);
}

void Padder::DropBeyond(Instruction user, int64_t index, absl::Span<const InstructionId> limits,
                        int64_t index_vector_dim) {
  const InstructionId indices = user.operand(index).id();
  const Shape shape = at(indices).shape();
  const InstructionId most = SpreadLimits(shape, limits, index_vector_dim);
  const InstructionId beyond = builder_.MakeCompare(ComparisonDirection::kGt, indices, most);
  const InstructionId nowhere = builder_.MakeSplat(shape, Number(shape.element_type(), -1));
  module_.ReplaceOperand(user.id(), index, builder_.Make(Opcode::kSelect, shape, {beyond, nowhere, indices}));
  ++masks_;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferScatter(Instruction i) {
  const ScatterDims dims = ScatterDims::Of(i);
  const int64_t arrays = i.operand_count() / 2;
  const InstructionId indices_id = i.operand(arrays).id();
  const Shape indices = i.operand(arrays).shape();
  const Shape updates = i.operand(arrays + 1).shape(), operand = i.operand(0).shape();
  InferredSizes result;
  for (int64_t k = 0; k < arrays; ++k) {
    const Sizes& own = SizesOf(i.operand(k).id());
    result.sizes.insert(result.sizes.end(), own.begin(), own.end());
    if (own.empty()) result.sizes.resize(result.sizes.size() + static_cast<size_t>(i.operand(k).shape().rank()));
  }
  const auto size_of = [&](int64_t first, int64_t count, int64_t d) {
    InstructionId size;
    for (int64_t k = 0; k < count && !size.valid(); ++k) size = SizeOf(i.operand(first + k).id(), d);
    return size;
  };
  // A window that does not fit within the size is dropped as a whole. One that spans the bound only fits at 0.
  std::vector<int64_t> lengths(static_cast<size_t>(operand.rank()), 1);
  size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (absl::c_linear_search(dims.inserted_window_dims, d) || absl::c_linear_search(dims.input_batching_dims, d))
      continue;
    const int64_t from = dims.update_window_dims[next++];
    const InstructionId to = size_of(0, arrays, d), update = size_of(arrays + 1, arrays, from);
    const int64_t length = lengths[static_cast<size_t>(d)] = updates.dim(from);
    if (update.valid() && (!to.valid() || length != operand.dim(d))) {
      return CannotPad(i, StrCat("dimension ", from, " of the windows is dynamic"));
    }
  }
  // One element beyond the size does no harm.
  const auto is_limited = [&](int64_t d) {
    const int64_t length = lengths[static_cast<size_t>(d)];
    return size_of(0, arrays, d).valid() && length != 1 && length != operand.dim(d);
  };
  if (absl::c_any_of(dims.scatter_dims_to_operand_dims, is_limited)) {
    if (!IsSigned(indices.element_type())) return CannotPad(i, "the indices are unsigned");
    std::vector<InstructionId> limits;
    for (int64_t d : dims.scatter_dims_to_operand_dims) {
      const InstructionId size = is_limited(d) ? size_of(0, arrays, d) : Number(operand.dim(d));
      limits.push_back(Plus(size, -lengths[static_cast<size_t>(d)]));
    }
    DropBeyond(i, arrays, limits, dims.index_vector_dim);
  }
  // Invalid indices become out of bounds, which drops their updates.
  int64_t index_dim = 0;
  InstructionId nowhere;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (absl::c_linear_search(dims.update_window_dims, d)) continue;
    if (index_dim == dims.index_vector_dim) ++index_dim;
    InstructionId size = SizeOf(indices_id, index_dim);
    if (!size.valid()) size = size_of(arrays + 1, arrays, d);
    if (size.valid()) {
      if (!nowhere.valid()) nowhere = Number(indices.element_type(), -1);
      Mask(i, arrays, index_dim, size, nowhere);
    }
    ++index_dim;
  }
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferDynamicSlice(Instruction i) {
  const Shape from = i.operand(0).shape();
  const Sizes sizes = SizesOf(i.operand(0).id());
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (int64_t d = 0; d < from.rank(); ++d) {
    const InstructionId size = sizes[static_cast<size_t>(d)];
    if (!size.valid()) continue;
    if (i.shape().dim(d) == from.dim(d)) {
      result.sizes[static_cast<size_t>(d)] = size;
    } else if (i.operand_count() == 1 + from.rank() && i.operand(1 + d).shape().IsScalar()) {
      ClampStart(i, 1 + d, size, i.shape().dim(d));
    } else {
      return CannotPad(i, "its starts are one array");
    }
  }
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferDynamicUpdateSlice(Instruction i) {
  const Shape whole = i.operand(0).shape(), part = i.operand(1).shape();
  InferredSizes result{SizesOf(i.operand(0).id()), {}};
  result.sizes.resize(static_cast<size_t>(whole.rank()));
  const bool scalars = i.operand_count() == 2 + whole.rank() && (whole.rank() == 0 || i.operand(2).shape().IsScalar());
  for (int64_t d = 0; d < whole.rank(); ++d) {
    InstructionId& size = result.sizes[static_cast<size_t>(d)];
    const InstructionId written = SizeOf(i.operand(1).id(), d);
    const bool all = part.dim(d) == whole.dim(d);
    // An update of a whole dimension gives it its size.
    if (all && written.valid() && !size.valid()) size = written;
    if (all || (!written.valid() && !size.valid())) continue;
    if (!scalars) return CannotPad(i, "its starts are one array");
    if (written.valid()) return UpdateWithinSizes(i);
    ClampStart(i, 2 + d, size, part.dim(d));
  }
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::UpdateWithinSizes(Instruction i) {
  const InstructionId whole = i.operand(0).id(), part = i.operand(1).id();
  const Shape shape = i.operand(0).shape(), written = i.operand(1).shape();
  const Sizes sizes = SizesOf(whole);
  // All of the update fits into a longer array, wherever it starts.
  std::vector<int64_t> padding, dims, cut;
  std::vector<InstructionId> starts;
  InstructionId inside;  // the elements to write
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const InstructionId length = SizeOf(part, d);
    padding.insert(padding.end(), {0, length.valid() ? written.dim(d) : 0, 0});
    dims.push_back(shape.dim(d) + padding[padding.size() - 2]);
    cut.insert(cut.end(), {0, shape.dim(d), 1});
    const Instruction start = i.operand(2 + d);
    const InstructionId size =
        SizeOrBound(sizes.empty() ? InstructionId() : sizes[static_cast<size_t>(d)], shape.dim(d));
    InstructionId last = Binary(Opcode::kSubtract, size, SizeOrBound(length, written.dim(d)));
    last = Binary(Opcode::kMaximum, last, Number(0));
    starts.push_back(Binary(Opcode::kMinimum, start.id(), LimitOf(last, start.shape().element_type())));
    if (!length.valid()) continue;
    const InstructionId mask = ValidMask(written, d, length);
    inside = inside.valid() ? Binary(Opcode::kAnd, inside, mask) : mask;
  }
  const Shape longer = shapes().Array(shape.element_type(), dims);
  const AttrValue pad[] = {builder_.List(Attr::kPadding, padding)};
  const InstructionId base = builder_.Make(Opcode::kPad, longer, {whole, Zero(shape.element_type())}, pad);
  std::vector<InstructionId> operands = {base};
  operands.insert(operands.end(), starts.begin(), starts.end());
  const AttrValue lengths[] = {builder_.List(Attr::kDynamicSliceSizes, written.dims())};
  const InstructionId old = builder_.Make(Opcode::kDynamicSlice, written, operands, lengths);
  operands.insert(operands.begin() + 1, builder_.Make(Opcode::kSelect, written, {inside, part, old}));
  const InstructionId updated = builder_.Make(Opcode::kDynamicUpdateSlice, longer, operands);
  const AttrValue slice[] = {builder_.List(Attr::kSlice, cut)};
  ++masks_;
  return InferredSizes{sizes, builder_.Make(Opcode::kSlice, StaticOf(i.shape()), {updated}, slice)};
}

}  // namespace hlokit
