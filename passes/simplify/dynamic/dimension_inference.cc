// SPDX-License-Identifier: Apache-2.0
// Inference of dynamic sizes from those of the operands.
#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {

absl::StatusOr<Padder::InferredSizes> Padder::InferSizes(Instruction i) {
  struct Rule {
    absl::StatusOr<InferredSizes> (Padder::*infer)(Instruction) = nullptr;  // null: not known
    bool of_one_array = true;                                               // operand 0 alone may be dynamic
  };
  static constexpr OpcodeRow<Rule> kRows[] = {
      {Opcode::kAllReduce, {&Padder::InferAllReduce, false}},
      {Opcode::kBitcastConvert, {&Padder::InferBitcastConvert}},
      {Opcode::kBroadcast, {&Padder::InferBroadcast}},
      {Opcode::kCholesky, {&Padder::InferBatched, false}},
      {Opcode::kConcatenate, {&Padder::InferConcatenate, false}},
      {Opcode::kConvolution, {&Padder::InferConvolution, false}},
      {Opcode::kCustomCall, {&Padder::InferCustomCall, false}},
      {Opcode::kDot, {&Padder::InferDot, false}},
      {Opcode::kDynamicReshape, {&Padder::InferDynamicReshape, false}},
      {Opcode::kDynamicSlice, {&Padder::InferDynamicSlice}},
      {Opcode::kDynamicUpdateSlice, {&Padder::InferDynamicUpdateSlice, false}},
      {Opcode::kFft, {&Padder::InferBatched, false}},
      {Opcode::kGather, {&Padder::InferGather, false}},
      {Opcode::kGetTupleElement, {&Padder::InferElement, false}},
      {Opcode::kMap, {&Padder::InferElementwise, false}},
      {Opcode::kOptimizationBarrier, {&Padder::InferForwarded, false}},
      {Opcode::kPad, {&Padder::InferPad}},
      {Opcode::kReduce, {&Padder::InferReduce, false}},
      {Opcode::kReduceWindow, {&Padder::InferReduceWindow, false}},
      {Opcode::kReshape, {&Padder::InferReshape}},
      {Opcode::kReverse, {&Padder::InferReverse}},
      {Opcode::kScatter, {&Padder::InferScatter, false}},
      {Opcode::kSelectAndScatter, {&Padder::InferSelectAndScatter, false}},
      {Opcode::kSlice, {&Padder::InferSlice}},
      {Opcode::kSort, {&Padder::InferSort, false}},
      {Opcode::kTopK, {&Padder::InferBatched, false}},
      {Opcode::kTranspose, {&Padder::InferTranspose}},
      {Opcode::kTriangularSolve, {&Padder::InferBatched, false}},
      {Opcode::kTuple, {&Padder::InferTuple, false}},
  };
  static constexpr auto kRules = MakeOpcodeTable<Rule>(
      kRows, {.elementwise = Rule{&Padder::InferElementwise, false}, .other = Rule{}, .unknown = Rule{}});
  const Rule& rule = kRules[static_cast<size_t>(i.opcode())];
  for (int64_t k = 1; rule.of_one_array && k < i.operand_count(); ++k) {
    if (HasSizes(i.operand(k))) return CannotPad(i, StrCat("operand ", k, " has a dynamic dimension"));
  }
  return rule.infer == nullptr ? NotKnown(i) : (this->*rule.infer)(i);
}

absl::Status Padder::NotKnown(Instruction i) const {
  return CannotPad(i, "it is not known what a dynamic dimension means to it");
}

absl::StatusOr<Padder::InferredSizes> Padder::InferTuple(Instruction i) { return InferredSizes{TupleSizes(i), {}}; }

absl::StatusOr<Padder::InferredSizes> Padder::InferElement(Instruction i) { return InferredSizes{ElementSizes(i), {}}; }

absl::StatusOr<Padder::InferredSizes> Padder::InferForwarded(Instruction i) {
  return InferredSizes{SizesOf(i.operand(0).id()), {}};
}

