// SPDX-License-Identifier: Apache-2.0
// Logic, comparisons and selections.
#include "ir/graph/attribute_views.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Simplifies x & x, x & 1…1, x & 0; x | x, x | 0, x | 1…1; x ^ 0.
bool LogicIdentity(PatternRewriter& rewriter, Instruction i) {
  if (i.opcode() != Opcode::kXor && i.operand(0) == i.operand(1)) return rewriter.Replace(i, i.operand(0).id());
  for (int k = 0; k < 2; ++k) {
    const auto splat = SplatOf(i.operand(k));
    if (!splat) continue;
    const bool neutral = i.opcode() == Opcode::kAnd ? splat->IsAllOnes() : splat->IsZero();
    const bool absorbing = i.opcode() == Opcode::kAnd  ? splat->IsZero()
                           : i.opcode() == Opcode::kOr ? splat->IsAllOnes()
                                                       : false;
    if (neutral && rewriter.Replace(i, i.operand(1 - k).id())) return true;
    if (!absorbing) continue;
    rewriter.DropMetadataOf(i.operand(1 - k));
    if (rewriter.Replace(i, i.operand(k).id())) return true;
  }
  return false;
}

ComparisonDirection Inverse(ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kEq:
      return ComparisonDirection::kNe;
    case ComparisonDirection::kNe:
      return ComparisonDirection::kEq;
    case ComparisonDirection::kGe:
      return ComparisonDirection::kLt;
    case ComparisonDirection::kGt:
      return ComparisonDirection::kLe;
    case ComparisonDirection::kLe:
      return ComparisonDirection::kGt;
    case ComparisonDirection::kLt:
      return ComparisonDirection::kGe;
  }
  return direction;
}

// Simplifies not(not(x)), and not of a comparison that cannot be unordered to the opposite comparison.
bool NotOf(PatternRewriter& rewriter, Instruction i) {
  const Instruction inner = i.operand(0);
  if (inner.opcode() == Opcode::kNot) return rewriter.Replace(i, inner.operand(0).id(), {inner});
  if (inner.opcode() != Opcode::kCompare || !HasOneUser(inner)) return false;
  const auto direction = inner.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  const bool total = direction == ComparisonDirection::kEq || direction == ComparisonDirection::kNe ||
                     !IsFloat(inner.operand(0).shape().element_type()) ||
                     inner.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kTotalOrder;
  if (!total) return false;
  std::vector<AttrValue> attrs = {Builder::Enum(Attr::kDirection, Inverse(direction))};
  if (inner.has(Attr::kCompareType)) attrs.push_back(Builder::SameAs(inner, Attr::kCompareType));
  return rewriter.ReplaceWithNew(i, Opcode::kCompare, {inner.operand(0).id(), inner.operand(1).id()}, attrs, {inner});
}

bool ReplaceWithBool(PatternRewriter& rewriter, Instruction i, bool value) {
  if (!rewriter.IsReplaceable(i)) return false;
  const std::byte byte{value};
  return rewriter.Replace(i, rewriter.MakeSplat(i.shape(), rewriter.MakeScalar(ElementType::kPred, &byte)));
}

// Simplifies x == x of integers, comparisons of non-negative values with zero, and of pred with true and false.
bool CompareKnown(PatternRewriter& rewriter, Instruction i) {
  const auto direction = i.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  const Instruction a = i.operand(0), b = i.operand(1);
  const ElementType type = a.shape().element_type();
  const bool exact = IsInteger(type) || type == ElementType::kPred;
  if (!exact || b.shape().element_type() != type) return false;
  const bool orders = direction == ComparisonDirection::kGe || direction == ComparisonDirection::kLe;
  if (a == b) {
    rewriter.DropMetadataOf(a);
    return ReplaceWithBool(rewriter, i, orders || direction == ComparisonDirection::kEq);
  }
  const auto right = SplatOf(b), left = SplatOf(a);
  if (right && right->IsZero() && type != ElementType::kPred && IsNonNegative(a)) {
    if (direction == ComparisonDirection::kLt) return ReplaceWithBool(rewriter, i, false);
    if (direction == ComparisonDirection::kGe) return ReplaceWithBool(rewriter, i, true);
  }
  if (left && left->IsZero() && type != ElementType::kPred && IsNonNegative(b)) {
    if (direction == ComparisonDirection::kGt) return ReplaceWithBool(rewriter, i, false);
    if (direction == ComparisonDirection::kLe) return ReplaceWithBool(rewriter, i, true);
  }
  if (type != ElementType::kPred) return false;
  for (int k = 0; k < 2; ++k) {
    const auto& splat = k == 0 ? left : right;
    if (!splat) continue;
    const bool is_true = splat->IsOne();
    const Instruction other = i.operand(1 - k);
    if ((direction == ComparisonDirection::kEq && is_true) || (direction == ComparisonDirection::kNe && !is_true)) {
      if (rewriter.Replace(i, other.id())) return true;
    } else if (direction == ComparisonDirection::kEq || direction == ComparisonDirection::kNe) {
      if (rewriter.ReplaceWithNew(i, Opcode::kNot, {other.id()})) return true;
    }
  }
  return false;
}

