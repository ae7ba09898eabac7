// SPDX-License-Identifier: Apache-2.0
// Broadcasts and transposes.
#include <algorithm>
#include <numeric>

#include "ir/ops/opcode_set.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

bool IsIdentity(absl::Span<const int64_t> permutation) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Replaces a broadcast that adds no element by a reshape or its operand.
bool DegenerateBroadcast(PatternRewriter& rewriter, Instruction broadcast) {
  const Instruction operand = broadcast.operand(0);
  if (operand.shape().element_count() != broadcast.shape().element_count()) return false;
  const absl::Span<const int64_t> dims = broadcast.list_attr(Attr::kDimensions);
  if (!std::is_sorted(dims.begin(), dims.end())) return false;
  if (operand.shape() == broadcast.shape()) return rewriter.Replace(broadcast, operand.id());
  return rewriter.ReplaceWithNew(broadcast, Opcode::kReshape, {operand.id()});
}

bool BroadcastOfBroadcast(PatternRewriter& rewriter, Instruction broadcast) {
  const Instruction inner = broadcast.operand(0);
  if (inner.opcode() != Opcode::kBroadcast) return false;
  const absl::Span<const int64_t> outer_dims = broadcast.list_attr(Attr::kDimensions);
  std::vector<int64_t> dims;
  for (int64_t d : inner.list_attr(Attr::kDimensions)) dims.push_back(outer_dims[static_cast<size_t>(d)]);
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, dims)};
  return rewriter.ReplaceWithNew(broadcast, Opcode::kBroadcast, {inner.operand(0).id()}, attrs, {inner});
}

// Folds a reshape that only adds unit dimensions into the broadcast.
bool BroadcastOfReshape(PatternRewriter& rewriter, Instruction broadcast) {
  const Instruction reshape = broadcast.operand(0);
  if (reshape.opcode() != Opcode::kReshape) return false;
  const Instruction source = reshape.operand(0);
  const absl::Span<const int64_t> from = source.shape().dims(), to = reshape.shape().dims();
  const absl::Span<const int64_t> outer_dims = broadcast.list_attr(Attr::kDimensions);
  std::vector<int64_t> dims;
  size_t j = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    while (j < to.size() && to[j] != from[i] && to[j] == 1) ++j;
    if (j == to.size() || to[j] != from[i]) return false;
    dims.push_back(outer_dims[j++]);
  }
  if (std::any_of(to.begin() + static_cast<std::ptrdiff_t>(j), to.end(), [](int64_t d) { return d != 1; })) {
    return false;
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, dims)};
  return rewriter.ReplaceWithNew(broadcast, Opcode::kBroadcast, {source.id()}, attrs, {reshape});
}

// Replaces a broadcast of an iota by an iota of the result's dimensions.
bool BroadcastOfIota(PatternRewriter& rewriter, Instruction broadcast) {
  const Instruction iota = broadcast.operand(0);
  if (iota.opcode() != Opcode::kIota) return false;
  const int64_t dim = broadcast.list_attr(Attr::kDimensions)[static_cast<size_t>(iota.int_attr(Attr::kIotaDimension))];
  const AttrValue attrs[] = {rewriter.Int(Attr::kIotaDimension, dim)};
  return rewriter.ReplaceWithNew(broadcast, Opcode::kIota, {}, attrs, {iota});
}

// Replaces the splat constant below a broadcast by its scalar.
bool BroadcastOfSplatConstant(PatternRewriter& rewriter, Instruction broadcast) {
  const Instruction constant = broadcast.operand(0);
  if (constant.shape().IsScalar() || !rewriter.IsReplaceable(broadcast)) return false;
  const auto splat = SplatOf(constant);
  if (!splat || splat->constant != constant) return false;
  const InstructionId scalar = rewriter.MakeScalar(splat->type, splat->data);
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, {})};
  return rewriter.ReplaceWithNew(broadcast, Opcode::kBroadcast, {scalar}, attrs, {constant});
}