absl::StatusOr<Padder::InferredSizes> Padder::InferBitcastConvert(Instruction i) {
  if (i.shape().dims() != i.operand(0).shape().dims()) return NotKnown(i);
  return InferForwarded(i);
}

absl::StatusOr<Padder::InferredSizes> Padder::InferTranspose(Instruction i) {
  const Sizes& sizes = SizesOf(i.operand(0).id());
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (size_t d = 0; d < dimensions.size(); ++d) result.sizes[d] = sizes[static_cast<size_t>(dimensions[d])];
  return result;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferBroadcast(Instruction i) {
  const Sizes& sizes = SizesOf(i.operand(0).id());
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  for (size_t d = 0; d < dimensions.size(); ++d) result.sizes[static_cast<size_t>(dimensions[d])] = sizes[d];
  return result;
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

// Arrays of vectors, matrices or signals: the dimensions in front of those count them.
absl::StatusOr<Padder::InferredSizes> Padder::InferBatched(Instruction i) {
  const Shape shape = i.operand(0).shape();
  int64_t last = 1;  // dimensions that are no batch
  if (OpcodeSet{Opcode::kCholesky, Opcode::kTriangularSolve}.Contains(i.opcode())) last = 2;
  if (i.opcode() == Opcode::kFft) last = static_cast<int64_t>(i.list_attr(Attr::kFftLength).size());
  InferredSizes result;
  for (Shape leaf : Leaves(i.shape())) {
    for (int64_t d = 0; d < leaf.rank(); ++d) {
      InstructionId& size = result.sizes.emplace_back();
      for (Instruction operand : i.operands()) {
        if (!size.valid() && d < operand.shape().rank()) size = SizeOf(operand.id(), d);
      }
      if (size.valid() && d >= shape.rank() - last) return CannotPad(i, StrCat("dimension ", d, " is dynamic"));
    }
  }
  return result;
}

// XLA's own boundary of static and dynamic arrays, and calls that return their operand.
absl::StatusOr<Padder::InferredSizes> Padder::InferCustomCall(Instruction i) {
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
  if (target == "SliceToDynamic" && i.shape().IsArray() && i.operand_count() == 1 + i.shape().rank()) {
    InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), i.operand(0).id()};
    if (!Compatible(StaticOf(i.shape()), i.operand(0).shape())) return CannotPad(i, "the operand has another shape");
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      if (!i.operand(1 + d).shape().IsScalar()) return CannotPad(i, "a size is not a scalar");
      if (i.shape().is_dynamic(d)) {
        result.sizes[static_cast<size_t>(d)] = WithinBound(i.operand(1 + d), i.shape().dim(d));
      }
    }
    return result;
  }
  if (target == "PadToStatic" && i.operand_count() == 1 && i.shape().IsTuple() &&
      i.shape().tuple_size() == 1 + i.operand(0).shape().rank()) {
    const Instruction operand = i.operand(0);
    if (!Compatible(i.shape().element(0), operand.shape())) return CannotPad(i, "the result has another shape");
    std::vector<InstructionId> elements = {operand.id()};
    for (int64_t d = 0; d < operand.shape().rank(); ++d) {
      elements.push_back(SizeOrBound(SizeOf(operand.id(), d), operand.shape().dim(d)));
    }
    return InferredSizes{{}, builder_.MakeTuple(elements)};
  }
  const bool returns_operand = target == "Sharding" || target == "MoveToHost" || target == "MoveToDevice" ||
                               target == "annotate_device_placement" || target == "LayoutConstraint";
  if (returns_operand && i.operand_count() == 1) return InferredSizes{SizesOf(i.operand(0).id()), {}};
  return CannotPad(i, "it is not known what a dynamic dimension means to it");
}

// All devices have the same sizes.
absl::StatusOr<Padder::InferredSizes> Padder::InferAllReduce(Instruction i) { return InferredSizes{TupleSizes(i), {}}; }

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
