// SPDX-License-Identifier: Apache-2.0
// Slices and padding.
#include <algorithm>

#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

bool SliceOfAll(PatternRewriter& rewriter, Instruction slice) { return rewriter.Replace(slice, slice.operand(0).id()); }

bool SliceOfSlice(PatternRewriter& rewriter, Instruction slice) {
  const Instruction inner = slice.operand(0);
  if (inner.opcode() != Opcode::kSlice) return false;
  const SliceView a = SliceView::Of(slice), b = SliceView::Of(inner);
  std::vector<int64_t> ranges;
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    const int64_t size = slice.shape().dim(d);
    if (size == 0) {
      // Starts and strides may be beyond the operand.
      ranges.insert(ranges.end(), {0, 0, 1});
      continue;
    }
    const int64_t start = b.start(d) + a.start(d) * b.stride(d);
    const int64_t stride = size == 1 ? 1 : a.stride(d) * b.stride(d);
    ranges.insert(ranges.end(), {start, start + (size - 1) * stride + 1, stride});
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kSlice, ranges)};
  return rewriter.ReplaceWithNew(slice, Opcode::kSlice, {inner.operand(0).id()}, attrs, {inner});
}

// Replaces a slice along broadcast dimensions by a smaller broadcast.
bool SliceOfBroadcast(PatternRewriter& rewriter, Instruction slice) {
  const Instruction inner = slice.operand(0);
  if (inner.opcode() != Opcode::kBroadcast) return false;
  for (int64_t d : inner.list_attr(Attr::kDimensions)) {
    if (slice.shape().dim(d) != inner.shape().dim(d)) return false;
  }
  const AttrValue attrs[] = {Builder::SameAs(inner, Attr::kDimensions)};
  return rewriter.ReplaceWithNew(slice, Opcode::kBroadcast, {inner.operand(0).id()}, attrs, {inner});
}

bool SliceOfConcatenate(PatternRewriter& rewriter, Instruction slice) {
  const Instruction inner = slice.operand(0);
  if (inner.opcode() != Opcode::kConcatenate) return false;
  const int64_t dim = inner.list_attr(Attr::kDimensions)[0];
  const SliceView view = SliceView::Of(slice);
  int64_t begin = 0;
  for (Instruction piece : inner.operands()) {
    const int64_t size = piece.shape().dim(dim);
    if (view.start(dim) >= begin && view.limit(dim) <= begin + size && size != 0) {
      for (Instruction other : inner.operands()) {
        if (other != piece) rewriter.DropMetadataOf(other);
      }
      if (piece.shape() == slice.shape()) return rewriter.Replace(slice, piece.id(), {inner});
      std::vector<int64_t> ranges;
      for (int64_t d = 0; d < slice.shape().rank(); ++d) {
        const int64_t offset = d == dim ? begin : 0;
        ranges.insert(ranges.end(), {view.start(d) - offset, view.limit(d) - offset, view.stride(d)});
      }
      const AttrValue attrs[] = {rewriter.List(Attr::kSlice, ranges)};
      return rewriter.ReplaceWithNew(slice, Opcode::kSlice, {piece.id()}, attrs, {inner});
    }
    begin += size;
  }
  return false;
}

// Simplifies a slice that takes only padding, or none of it.
bool SliceOfPad(PatternRewriter& rewriter, Instruction slice) {
  const Instruction pad = slice.operand(0);
  if (pad.opcode() != Opcode::kPad) return false;
  const PaddingView padding = PaddingView::Of(pad);
  const SliceView view = SliceView::Of(slice);
  const Instruction source = pad.operand(0);
  bool inside = true;
  std::vector<int64_t> ranges;
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    const int64_t size = source.shape().dim(d), low = padding.low(d);
    if (padding.interior(d) == 0 && (view.limit(d) <= low || view.start(d) >= low + size)) {
      rewriter.DropMetadataOf(source);
      return rewriter.IsReplaceable(slice) &&
             rewriter.Replace(slice, rewriter.MakeSplat(slice.shape(), pad.operand(1).id()), {pad});
    }
    inside &= padding.interior(d) == 0 && view.start(d) >= low && view.limit(d) <= low + size;
    ranges.insert(ranges.end(), {view.start(d) - low, view.limit(d) - low, view.stride(d)});
  }
  if (!inside) return false;
  rewriter.DropMetadataOf(pad.operand(1));
  if (source.shape() == slice.shape()) return rewriter.Replace(slice, source.id(), {pad});
  const AttrValue attrs[] = {rewriter.List(Attr::kSlice, ranges)};
  return rewriter.ReplaceWithNew(slice, Opcode::kSlice, {source.id()}, attrs, {pad});
}

