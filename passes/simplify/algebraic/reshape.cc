// SPDX-License-Identifier: Apache-2.0
// Reshapes, and the mapping of dimensions across them.
#include <algorithm>

#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

bool ReshapeToSame(PatternRewriter& rewriter, Instruction reshape) {
  return rewriter.Replace(reshape, reshape.operand(0).id());
}

bool ReshapeOfReshape(PatternRewriter& rewriter, Instruction reshape) {
  const Instruction inner = reshape.operand(0);
  if (inner.opcode() != Opcode::kReshape) return false;
  const Instruction source = inner.operand(0);
  if (source.shape() == reshape.shape()) return rewriter.Replace(reshape, source.id(), {inner});
  return rewriter.ReplaceWithNew(reshape, Opcode::kReshape, {source.id()}, {}, {inner});
}

bool ReshapeOfBroadcast(PatternRewriter& rewriter, Instruction reshape) {
  const Instruction inner = reshape.operand(0);
  if (inner.opcode() != Opcode::kBroadcast) return false;
  const auto dims =
      UnmodifiedByReshape(inner.shape().dims(), reshape.shape().dims(), inner.list_attr(Attr::kDimensions));
  if (!dims) return false;
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, *dims)};
  return rewriter.ReplaceWithNew(reshape, Opcode::kBroadcast, {inner.operand(0).id()}, attrs, {inner});
}

// Replaces a reshape of an iota by an iota if the reshape keeps its dimension.
bool ReshapeOfIota(PatternRewriter& rewriter, Instruction reshape) {
  const Instruction inner = reshape.operand(0);
  if (inner.opcode() != Opcode::kIota) return false;
  const int64_t kept[] = {inner.int_attr(Attr::kIotaDimension)};
  const auto dims = UnmodifiedByReshape(inner.shape().dims(), reshape.shape().dims(), kept);
  if (!dims) return false;
  const AttrValue attrs[] = {rewriter.Int(Attr::kIotaDimension, (*dims)[0])};
  return rewriter.ReplaceWithNew(reshape, Opcode::kIota, {}, attrs, {inner});
}

// Removes a bitcast that changes neither type, dimensions nor layout.
bool BitcastToSame(PatternRewriter& rewriter, Instruction bitcast) {
  return rewriter.Replace(bitcast, bitcast.operand(0).id());
}

bool BitcastOfBitcast(PatternRewriter& rewriter, Instruction bitcast) {
  const Instruction inner = bitcast.operand(0);
  return inner.opcode() == Opcode::kBitcast &&
         rewriter.ReplaceWithNew(bitcast, Opcode::kBitcast, {inner.operand(0).id()}, {}, {inner});
}

bool ReverseOfNothing(PatternRewriter& rewriter, Instruction reverse) {
  const absl::Span<const int64_t> dims = reverse.list_attr(Attr::kDimensions);
  const bool all_unit = std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return reverse.shape().dim(d) == 1; });
  if (all_unit || SplatOf(reverse.operand(0))) return rewriter.Replace(reverse, reverse.operand(0).id());
  const Instruction inner = reverse.operand(0);
  return inner.opcode() == Opcode::kReverse && inner.list_attr(Attr::kDimensions) == dims &&
         rewriter.Replace(reverse, inner.operand(0).id(), {inner});
}

}  // namespace

std::optional<std::vector<int64_t>> UnmodifiedByReshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to,
                                                        absl::Span<const int64_t> kept) {
  if (std::count(from.begin(), from.end(), 0) != 0) return std::nullopt;
  // A dimension is kept if its size and the number of elements before it agree. A unit dimension maps to any position
  // where the elements before and after agree.
  std::vector<int64_t> before(from.size()), result;
  int64_t product = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    before[i] = product;
    product *= from[i];
  }
  std::vector<uint8_t> taken(to.size(), 0);
  for (int64_t dim : kept) {
    const size_t d = static_cast<size_t>(dim);
    if (dim < 0 || d >= from.size()) return std::nullopt;
    int64_t to_before = 1;
    size_t found = to.size();
    for (size_t j = 0; j < to.size() && found == to.size(); ++j) {
      if (taken[j] == 0 && to[j] == from[d] && to_before == before[d]) found = j;
      to_before *= to[j];
    }
    if (found == to.size()) return std::nullopt;
    taken[found] = 1;
    result.push_back(static_cast<int64_t>(found));
  }
  return result;
}

bool DiffersByUnitDims(absl::Span<const int64_t> from, absl::Span<const int64_t> to) {
  size_t i = 0, j = 0;
  while (true) {
    while (i < from.size() && from[i] == 1) ++i;
    while (j < to.size() && to[j] == 1) ++j;
    if (i == from.size() || j == to.size()) return i == from.size() && j == to.size();
    if (from[i++] != to[j++]) return false;
  }
}

void AddReshapeRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kReshape}, "reshapes to the same shape removed", ReshapeToSame);
  rules->Add({Opcode::kReshape}, "reshapes of reshapes merged", ReshapeOfReshape);
  rules->Add({Opcode::kReshape}, "reshapes of broadcasts merged", ReshapeOfBroadcast);
  rules->Add({Opcode::kReshape}, "reshapes of iotas merged", ReshapeOfIota);
  rules->Add({Opcode::kBitcast}, "bitcasts to the same shape removed", BitcastToSame);
  rules->Add({Opcode::kBitcast}, "bitcasts of bitcasts merged", BitcastOfBitcast);
  rules->Add({Opcode::kReverse}, "reversals without effect removed", ReverseOfNothing);
}

}  // namespace hlokit
