// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters, tuples, sorts.
#include <algorithm>

#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Replaces a gather from a splat by a broadcast.
bool GatherOfBroadcast(PatternRewriter& rewriter, Instruction gather) {
  const Instruction operand = gather.operand(0);
  if (operand.shape().element_count() == 0 || !rewriter.IsReplaceable(gather)) return false;
  rewriter.DropMetadataOf(gather.operand(1));
  return IsBroadcastOfScalar(operand) &&
         rewriter.Replace(gather, rewriter.MakeSplat(gather.shape(), operand.operand(0).id()), {operand});
}

// Removes a scatter without updates.
bool EmptyScatter(PatternRewriter& rewriter, Instruction scatter) {
  rewriter.DropMetadataOfOperands(scatter, 1);
  return scatter.operand_count() == 3 && scatter.operand(2).shape().element_count() == 0 &&
         rewriter.Replace(scatter, scatter.operand(0).id());
}

// Removes a sort along a dimension of size 1.
bool SortOfOne(PatternRewriter& rewriter, Instruction sort) {
  if (sort.operand_count() != 1) return false;
  const absl::Span<const int64_t> dims = sort.list_attr(Attr::kDimensions);
  return dims.size() == 1 && sort.operand(0).shape().dim(dims[0]) <= 1 && rewriter.Replace(sort, sort.operand(0).id());
}

bool ElementOfTuple(PatternRewriter& rewriter, Instruction element) {
  const Instruction tuple = element.operand(0);
  if (tuple.opcode() != Opcode::kTuple) return false;
  const Instruction value = tuple.operand(element.int_attr(Attr::kIndex));
  if (HasOneUser(tuple)) {
    for (Instruction other : tuple.operands()) {
      if (other != value) rewriter.DropMetadataOf(other);
    }
  }
  return rewriter.Replace(element, value.id(), {tuple});
}

// Replaces a tuple of all elements of one tuple, in order, by that tuple.
bool TupleOfElements(PatternRewriter& rewriter, Instruction tuple) {
  if (tuple.operand_count() == 0) return false;
  const Instruction first = tuple.operand(0);
  if (first.opcode() != Opcode::kGetTupleElement) return false;
  const Instruction source = first.operand(0);
  if (source.shape() != tuple.shape()) return false;
  int64_t index = 0;
  for (Instruction element : tuple.operands()) {
    if (element.opcode() != Opcode::kGetTupleElement || element.operand(0) != source ||
        element.int_attr(Attr::kIndex) != index++) {
      return false;
    }
  }
  return rewriter.Replace(tuple, source.id());
}

}  // namespace

void AddIndexedRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kGather}, "gathers of broadcasts merged", GatherOfBroadcast);
  rules->Add({Opcode::kScatter}, "empty scatters removed", EmptyScatter);
  rules->Add({Opcode::kSort}, "sorts of one element removed", SortOfOne);
}

void AddTupleRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kGetTupleElement}, "elements of tuples forwarded", ElementOfTuple);
  rules->Add({Opcode::kTuple}, "tuples of all elements of a tuple removed", TupleOfElements);
}

}  // namespace hlokit
