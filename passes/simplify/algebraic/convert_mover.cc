// SPDX-License-Identifier: Apache-2.0
// Moves conversions across data movement: narrowing ones up, so that fewer bytes are moved, widening ones down. Adds
// the conversions that targets without bf16 arithmetic need.
#include "passes/simplify/algebraic/rule_passes.h"

namespace hlokit {
namespace {

int Bits(Instruction i) { return BitsOf(i.shape().element_type()); }

std::vector<AttrValue> OwnAttrs(Instruction i) {
  std::vector<AttrValue> attrs;
  for (AttrValue value : i.attrs()) {
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  return attrs;
}

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

// Rewrites bf16 arithmetic as f32 arithmetic between conversions. Equal, since results are rounded once.
bool Bf16ThroughF32(PatternRewriter& rewriter, Instruction i) {
  if (i.opcode() == Opcode::kConvert || i.opcode() == Opcode::kCopy || i.opcode() == Opcode::kSelect ||
      i.opcode() == Opcode::kReducePrecision || i.opcode() == Opcode::kStochasticConvert || !i.shape().IsArray() ||
      !rewriter.IsReplaceable(i)) {
    return false;
  }
  bool any = i.shape().element_type() == ElementType::kBF16;
  for (Instruction operand : i.operands()) any |= operand.shape().element_type() == ElementType::kBF16;
  if (!any) return false;
  std::vector<InstructionId> operands;
  // By index: creating instructions reallocates the operand lists.
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Instruction operand = i.operand(k);
    const bool narrow = operand.shape().element_type() == ElementType::kBF16;
    operands.push_back(narrow ? rewriter.MakeConvert(operand.id(), ElementType::kF32) : operand.id());
    // Merges with the conversion that follows.
    if (narrow && operand.opcode() == Opcode::kConvert) rewriter.AddMetadataSource(operands.back(), operand);
  }
  if (i.shape().element_type() != ElementType::kBF16) {
    return rewriter.ReplaceWithNew(i, i.opcode(), operands, OwnAttrs(i));
  }
  const Shape wide = rewriter.shapes().WithElementType(i.shape(), ElementType::kF32);
  const InstructionId computed = rewriter.Make(i.opcode(), wide, operands, OwnAttrs(i));
  return rewriter.ReplaceWithNew(i, Opcode::kConvert, {computed});
}

}  // namespace

void AddConvertMoverRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kConvert}, "narrowing conversions moved up", NarrowingUp);
  rules->Add({Opcode::kReshape, Opcode::kTranspose, Opcode::kBroadcast, Opcode::kSlice, Opcode::kReverse,
              Opcode::kDynamicSlice},
             "widening conversions moved down", WideningDown);
  AddConvertRules(rules);
}

void AddBf16NormalizationRules(RewritePatternSet* rules) {
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    const Opcode opcode = static_cast<Opcode>(i);
    if (HasTrait(opcode, kElementwise)) rules->Add({opcode}, "operations in bf16 done in f32", Bf16ThroughF32);
  }
}

}  // namespace hlokit
