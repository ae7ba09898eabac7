// SPDX-License-Identifier: Apache-2.0
// Inference of dynamic sizes from those of the operands.
#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {

absl::StatusOr<Padder::InferredSizes> Padder::InferSizes(Instruction i) {
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kTuple) return InferredSizes{TupleSizes(i), {}};
  if (opcode == Opcode::kGetTupleElement) return InferredSizes{ElementSizes(i), {}};
  if (opcode == Opcode::kOptimizationBarrier) return InferredSizes{SizesOf(i.operand(0).id()), {}};
  if (HasTrait(opcode, kElementwise)) return InferElementwise(i);
  if (opcode == Opcode::kReduce) return InferReduce(i);
  if (opcode == Opcode::kReduceWindow) return InferReduceWindow(i);
  if (opcode == Opcode::kDot) return InferDot(i);
  if (opcode == Opcode::kConcatenate) return InferConcatenate(i);
  if (opcode == Opcode::kSort) return InferSort(i);
  if (opcode == Opcode::kGather) return InferGather(i);
  if (opcode == Opcode::kScatter) return InferScatter(i);
  if (opcode == Opcode::kDynamicUpdateSlice) return InferDynamicUpdateSlice(i);
  // Other elementwise operations have one array.
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    if (HasSizes(i.operand(k))) return CannotPad(i, StrCat("operand ", k, " has a dynamic dimension"));
  }
  if (opcode == Opcode::kDynamicSlice) return InferDynamicSlice(i);
  if (opcode == Opcode::kReshape) return InferReshape(i);
  if (opcode == Opcode::kSlice) return InferSlice(i);
  if (opcode == Opcode::kPad) return InferPad(i);
  if (opcode == Opcode::kReverse) return InferReverse(i);
  const Sizes& sizes = SizesOf(i.operand(0).id());
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  if (opcode == Opcode::kTranspose) {
    for (size_t d = 0; d < dimensions.size(); ++d) result.sizes[d] = sizes[static_cast<size_t>(dimensions[d])];
    return result;
  }
  if (opcode == Opcode::kBroadcast) {
    for (size_t d = 0; d < dimensions.size(); ++d) result.sizes[static_cast<size_t>(dimensions[d])] = sizes[d];
    return result;
  }
  return CannotPad(i, "it is not known what a dynamic dimension means to it");
}

absl::StatusOr<Padder::InferredSizes> Padder::InferElementwise(Instruction i) {
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (Instruction operand : i.operands()) {
    if (operand.shape().rank() != i.shape().rank()) continue;  // a scalar operand
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      InstructionId& size = result.sizes[static_cast<size_t>(d)];
      if (!size.valid()) size = SizeOf(operand.id(), d);
    }
  }
  return result;
}

