// SPDX-License-Identifier: Apache-2.0
// Concatenations.
#include "ir/graph/attribute_views.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

bool ConcatenateOfOne(PatternRewriter& rewriter, Instruction i) {
  return i.operand_count() == 1 && rewriter.Replace(i, i.operand(0).id());
}

bool DropEmptyOperands(PatternRewriter& rewriter, Instruction i) {
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  std::vector<InstructionId> pieces;
  for (Instruction piece : i.operands()) {
    if (piece.shape().dim(dim) != 0) {
      pieces.push_back(piece.id());
    } else {
      rewriter.DropMetadataOf(piece);
    }
  }
  if (pieces.empty() || pieces.size() == static_cast<size_t>(i.operand_count())) return false;
  const AttrValue attrs[] = {Builder::SameAs(i, Attr::kDimensions)};
  return rewriter.ReplaceWithNew(i, Opcode::kConcatenate, pieces, attrs);
}

bool FlattenNested(PatternRewriter& rewriter, Instruction i) {
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  std::vector<InstructionId> pieces;
  Instruction nested;
  for (Instruction piece : i.operands()) {
    const bool same =
        piece.opcode() == Opcode::kConcatenate && HasOneUse(piece) && piece.list_attr(Attr::kDimensions)[0] == dim;
    if (same && !nested.valid()) {
      nested = piece;
      for (Instruction inner : piece.operands()) pieces.push_back(inner.id());
    } else {
      pieces.push_back(piece.id());
    }
  }
  if (!nested.valid()) return false;
  const AttrValue attrs[] = {Builder::SameAs(i, Attr::kDimensions)};
  return rewriter.ReplaceWithNew(i, Opcode::kConcatenate, pieces, attrs, {nested});
}

// Merges two adjacent slices of one array into one slice.
bool JoinAdjacentSlices(PatternRewriter& rewriter, Instruction i) {
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  for (int64_t k = 0; k + 1 < i.operand_count(); ++k) {
    const Instruction a = i.operand(k), b = i.operand(k + 1);
    if (a.opcode() != Opcode::kSlice || b.opcode() != Opcode::kSlice || a.operand(0) != b.operand(0)) continue;
    const SliceView left = SliceView::Of(a), right = SliceView::Of(b);
    bool fits = true;
    std::vector<int64_t> ranges, sizes;
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      const bool same =
          left.start(d) == right.start(d) && left.limit(d) == right.limit(d) && left.stride(d) == right.stride(d);
      const bool adjacent = left.stride(d) == 1 && right.stride(d) == 1 && left.limit(d) == right.start(d);
      fits &= d == dim ? adjacent : same;
      ranges.insert(ranges.end(), {left.start(d), right.limit(d), left.stride(d)});
      sizes.push_back(d == dim ? a.shape().dim(d) + b.shape().dim(d) : a.shape().dim(d));
    }
    if (!fits || !rewriter.IsReplaceable(i)) continue;
    const Shape shape = rewriter.shapes().Array(a.shape().element_type(), sizes);
    const AttrValue slice_attrs[] = {rewriter.List(Attr::kSlice, ranges)};
    const InstructionId joined = rewriter.Make(Opcode::kSlice, shape, {a.operand(0).id()}, slice_attrs);
    if (i.operand_count() == 2) return rewriter.Replace(i, joined, {a, b});
    std::vector<InstructionId> pieces;
    for (int64_t n = 0; n < i.operand_count(); ++n) {
      if (n != k + 1) pieces.push_back(n == k ? joined : i.operand(n).id());
    }
    const AttrValue attrs[] = {Builder::SameAs(i, Attr::kDimensions)};
    return rewriter.ReplaceWithNew(i, Opcode::kConcatenate, pieces, attrs, {a, b});
  }
  return false;
}

// Replaces a concatenate of broadcasts of one scalar by a broadcast.
bool ConcatenateOfBroadcasts(PatternRewriter& rewriter, Instruction i) {
  const Instruction first = i.operand(0);
  if (first.opcode() != Opcode::kBroadcast || !first.operand(0).shape().IsScalar()) return false;
  for (Instruction piece : i.operands()) {
    if (piece.opcode() != Opcode::kBroadcast || piece.operand(0) != first.operand(0)) return false;
  }
  return rewriter.IsReplaceable(i) &&
         rewriter.Replace(i, rewriter.MakeSplat(i.shape(), first.operand(0).id()), {first});
}

}  // namespace

void AddConcatenateRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kConcatenate}, "concatenations of one removed", ConcatenateOfOne);
  rules->Add({Opcode::kConcatenate}, "empty pieces removed", DropEmptyOperands);
  rules->Add({Opcode::kConcatenate}, "concatenations of concatenations merged", FlattenNested);
  rules->Add({Opcode::kConcatenate}, "adjacent slices joined", JoinAdjacentSlices);
  rules->Add({Opcode::kConcatenate}, "concatenations of broadcasts merged", ConcatenateOfBroadcasts);
}

}  // namespace hlokit
