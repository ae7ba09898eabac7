// SPDX-License-Identifier: Apache-2.0
// Moves conversions across data movement: narrowing ones up, so that fewer bytes are moved, widening ones down.
#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/simplify/algebraic/rule_passes.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

int Bits(Instruction i) { return BitsOf(i.shape().element_type()); }

// Rewrites convert(move(x)) to fewer bits into move(convert(x)), unless that converts more elements in total.
bool NarrowingUp(PatternRewriter& rewriter, Instruction convert) {
  const Instruction move = convert.operand(0);
  if (!MovesElements(move.opcode()) || !HasOneUser(move) || Bits(convert) >= Bits(move)) return false;
  const Instruction source = move.operand(0);
  if (source.shape().element_count() > move.shape().element_count() || !rewriter.IsReplaceable(convert) ||
      source.shape().element_type() != move.shape().element_type() || source.opcode() == Opcode::kConstant) {
    return false;
  }
  std::vector<InstructionId> operands = {rewriter.MakeConvert(source.id(), convert.shape().element_type())};
  for (int64_t k = 1; k < move.operand_count(); ++k) operands.push_back(move.operand(k).id());
  return rewriter.ReplaceWithNew(convert, move.opcode(), operands, OwnAttrs(move), {move});
}

// Rewrites move(convert(x)) from fewer bits into convert(move(x)), unless that converts more elements.
bool WideningDown(PatternRewriter& rewriter, Instruction move) {
  const Instruction convert = move.operand(0);
  if (convert.opcode() != Opcode::kConvert || !HasOneUser(convert)) return false;
  const Instruction source = convert.operand(0);
  if (Bits(source) >= Bits(convert) || move.shape().element_count() > source.shape().element_count() ||
      !rewriter.IsReplaceable(move)) {
    return false;
  }
  std::vector<InstructionId> operands = {source.id()};
  for (int64_t k = 1; k < move.operand_count(); ++k) operands.push_back(move.operand(k).id());
  const Shape narrow = rewriter.shapes().WithElementType(move.shape(), source.shape().element_type());
  const InstructionId moved = rewriter.Make(move.opcode(), narrow, operands, OwnAttrs(move));
  return rewriter.ReplaceWithNew(move, Opcode::kConvert, {moved}, {}, {convert});
}

}  // namespace

void AddConvertMoverRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kConvert}, "narrowing conversions moved up", NarrowingUp);
  rules->Add({Opcode::kReshape, Opcode::kTranspose, Opcode::kBroadcast, Opcode::kSlice, Opcode::kReverse,
              Opcode::kDynamicSlice},
             "widening conversions moved down", WideningDown);
  AddConvertRules(rules);
}

HLOKIT_PASS(ConvertMover) {
  return {.name = "convert-mover",
          .category = "simplify",
          .summary = "move narrowing conversions up and widening ones down",
          .doc =
              "Across reshapes, transposes, broadcasts, slices and reversals, if no more elements are "
              "converted than before, so that fewer bytes are moved. No value changes. Values that are "
              "converted to bf16 in the end are thus moved in bf16.",
          .example = R"(ENTRY e {
  p = f32[4,8] parameter(0)
  q = bf16[4,8] parameter(1)
  t = f32[8,4] transpose(p), dimensions={1,0}, metadata={op_name="f/t"}
  n = bf16[8,4] convert(t), metadata={op_name="f/narrow"}
  w = f32[4,8] convert(q)
  u = f32[32] reshape(w)
  ROOT r = (bf16[8,4], f32[32]) tuple(n, u)
})",
          .create = MakePass<RulesOf<AddConvertMoverRules>>};
}

}  // namespace hlokit