// Simplifies comparisons of an iota with a bound outside its range.
bool CompareIota(PatternRewriter& rewriter, Instruction i) {
  const Instruction a = i.operand(0);
  if (a.opcode() != Opcode::kIota || !IsInteger(a.shape().element_type()) || !IsNonNegative(a)) return false;
  const auto bound = SplatOf(i.operand(1));
  const auto value = bound ? bound->AsInt() : std::nullopt;
  if (!value) return false;
  const int64_t last = a.shape().dim(a.int_attr(Attr::kIotaDimension)) - 1;
  switch (i.enum_attr(Attr::kDirection, ComparisonDirection::kEq)) {
    case ComparisonDirection::kLt:
      if (last < *value) return ReplaceWithBool(rewriter, i, true);
      return *value <= 0 && ReplaceWithBool(rewriter, i, false);
    case ComparisonDirection::kLe:
      if (last <= *value) return ReplaceWithBool(rewriter, i, true);
      return *value < 0 && ReplaceWithBool(rewriter, i, false);
    case ComparisonDirection::kGt:
      if (last <= *value) return ReplaceWithBool(rewriter, i, false);
      return *value < 0 && ReplaceWithBool(rewriter, i, true);
    case ComparisonDirection::kGe:
      if (last < *value) return ReplaceWithBool(rewriter, i, false);
      return *value <= 0 && ReplaceWithBool(rewriter, i, true);
    case ComparisonDirection::kEq:
      return (*value < 0 || *value > last) && ReplaceWithBool(rewriter, i, false);
    case ComparisonDirection::kNe:
      return (*value < 0 || *value > last) && ReplaceWithBool(rewriter, i, true);
  }
  return false;
}

bool SelectKnown(PatternRewriter& rewriter, Instruction select) {
  const Instruction pred = select.operand(0), on_true = select.operand(1), on_false = select.operand(2);
  if (on_true == on_false) {
    rewriter.DropMetadataOf(pred);
    return rewriter.Replace(select, on_true.id());
  }
  if (const auto splat = SplatOf(pred)) {
    rewriter.DropMetadataOf(splat->IsOne() ? on_false : on_true);
    return rewriter.Replace(select, splat->IsOne() ? on_true.id() : on_false.id());
  }
  if (pred.opcode() == Opcode::kNot) {
    return rewriter.ReplaceWithNew(select, Opcode::kSelect, {pred.operand(0).id(), on_false.id(), on_true.id()}, {},
                                   {pred});
  }
  if (select.shape() != pred.shape()) return false;
  const auto a = SplatOf(on_true), b = SplatOf(on_false);
  if (!a || !b) return false;
  if (a->IsOne() && b->IsZero()) return rewriter.Replace(select, pred.id());
  return a->IsZero() && b->IsOne() && rewriter.ReplaceWithNew(select, Opcode::kNot, {pred.id()});
}

// Simplifies select(p, select(p, a, b), c) and similar forms.
bool SelectOfSelect(PatternRewriter& rewriter, Instruction select) {
  const Instruction pred = select.operand(0);
  for (int k = 1; k < 3; ++k) {
    const Instruction inner = select.operand(k);
    if (inner.opcode() != Opcode::kSelect || inner.operand(0) != pred) continue;
    InstructionId operands[] = {pred.id(), select.operand(1).id(), select.operand(2).id()};
    operands[k] = inner.operand(k).id();
    rewriter.DropMetadataOf(inner.operand(3 - k));
    if (rewriter.ReplaceWithNew(select, Opcode::kSelect, operands, {}, {inner})) return true;
  }
  return false;
}

}  // namespace

void AddLogicRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kAnd, Opcode::kOr, Opcode::kXor}, "logic without effect removed", LogicIdentity);
  rules->Add({Opcode::kNot}, "negations folded", NotOf);
  rules->Add({Opcode::kCompare}, "comparisons with a known result folded", CompareKnown);
  rules->Add({Opcode::kCompare}, "comparisons of iotas folded", CompareIota);
  rules->Add({Opcode::kSelect}, "selections with a known result folded", SelectKnown);
  rules->Add({Opcode::kSelect}, "nested selections merged", SelectOfSelect);
}

}  // namespace hlokit