// A dynamic dimension is kept; or merged with the dimensions after it, or split, if it is the outermost of them: the
// valid elements then still come first.
absl::StatusOr<Padder::InferredSizes> Padder::InferReshape(Instruction i) {
  const Shape from = i.operand(0).shape(), to = i.shape();
  const Sizes sizes = SizesOf(i.operand(0).id());
  InferredSizes result{Sizes(static_cast<size_t>(to.rank())), {}};
  int64_t before = 1;  // elements of dimensions before `d`
  for (int64_t d = 0; d < from.rank(); before *= from.dim(d), ++d) {
    const InstructionId size = sizes[static_cast<size_t>(d)];
    if (!size.valid()) continue;
    int64_t to_before = 1, t = 0;
    while (t < to.rank() && (to_before < before || to.dim(t) == 1)) to_before *= to.dim(t++);
    const bool aligned = t < to.rank() && to_before == before && from.dim(d) > 0;
    const int64_t bound = aligned ? to.dim(t) : 0;
    InstructionId& becomes = result.sizes[aligned ? static_cast<size_t>(t) : 0];
    if (bound == from.dim(d) && aligned) {
      becomes = size;
    } else if (bound > from.dim(d) && bound % from.dim(d) == 0) {
      // Merged with all static dimensions after it.
      int64_t joined = from.dim(d), next = d + 1;
      while (next < from.rank() && joined < bound && !sizes[static_cast<size_t>(next)].valid()) {
        joined *= from.dim(next++);
      }
      if (joined != bound) return CannotPad(i, StrCat("dimension ", d, " is joined with a dynamic one"));
      becomes = Binary(Opcode::kMultiply, size, Number(bound / from.dim(d)));
    } else if (bound > 0 && bound < from.dim(d) && from.dim(d) % bound == 0 && to.is_dynamic(t)) {
      becomes = Binary(Opcode::kDivide, size, Number(from.dim(d) / bound));
    } else {
      return CannotPad(i, StrCat("dimension ", d, " is joined with others or split, and not the outermost of them"));
    }
  }
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferReduce(Instruction i) {
  const int64_t arrays = i.operand_count() / 2;
  const absl::Span<const int64_t> reduced = i.list_attr(Attr::kDimensions);
  const Shape shape = i.operand(0).shape();
  Sizes kept;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    InstructionId size;
    for (int64_t k = 0; k < arrays && !size.valid(); ++k) size = SizeOf(i.operand(k).id(), d);
    if (!absl::c_linear_search(reduced, d)) {
      kept.push_back(size);
    } else if (size.valid()) {
      for (int64_t k = 0; k < arrays; ++k) Mask(i, k, d, size, i.operand(arrays + k).id());
    }
  }
  InferredSizes result;
  for (int64_t k = 0; k < arrays; ++k) result.sizes.insert(result.sizes.end(), kept.begin(), kept.end());
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferReduceWindow(Instruction i) {
  if (i.operand_count() != 2) return CannotPad(i, "several arrays are reduced at once");
  const Sizes sizes = SizesOf(i.operand(0).id());
  const WindowView window = WindowView::Of(i);
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    const InstructionId size = sizes[static_cast<size_t>(d)];
    if (!size.valid()) continue;
    const WindowDim w = window[d];
    if (w.base_dilation != 1) return CannotPad(i, StrCat("dimension ", d, " is dynamic and dilated"));
    // Windows that reach beyond the size read the padding value.
    Mask(i, 0, d, size, i.operand(1).id());
    const int64_t reach = (w.size - 1) * w.window_dilation + 1;
    InstructionId& becomes = result.sizes[static_cast<size_t>(d)];
    becomes = Plus(size, w.padding_low + w.padding_high - reach + w.stride);
    if (w.padding_low + w.padding_high - reach + w.stride < 0) becomes = Binary(Opcode::kMaximum, becomes, Number(0));
    if (w.stride != 1) becomes = Binary(Opcode::kDivide, becomes, Number(w.stride));
  }
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferDot(Instruction i) {
  if (i.operand_count() != 2) return CannotPad(i, "the operands are sparse");
  const DotDims dims = DotDims::Of(i);
  const absl::Span<const int64_t> batch[2] = {dims.lhs_batch, dims.rhs_batch};
  const absl::Span<const int64_t> contracting[2] = {dims.lhs_contracting, dims.rhs_contracting};
  const Instruction operands[2] = {i.operand(0), i.operand(1)};
  InferredSizes result;
  for (size_t k = 0; k < batch[0].size(); ++k) {
    const InstructionId size = SizeOf(operands[0].id(), batch[0][k]);
    result.sizes.push_back(size.valid() ? size : SizeOf(operands[1].id(), batch[1][k]));
  }
  for (size_t side = 0; side < 2; ++side) {
    for (int64_t d = 0; d < operands[side].shape().rank(); ++d) {
      if (absl::c_linear_search(batch[side], d) || absl::c_linear_search(contracting[side], d)) continue;
      result.sizes.push_back(SizeOf(operands[side].id(), d));
    }
  }
  // Mask both sides: zero times an invalid element need not be zero. One size holds for both.
  for (size_t k = 0; k < contracting[0].size(); ++k) {
    InstructionId size = SizeOf(operands[0].id(), contracting[0][k]);
    if (!size.valid()) size = SizeOf(operands[1].id(), contracting[1][k]);
    if (!size.valid()) continue;
    for (size_t side = 0; side < 2; ++side) {
      const InstructionId zero = Zero(operands[side].shape().element_type());
      Mask(i, static_cast<int64_t>(side), contracting[side][k], size, zero);
    }
  }
  return result;
}

// In a dynamic dimension each array starts at the end of the previous one, overwriting its invalid elements.
absl::StatusOr<Padder::InferredSizes> Padder::InferConcatenate(Instruction i) {
  const int64_t along = i.list_attr(Attr::kDimensions)[0];
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  bool dynamic = false;
  for (Instruction piece : i.operands()) {
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      const InstructionId size = SizeOf(piece.id(), d);
      dynamic |= d == along && size.valid();
      InstructionId& becomes = result.sizes[static_cast<size_t>(d)];
      if (d != along && !becomes.valid()) becomes = size;
    }
  }
  if (!dynamic) return result;
  std::vector<InstructionId> pieces;
  for (Instruction piece : i.operands()) pieces.push_back(piece.id());
  const AttrValue attrs[] = {Builder::SameAs(i, Attr::kDimensions)};
  const Shape shape = StaticOf(i.shape());
  result.value = builder_.Make(Opcode::kConcatenate, shape, pieces, attrs);
  const InstructionId zero = Number(0);
  InstructionId end;  // of the arrays so far; invalid: static so far
  int64_t static_end = 0;
  for (InstructionId piece : pieces) {
    if (end.valid()) {
      std::vector<InstructionId> operands = {result.value, piece};
      operands.resize(2 + static_cast<size_t>(shape.rank()), zero);
      operands[2 + static_cast<size_t>(along)] = end;
      result.value = builder_.Make(Opcode::kDynamicUpdateSlice, shape, operands);
    }
    const int64_t bound = at(piece).shape().dim(along);
    const InstructionId size = SizeOf(piece, along);
    if (end.valid()) {
      end = size.valid() ? Binary(Opcode::kAdd, end, size) : Plus(end, bound);
    } else if (size.valid()) {
      end = Plus(size, static_end);
    }
    static_end += bound;
  }
  result.sizes[static_cast<size_t>(along)] = end;
  return result;
}