// ---- transposes ----

bool TransposeToSame(PatternRewriter& rewriter, Instruction transpose) {
  const bool same = IsIdentity(transpose.list_attr(Attr::kDimensions));
  return same && rewriter.Replace(transpose, transpose.operand(0).id());
}

bool TransposeOfTranspose(PatternRewriter& rewriter, Instruction transpose) {
  const Instruction inner = transpose.operand(0);
  if (inner.opcode() != Opcode::kTranspose) return false;
  const absl::Span<const int64_t> inner_dims = inner.list_attr(Attr::kDimensions);
  std::vector<int64_t> dims;
  for (int64_t d : transpose.list_attr(Attr::kDimensions)) dims.push_back(inner_dims[static_cast<size_t>(d)]);
  const Instruction source = inner.operand(0);
  if (IsIdentity(dims)) return rewriter.Replace(transpose, source.id(), {inner});
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, dims)};
  return rewriter.ReplaceWithNew(transpose, Opcode::kTranspose, {source.id()}, attrs, {inner});
}

// If permutation[i] = d, dimension d of the operand becomes dimension i.
bool TransposeOfBroadcast(PatternRewriter& rewriter, Instruction transpose) {
  const Instruction inner = transpose.operand(0);
  if (!OpcodeSet{Opcode::kBroadcast, Opcode::kIota}.Contains(inner.opcode())) return false;
  const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
  const auto moved = [&](int64_t dim) {
    return std::find(permutation.begin(), permutation.end(), dim) - permutation.begin();
  };
  if (inner.opcode() == Opcode::kIota) {
    const AttrValue attrs[] = {rewriter.Int(Attr::kIotaDimension, moved(inner.int_attr(Attr::kIotaDimension)))};
    return rewriter.ReplaceWithNew(transpose, Opcode::kIota, {}, attrs, {inner});
  }
  std::vector<int64_t> dims;
  for (int64_t d : inner.list_attr(Attr::kDimensions)) dims.push_back(moved(d));
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, dims)};
  return rewriter.ReplaceWithNew(transpose, Opcode::kBroadcast, {inner.operand(0).id()}, attrs, {inner});
}

// Replaces a transpose that moves only unit dimensions by a reshape.
bool DegenerateTranspose(PatternRewriter& rewriter, Instruction transpose) {
  int64_t last = -1;
  for (int64_t d : transpose.list_attr(Attr::kDimensions)) {
    if (transpose.operand(0).shape().dim(d) == 1) continue;
    if (d < last) return false;
    last = d;
  }
  if (transpose.operand(0).shape() == transpose.shape()) {
    return rewriter.Replace(transpose, transpose.operand(0).id());
  }
  return rewriter.ReplaceWithNew(transpose, Opcode::kReshape, {transpose.operand(0).id()});
}

}  // namespace

void AddBroadcastRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kBroadcast}, "broadcasts that add nothing removed", DegenerateBroadcast);
  rules->Add({Opcode::kBroadcast}, "broadcasts of broadcasts merged", BroadcastOfBroadcast);
  rules->Add({Opcode::kBroadcast}, "broadcasts of reshapes merged", BroadcastOfReshape);
  rules->Add({Opcode::kBroadcast}, "broadcasts of iotas merged", BroadcastOfIota);
  rules->Add({Opcode::kBroadcast}, "broadcast constants made scalar", BroadcastOfSplatConstant);
}

void AddTransposeRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kTranspose}, "transposes without effect removed", TransposeToSame);
  rules->Add({Opcode::kTranspose}, "transposes of transposes merged", TransposeOfTranspose);
  rules->Add({Opcode::kTranspose}, "transposes of broadcasts merged", TransposeOfBroadcast);
  rules->Add({Opcode::kTranspose}, "transposes of unit dimensions made reshapes", DegenerateTranspose);
}

}  // namespace hlokit
