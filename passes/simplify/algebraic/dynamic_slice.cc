// SPDX-License-Identifier: Apache-2.0
// Dynamic slices and updates.
#include <algorithm>

#include "ir/graph/attribute_views.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Returns true if the starts of a dynamic-slice (first operand 1) or update (2) are one scalar per dimension, rather
// than the legacy form, one vector.
bool HasScalarStarts(Instruction i, int64_t first) {
  return i.operand_count() == first + i.operand(0).shape().rank() &&
         (i.operand_count() == first || i.operand(first).shape().IsScalar());
}

// Returns the clamped starts if all are known.
std::optional<std::vector<int64_t>> KnownStarts(Instruction i, int64_t first, absl::Span<const int64_t> sizes) {
  std::vector<int64_t> starts;
  const Shape operand = i.operand(0).shape();
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int64_t max_start = operand.dim(d) - sizes[static_cast<size_t>(d)];
    const auto start = max_start == 0 ? std::optional<int64_t>(0) : IntegerConstant(i.operand(first + d));
    if (!start) return std::nullopt;
    starts.push_back(std::clamp<int64_t>(*start, 0, max_start));
  }
  return starts;
}

bool DynamicSliceOfAll(PatternRewriter& rewriter, Instruction slice) {
  rewriter.DropMetadataOfOperands(slice, 1);
  return rewriter.Replace(slice, slice.operand(0).id());
}

bool DynamicSliceToSlice(PatternRewriter& rewriter, Instruction slice) {
  if (!HasScalarStarts(slice, 1)) return false;
  const auto starts = KnownStarts(slice, 1, slice.shape().dims());
  if (!starts) return false;
  std::vector<int64_t> ranges;
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    const int64_t start = (*starts)[static_cast<size_t>(d)];
    ranges.insert(ranges.end(), {start, start + slice.shape().dim(d), 1});
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kSlice, ranges)};
  return rewriter.ReplaceWithNew(slice, Opcode::kSlice, {slice.operand(0).id()}, attrs);
}

// The start along a broadcast dimension is irrelevant.
bool DynamicSliceOfBroadcast(PatternRewriter& rewriter, Instruction slice) {
  const Instruction inner = slice.operand(0);
  if (inner.opcode() != Opcode::kBroadcast) return false;
  for (int64_t d : inner.list_attr(Attr::kDimensions)) {
    if (slice.shape().dim(d) != inner.shape().dim(d)) return false;
  }
  rewriter.DropMetadataOfOperands(slice, 1);
  const AttrValue attrs[] = {Builder::SameAs(inner, Attr::kDimensions)};
  return rewriter.ReplaceWithNew(slice, Opcode::kBroadcast, {inner.operand(0).id()}, attrs, {inner});
}

// Makes a dynamic slice of `source` with these starts, invalid ones being zero, and sizes.
InstructionId MakeDynamicSlice(PatternRewriter& rewriter, Instruction slice, Instruction source,
                               const std::vector<InstructionId>& starts, const std::vector<int64_t>& sizes) {
  std::vector<InstructionId> operands = {source.id()};
  InstructionId zero;
  for (InstructionId start : starts) {
    if (!start.valid() && !zero.valid()) {
      zero = rewriter.MakeScalarConstant(slice.operand(1).shape().element_type(), 0);
    }
    operands.push_back(start.valid() ? start : zero);
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kDynamicSliceSizes, sizes)};
  return rewriter.Make(Opcode::kDynamicSlice, rewriter.shapes().Array(slice.shape().element_type(), sizes), operands,
                       attrs);
}

// Slices before it transposes, so that a fusion in a loop reads the slice and not the whole array.
bool DynamicSliceOfTranspose(PatternRewriter& rewriter, Instruction slice) {
  const Instruction transpose = slice.operand(0);
  if (transpose.opcode() != Opcode::kTranspose || !HasScalarStarts(slice, 1) || slice.shape().rank() == 0 ||
      !rewriter.IsReplaceable(slice)) {
    return false;
  }
  const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
  std::vector<InstructionId> starts(permutation.size());
  std::vector<int64_t> sizes(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) {
    const auto from = static_cast<size_t>(permutation[d]);
    starts[from] = slice.operand(1 + static_cast<int64_t>(d)).id();
    sizes[from] = slice.shape().dim(static_cast<int64_t>(d));
  }
  const InstructionId part = MakeDynamicSlice(rewriter, slice, transpose.operand(0), starts, sizes);
  const AttrValue attrs[] = {Builder::SameAs(transpose, Attr::kDimensions)};
  return rewriter.ReplaceWithNew(slice, Opcode::kTranspose, {part}, attrs, {transpose});
}

// Returns the dimensions whose size is not 1.
std::vector<int64_t> LongDims(Shape array) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < array.rank(); ++d) {
    if (array.dim(d) != 1) dims.push_back(d);
  }
  return dims;
}

