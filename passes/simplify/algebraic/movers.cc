// SPDX-License-Identifier: Apache-2.0
// Sinks reshapes, transposes and broadcasts below elementwise operations, so that those of several operands merge.
// Movers only sink, so the rewrite terminates.
#include <algorithm>

#include "ir/graph/instruction_queries.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Returns true if `operand` is a mover with dimensions and attributes like those of `pattern`.
bool MovesAlike(Instruction operand, Instruction pattern) {
  return operand.opcode() == pattern.opcode() &&
         operand.operand(0).shape().dims() == pattern.operand(0).shape().dims() &&
         operand.list_attr(Attr::kDimensions) == pattern.list_attr(Attr::kDimensions);
}

bool MoveBelow(PatternRewriter& rewriter, Instruction op, Opcode mover) {
  if (!op.shape().IsArray() || op.shape().IsScalar() || !rewriter.IsReplaceable(op)) return false;
  // The operand that determines the movement: preferably not a broadcast of a scalar.
  Instruction pattern;
  for (Instruction operand : op.operands()) {
    if (operand.opcode() != mover) continue;
    if (!pattern.valid() || (IsBroadcastOfScalar(pattern) && !IsBroadcastOfScalar(operand))) pattern = operand;
  }
  if (!pattern.valid()) return false;
  const Shape source = pattern.operand(0).shape();
  if (source.element_count() == 0) return false;
  int64_t saved = 0;
  for (Instruction operand : op.operands()) {
    if (operand.shape().IsScalar()) continue;
    if (operand.shape().dims() != op.shape().dims()) return false;
    if (MovesAlike(operand, pattern)) {
      saved += HasOneUser(operand) ? 1 : 0;
    } else if (!IsBroadcastOfScalar(operand)) {
      return false;
    }
  }
  // Must remove at least as many instructions as it adds.
  if (saved == 0) return false;
  const auto with_dims = [&](Shape shape, absl::Span<const int64_t> dims) {
    return rewriter.shapes().Array(shape.element_type(), dims);
  };
  std::vector<InstructionId> operands;
  std::vector<InstructionId> made;
  Instruction absorbed[3];
  size_t absorbed_count = 0;
  // By index: creating instructions reallocates the operand lists.
  for (int64_t k = 0; k < op.operand_count(); ++k) {
    const Instruction operand = op.operand(k);
    if (operand.shape().IsScalar()) {
      operands.push_back(operand.id());
    } else if (MovesAlike(operand, pattern)) {
      operands.push_back(operand.operand(0).id());
      if (absorbed_count < 3) absorbed[absorbed_count++] = operand;
    } else {
      operands.push_back(rewriter.MakeSplat(with_dims(operand.shape(), source.dims()), operand.operand(0).id()));
      rewriter.AddMetadataSource(operands.back(), operand);
    }
  }
  std::vector<AttrValue> attrs;
  for (AttrValue value : op.attrs()) {
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  const InstructionId inner = rewriter.Make(op.opcode(), with_dims(op.shape(), source.dims()), operands, attrs);
  std::vector<AttrValue> mover_attrs;
  if (pattern.has(Attr::kDimensions)) mover_attrs.push_back(Builder::SameAs(pattern, Attr::kDimensions));
  const InstructionId moved = rewriter.Make(mover, op.shape(), {inner}, mover_attrs);
  switch (absorbed_count) {
    case 1:
      return rewriter.Replace(op, moved, {absorbed[0]});
    case 2:
      return rewriter.Replace(op, moved, {absorbed[0], absorbed[1]});
    default:
      return rewriter.Replace(op, moved, {absorbed[0], absorbed[1], absorbed[2]});
  }
}

bool MoveBroadcast(PatternRewriter& rewriter, Instruction op) { return MoveBelow(rewriter, op, Opcode::kBroadcast); }
bool MoveReshape(PatternRewriter& rewriter, Instruction op) { return MoveBelow(rewriter, op, Opcode::kReshape); }
bool MoveTranspose(PatternRewriter& rewriter, Instruction op) { return MoveBelow(rewriter, op, Opcode::kTranspose); }

void AddToElementwise(RewritePatternSet* rules, std::string_view name, RewriteFunction rule) {
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    const Opcode opcode = static_cast<Opcode>(i);
    if (HasTrait(opcode, kElementwise)) rules->Add({opcode}, name, rule);
  }
}

}  // namespace

void AddBroadcastMovers(RewritePatternSet* rules) {
  AddToElementwise(rules, "broadcasts moved below elementwise operations", MoveBroadcast);
}

void AddReshapeMovers(RewritePatternSet* rules) {
  AddToElementwise(rules, "reshapes moved below elementwise operations", MoveReshape);
  AddToElementwise(rules, "transposes moved below elementwise operations", MoveTranspose);
}

}  // namespace hlokit