// Moves a slice above a reshape that only adds or removes unit dimensions, if the sliced dimensions are unmodified.
bool SliceOfUnitReshape(PatternRewriter& rewriter, Instruction slice) {
  const Instruction reshape = slice.operand(0);
  if (reshape.opcode() != Opcode::kReshape || !HasOneUser(reshape)) return false;
  const Instruction source = reshape.operand(0);
  // Profitable only if the slice can then merge with its source, a slice or concatenate.
  if (!OpcodeSet{Opcode::kSlice, Opcode::kConcatenate}.Contains(source.opcode())) return false;
  if (!DiffersByUnitDims(source.shape().dims(), reshape.shape().dims()) || !rewriter.IsReplaceable(slice)) return false;
  const SliceView view = SliceView::Of(slice);
  std::vector<int64_t> ranges, sizes;
  int64_t j = 0;
  for (int64_t i = 0; i < source.shape().rank(); ++i) {
    const int64_t size = source.shape().dim(i);
    if (size == 1) {
      ranges.insert(ranges.end(), {0, 1, 1});
      sizes.push_back(1);
      continue;
    }
    while (reshape.shape().dim(j) == 1) ++j;
    ranges.insert(ranges.end(), {view.start(j), view.limit(j), view.stride(j)});
    sizes.push_back(slice.shape().dim(j++));
  }
  const Shape shape = rewriter.shapes().Array(slice.shape().element_type(), sizes);
  if (shape.element_count() != slice.shape().element_count()) return false;
  const AttrValue attrs[] = {rewriter.List(Attr::kSlice, ranges)};
  const InstructionId inner = rewriter.Make(Opcode::kSlice, shape, {source.id()}, attrs);
  return rewriter.ReplaceWithNew(slice, Opcode::kReshape, {inner}, {}, {reshape});
}

// ---- pad ----

bool PadOfNothing(PatternRewriter& rewriter, Instruction pad) {
  const Instruction operand = pad.operand(0), value = pad.operand(1);
  const PaddingView padding = PaddingView::Of(pad);
  bool none = true;
  for (int64_t d = 0; d < pad.shape().rank(); ++d) {
    none &= padding.low(d) == 0 && padding.high(d) == 0 && (padding.interior(d) == 0 || operand.shape().dim(d) <= 1);
  }
  if (none) {
    rewriter.DropMetadataOf(value);
    return rewriter.Replace(pad, operand.id());
  }
  if (operand.shape().element_count() == 0) {
    return rewriter.IsReplaceable(pad) && rewriter.Replace(pad, rewriter.MakeSplat(pad.shape(), value.id()));
  }
  // A broadcast of the padding value itself.
  return operand.opcode() == Opcode::kBroadcast && operand.operand(0) == value && rewriter.IsReplaceable(pad) &&
         rewriter.Replace(pad, rewriter.MakeSplat(pad.shape(), value.id()), {operand});
}

bool PadOfPad(PatternRewriter& rewriter, Instruction pad) {
  const Instruction inner = pad.operand(0);
  if (inner.opcode() != Opcode::kPad || inner.operand(1) != pad.operand(1)) return false;
  const PaddingView a = PaddingView::Of(pad), b = PaddingView::Of(inner);
  std::vector<int64_t> padding;
  for (int64_t d = 0; d < pad.shape().rank(); ++d) {
    const bool plain = a.interior(d) == 0 && a.low(d) >= 0 && a.high(d) >= 0 && b.low(d) >= 0 && b.high(d) >= 0;
    if (!plain) return false;
    padding.insert(padding.end(), {a.low(d) + b.low(d), a.high(d) + b.high(d), b.interior(d)});
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kPadding, padding)};
  return rewriter.ReplaceWithNew(pad, Opcode::kPad, {inner.operand(0).id(), pad.operand(1).id()}, attrs, {inner});
}

// Replaces a pad with only negative padding by a slice.
bool PadToSlice(PatternRewriter& rewriter, Instruction pad) {
  const PaddingView padding = PaddingView::Of(pad);
  std::vector<int64_t> ranges;
  for (int64_t d = 0; d < pad.shape().rank(); ++d) {
    if (padding.low(d) > 0 || padding.high(d) > 0 || padding.interior(d) != 0) return false;
    ranges.insert(ranges.end(), {-padding.low(d), pad.operand(0).shape().dim(d) + padding.high(d), 1});
  }
  rewriter.DropMetadataOf(pad.operand(1));
  const AttrValue attrs[] = {rewriter.List(Attr::kSlice, ranges)};
  return rewriter.ReplaceWithNew(pad, Opcode::kSlice, {pad.operand(0).id()}, attrs);
}

}  // namespace

void AddSliceRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kSlice}, "slices of everything removed", SliceOfAll);
  rules->Add({Opcode::kSlice}, "slices of slices merged", SliceOfSlice);
  rules->Add({Opcode::kSlice}, "slices of broadcasts merged", SliceOfBroadcast);
  rules->Add({Opcode::kSlice}, "slices of concatenations forwarded", SliceOfConcatenate);
  rules->Add({Opcode::kSlice}, "slices of padding forwarded", SliceOfPad);
  rules->Add({Opcode::kSlice}, "slices moved below reshapes", SliceOfUnitReshape);
  rules->Add({Opcode::kPad}, "padding of nothing removed", PadOfNothing);
  rules->Add({Opcode::kPad}, "padding of padding merged", PadOfPad);
  rules->Add({Opcode::kPad}, "negative padding made slices", PadToSlice);
}

}  // namespace hlokit