// Slices before it reshapes, if each dimension is unchanged, or part of a group of dimensions that are taken whole.
bool DynamicSliceOfReshape(PatternRewriter& rewriter, Instruction slice) {
  const Instruction reshape = slice.operand(0);
  if (reshape.opcode() != Opcode::kReshape || !HasScalarStarts(slice, 1) || slice.shape().rank() == 0 ||
      slice.shape().element_count() == 0 || !rewriter.IsReplaceable(slice)) {
    return false;
  }
  const Instruction source = reshape.operand(0);
  const Shape from = source.shape(), to = reshape.shape();
  std::vector<InstructionId> starts(static_cast<size_t>(from.rank()));
  std::vector<int64_t> sizes(from.dims().begin(), from.dims().end());
  const std::vector<int64_t> in = LongDims(from), out = LongDims(to);
  for (size_t i = 0, j = 0; i < in.size() && j < out.size();) {
    // The dimensions up to `i_end` and `j_end` have the same elements.
    size_t i_end = i, j_end = j;
    int64_t a = from.dim(in[i_end++]), b = to.dim(out[j_end++]);
    while (a != b) {
      if (a < b) {
        if (i_end == in.size()) return false;
        a *= from.dim(in[i_end++]);
      } else {
        if (j_end == out.size()) return false;
        b *= to.dim(out[j_end++]);
      }
    }
    bool whole = true;
    for (size_t k = j; k < j_end; ++k) whole = whole && slice.shape().dim(out[k]) == to.dim(out[k]);
    if (!whole) {
      if (i_end - i != 1 || j_end - j != 1) return false;
      starts[static_cast<size_t>(in[i])] = slice.operand(1 + out[j]).id();
      sizes[static_cast<size_t>(in[i])] = slice.shape().dim(out[j]);
    }
    i = i_end;
    j = j_end;
  }
  const InstructionId part = MakeDynamicSlice(rewriter, slice, source, starts, sizes);
  return rewriter.ReplaceWithNew(slice, Opcode::kReshape, {part}, {}, {reshape});
}

// A start along a dimension that is taken whole clamps to zero: replaces it by another start that is a constant, so
// that its computation may become dead.
bool IrrelevantStarts(PatternRewriter& rewriter, Instruction i) {
  const bool update = i.opcode() == Opcode::kDynamicUpdateSlice;
  const int64_t first = update ? 2 : 1;
  if (!HasScalarStarts(i, first)) return false;
  const Shape whole = i.operand(0).shape(), part = update ? i.operand(1).shape() : i.shape();
  bool changed = false;
  InstructionId zero;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    const Instruction start = i.operand(first + d);
    if (whole.dim(d) != part.dim(d) || start.opcode() == Opcode::kConstant) continue;
    if (!zero.valid()) {
      // All starts have one type.
      const Literal literal = Literal::Zeros(rewriter.shapes().Scalar(start.shape().element_type()));
      zero = rewriter.MakeConstant(literal);
    }
    rewriter.DropMetadataOf(start);
    changed |= rewriter.ReplaceOperand(i, first + d, zero);
  }
  return changed;
}

bool UpdateOfAll(PatternRewriter& rewriter, Instruction update) {
  rewriter.DropMetadataOfOperands(update, 2);
  const bool nothing = update.operand(1).shape().element_count() == 0;
  rewriter.DropMetadataOf(update.operand(nothing ? 1 : 0));
  if (nothing) return rewriter.Replace(update, update.operand(0).id());
  return rewriter.Replace(update, update.operand(1).id());
}

// Removes an update that writes back the slice read from there.
bool UpdateWithOwnSlice(PatternRewriter& rewriter, Instruction update) {
  const Instruction slice = update.operand(1);
  if (slice.opcode() != Opcode::kDynamicSlice || slice.operand(0) != update.operand(0)) return false;
  if (slice.operand_count() + 1 != update.operand_count()) return false;
  for (int64_t k = 1; k < slice.operand_count(); ++k) {
    if (slice.operand(k) != update.operand(k + 1)) return false;
  }
  return rewriter.Replace(update, update.operand(0).id(), {slice});
}

// Replaces a slice of just the updated region by the update.
bool SliceOfUpdate(PatternRewriter& rewriter, Instruction slice) {
  const Instruction update = slice.operand(0);
  if (update.opcode() != Opcode::kDynamicUpdateSlice || slice.operand_count() + 1 != update.operand_count())
    return false;
  for (int64_t k = 1; k < slice.operand_count(); ++k) {
    if (slice.operand(k) != update.operand(k + 1)) return false;
  }
  rewriter.DropMetadataOf(update.operand(0));
  rewriter.DropMetadataOfOperands(slice, 1);
  return rewriter.Replace(slice, update.operand(1).id(), {update});
}

}  // namespace

void AddDynamicSliceRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDynamicSlice}, "slices of everything removed", DynamicSliceOfAll);
  rules->Add({Opcode::kDynamicSlice}, "dynamic slices with known starts made slices", DynamicSliceToSlice);
  rules->Add({Opcode::kDynamicSlice}, "slices of broadcasts merged", DynamicSliceOfBroadcast);
  rules->Add({Opcode::kDynamicSlice}, "slices of updates forwarded", SliceOfUpdate);
  rules->Add({Opcode::kDynamicSlice}, "dynamic slices moved before transposes", DynamicSliceOfTranspose);
  rules->Add({Opcode::kDynamicSlice}, "dynamic slices moved before reshapes", DynamicSliceOfReshape);
  rules->Add({Opcode::kDynamicUpdateSlice}, "updates of everything or nothing removed", UpdateOfAll);
  rules->Add({Opcode::kDynamicUpdateSlice}, "updates with what is there removed", UpdateWithOwnSlice);
  rules->Add({Opcode::kDynamicSlice, Opcode::kDynamicUpdateSlice}, "starts without effect made zero", IrrelevantStarts);
}

}  // namespace hlokit