// The size limits a slice of a dynamic dimension; where the result is static, the slice is taken as is.
absl::StatusOr<Padder::InferredSizes> Padder::InferSlice(Instruction i) {
  const SliceView slice = SliceView::Of(i);
  const Shape from = i.operand(0).shape();
  const Sizes sizes = SizesOf(i.operand(0).id());
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    InstructionId size = sizes[static_cast<size_t>(d)];
    if (!size.valid()) continue;
    const int64_t start = slice.start(d), limit = slice.limit(d), stride = slice.stride(d);
    if (start != 0 || limit != from.dim(d) || stride != 1) {
      if (!i.shape().is_dynamic(d)) continue;
      if (limit != from.dim(d)) size = Binary(Opcode::kMinimum, size, Number(limit));
      size = Plus(size, stride - 1 - start);
      if (stride - 1 < start) size = Binary(Opcode::kMaximum, size, Number(0));
      if (stride != 1) size = Binary(Opcode::kDivide, size, Number(stride));
    }
    result.sizes[static_cast<size_t>(d)] = size;
  }
  return result;
}

// Elements beyond the size become padding, followed by the high padding.
absl::StatusOr<Padder::InferredSizes> Padder::InferPad(Instruction i) {
  const PaddingView padding = PaddingView::Of(i);
  const Sizes sizes = SizesOf(i.operand(0).id());
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    InstructionId size = sizes[static_cast<size_t>(d)];
    if (!size.valid()) continue;
    const int64_t added = padding.low(d) + padding.high(d), between = padding.interior(d);
    if (added != 0 || between != 0 || padding.low(d) != 0) {
      Mask(i, 0, d, size, i.operand(1).id());
      if (between != 0) {
        const InstructionId gaps = Binary(Opcode::kMaximum, Plus(size, -1), Number(0));
        size = Binary(Opcode::kAdd, size, Binary(Opcode::kMultiply, gaps, Number(between)));
      }
      size = Plus(size, added);
      if (added < 0) size = Binary(Opcode::kMaximum, size, Number(0));
    }
    result.sizes[static_cast<size_t>(d)] = size;
  }
  return result;
}

// After the reversal, invalid elements come first and are sliced off.
absl::StatusOr<Padder::InferredSizes> Padder::InferReverse(Instruction i) {
  const Shape shape = i.operand(0).shape();
  const absl::Span<const int64_t> reversed = i.list_attr(Attr::kDimensions);
  const Sizes sizes = SizesOf(i.operand(0).id());
  std::vector<int64_t> padding, dims;
  std::vector<InstructionId> starts;
  bool dynamic = false;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const InstructionId size = sizes[static_cast<size_t>(d)];
    const bool cut = size.valid() && absl::c_linear_search(reversed, d);
    dynamic |= cut;
    padding.insert(padding.end(), {0, cut ? shape.dim(d) : 0, 0});
    dims.push_back(cut ? 2 * shape.dim(d) : shape.dim(d));
    starts.push_back(cut ? size : InstructionId());
  }
  if (!dynamic) return InferredSizes{sizes, {}};
  const AttrValue reverse[] = {Builder::SameAs(i, Attr::kDimensions)};
  const InstructionId turned = builder_.Make(Opcode::kReverse, shape, {i.operand(0).id()}, reverse);
  const AttrValue padding_attrs[] = {builder_.List(Attr::kPadding, padding)};
  const InstructionId longer = builder_.Make(Opcode::kPad, shapes().Array(shape.element_type(), dims),
                                             {turned, Zero(shape.element_type())}, padding_attrs);
  std::vector<InstructionId> operands = {longer};
  for (size_t d = 0; d < starts.size(); ++d) {
    operands.push_back(starts[d].valid()
                           ? Binary(Opcode::kSubtract, Number(shape.dim(static_cast<int64_t>(d))), starts[d])
                           : Number(0));
  }
  const AttrValue length[] = {builder_.List(Attr::kDynamicSliceSizes, shape.dims())};
  return InferredSizes{sizes, builder_.Make(Opcode::kDynamicSlice, shape, operands, length)};
}

}  // namespace hlokit
