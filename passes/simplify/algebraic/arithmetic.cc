// SPDX-License-Identifier: Apache-2.0
// Arithmetic: identities with zero, one and themselves, minima and maxima, clamps, complex numbers.
#include <algorithm>
#include <cstddef>

#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/ops/opcode_set.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

bool AddZero(PatternRewriter& rewriter, Instruction add) {
  for (int k = 0; k < 2; ++k) {
    const auto splat = SplatOf(add.operand(k));
    if (splat && IsNeutralForAdd(rewriter, *splat) && rewriter.Replace(add, add.operand(1 - k).id())) return true;
  }
  return false;
}

bool SubtractZero(PatternRewriter& rewriter, Instruction subtract) {
  const auto splat = SplatOf(subtract.operand(1));
  if (!splat || !splat->IsZero()) return false;
  // -0 - (-0) is 0.
  const bool is_exact = IsFloat(splat->type) ? !splat->IsNegativeZero() : !IsComplex(splat->type);
  if (rewriter.options().Bool("signed-zeros") && !is_exact) return false;
  return rewriter.Replace(subtract, subtract.operand(0).id());
}

bool ReplaceWithInteger(PatternRewriter& rewriter, Instruction i, int64_t value) {
  if (!rewriter.IsReplaceable(i)) return false;
  Literal literal = Literal::Zeros(rewriter.shapes().Scalar(i.shape().element_type()));
  // 0, 1 and -1 are the same bytes in every integer type and pred.
  std::fill_n(literal.data(), literal.size_bytes(), value == -1 ? std::byte{0xff} : std::byte{0});
  if (value == 1) literal.data()[0] = std::byte{1};
  return rewriter.Replace(i, rewriter.MakeSplat(i.shape(), rewriter.MakeConstant(literal)));
}

bool SubtractSelf(PatternRewriter& rewriter, Instruction i) {
  if (i.operand(0) != i.operand(1) || !IsInteger(i.shape().element_type())) return false;
  rewriter.DropMetadataOf(i.operand(0));
  return ReplaceWithInteger(rewriter, i, 0);
}

bool MultiplyIdentity(PatternRewriter& rewriter, Instruction multiply) {
  for (int k = 0; k < 2; ++k) {
    const auto splat = SplatOf(multiply.operand(k));
    if (!splat) continue;
    if (splat->IsOne() && rewriter.Replace(multiply, multiply.operand(1 - k).id())) return true;
    const bool exact = IsInteger(splat->type) || splat->type == ElementType::kPred;
    if (!exact || !splat->IsZero()) continue;
    rewriter.DropMetadataOf(multiply.operand(1 - k));
    if (rewriter.Replace(multiply, multiply.operand(k).id())) return true;
  }
  return false;
}

bool DivideByOne(PatternRewriter& rewriter, Instruction divide) {
  const auto splat = SplatOf(divide.operand(1));
  return splat && splat->IsOne() && rewriter.Replace(divide, divide.operand(0).id());
}

bool RemainderOfOne(PatternRewriter& rewriter, Instruction remainder) {
  const auto splat = SplatOf(remainder.operand(1));
  if (!splat || !IsInteger(splat->type) || !splat->IsOne()) return false;
  rewriter.DropMetadataOf(remainder.operand(0));
  return ReplaceWithInteger(rewriter, remainder, 0);
}

// Simplifies x^1 and x^2.
bool SmallPower(PatternRewriter& rewriter, Instruction power) {
  const auto splat = SplatOf(power.operand(1));
  if (!splat || power.operand(0).shape() != power.shape()) return false;
  const InstructionId base = power.operand(0).id();
  if (splat->IsOne()) return rewriter.Replace(power, base);
  return splat->Is(2) && rewriter.ReplaceWithNew(power, Opcode::kMultiply, {base, base});
}

// Simplifies shifts by zero.
bool ShiftByZero(PatternRewriter& rewriter, Instruction shift) {
  const auto splat = SplatOf(shift.operand(1));
  return splat && splat->IsZero() && rewriter.Replace(shift, shift.operand(0).id());
}

// Simplifies max(x, x), and max(x, lowest) and max(x, highest) of integers, and likewise for min.
bool ExtremeIdentity(PatternRewriter& rewriter, Instruction i) {
  if (i.operand(0) == i.operand(1)) return rewriter.Replace(i, i.operand(0).id());
  const bool is_max = i.opcode() == Opcode::kMaximum;
  for (int k = 0; k < 2; ++k) {
    const auto splat = SplatOf(i.operand(k));
    if (!splat) continue;
    if ((is_max ? splat->IsLowest() : splat->IsHighest()) && rewriter.Replace(i, i.operand(1 - k).id())) return true;
    const bool absorbing = IsInteger(splat->type) && (is_max ? splat->IsHighest() : splat->IsLowest());
    if (absorbing) {
      rewriter.DropMetadataOf(i.operand(1 - k));
      if (rewriter.Replace(i, i.operand(k).id())) return true;
    }
    if (is_max && IsInteger(splat->type) && splat->IsZero() && IsNonNegative(i.operand(1 - k)) &&
        rewriter.Replace(i, i.operand(1 - k).id())) {
      return true;
    }
  }
  return false;
}

// Returns the bound of a clamp: the scalar, if the operand is a broadcast of one.
Instruction ClampBound(Instruction operand) {
  const bool of_scalar = IsBroadcastOfScalar(operand);
  return of_scalar ? operand.operand(0) : operand;
}

// Replaces max(min(x, high), low) and min(max(x, low), high) with known low <= high by clamp.
bool ExtremesToClamp(PatternRewriter& rewriter, Instruction outer) {
  const bool is_max = outer.opcode() == Opcode::kMaximum;
  const Opcode inner_opcode = is_max ? Opcode::kMinimum : Opcode::kMaximum;
  for (int k = 0; k < 2; ++k) {
    const Instruction inner = outer.operand(k);
    if (inner.opcode() != inner_opcode || !HasOneUser(inner) || inner.shape() != outer.shape()) continue;
    for (int l = 0; l < 2; ++l) {
      const Instruction outer_bound = outer.operand(1 - k), inner_bound = inner.operand(l);
      const auto a = SplatOf(outer_bound), b = SplatOf(inner_bound);
      if (!a || !b || a->type != b->type || inner.operand(1 - l).shape() != outer.shape()) continue;
      const auto x = a->AsDouble(), y = b->AsDouble();
      if (!x || !y || !(is_max ? *x <= *y : *y <= *x)) continue;
      Instruction low = is_max ? outer_bound : inner_bound, high = is_max ? inner_bound : outer_bound;
      const Instruction low_scalar = ClampBound(low), high_scalar = ClampBound(high);
      if (low_scalar.shape().IsScalar() && high_scalar.shape().IsScalar()) low = low_scalar, high = high_scalar;
      if (rewriter.ReplaceWithNew(outer, Opcode::kClamp, {low.id(), inner.operand(1 - l).id(), high.id()}, {},
                                  {inner})) {
        return true;
      }
    }
  }
  return false;
}

// Replaces broadcast bounds of a clamp by their scalars.
bool ClampScalarBounds(PatternRewriter& rewriter, Instruction clamp) {
  const Instruction low = ClampBound(clamp.operand(0)), high = ClampBound(clamp.operand(2));
  if ((low == clamp.operand(0) && high == clamp.operand(2)) || !low.shape().IsScalar() || !high.shape().IsScalar()) {
    return false;
  }
  return rewriter.ReplaceWithNew(clamp, Opcode::kClamp, {low.id(), clamp.operand(1).id(), high.id()}, {},
                                 {clamp.operand(0), clamp.operand(2)});
}

bool NegateTwice(PatternRewriter& rewriter, Instruction negate) {
  const Instruction inner = negate.operand(0);
  return inner.opcode() == Opcode::kNegate && rewriter.Replace(negate, inner.operand(0).id(), {inner});
}

// Simplifies abs(abs(x)), abs(-x), and abs of non-negative values.
bool AbsOfAbs(PatternRewriter& rewriter, Instruction abs) {
  const Instruction inner = abs.operand(0);
  if (inner.opcode() == Opcode::kAbs || (IsInteger(abs.shape().element_type()) && IsNonNegative(inner))) {
    return rewriter.Replace(abs, inner.id());
  }
  return inner.opcode() == Opcode::kNegate &&
         rewriter.ReplaceWithNew(abs, Opcode::kAbs, {inner.operand(0).id()}, {}, {inner});
}

bool RealOfComplex(PatternRewriter& rewriter, Instruction part) {
  const Instruction complex = part.operand(0);
  if (complex.opcode() != Opcode::kComplex) return false;
  const int64_t index = part.opcode() == Opcode::kReal ? 0 : 1;
  rewriter.DropMetadataOf(complex.operand(1 - index));
  return rewriter.Replace(part, complex.operand(index).id(), {complex});
}

bool ComplexOfParts(PatternRewriter& rewriter, Instruction complex) {
  const Instruction real = complex.operand(0), imag = complex.operand(1);
  return real.opcode() == Opcode::kReal && imag.opcode() == Opcode::kImag && real.operand(0) == imag.operand(0) &&
         rewriter.Replace(complex, real.operand(0).id(), {real, imag});
}

bool CopyOfSameLayout(PatternRewriter& rewriter, Instruction copy) {
  return rewriter.Replace(copy, copy.operand(0).id());
}

// Removes rounding to whole numbers of values that are whole.
bool RoundTwice(PatternRewriter& rewriter, Instruction round) {
  const Opcode inner = round.operand(0).opcode();
  static constexpr OpcodeSet kWholeNumbers = {Opcode::kCeil, Opcode::kFloor, Opcode::kRoundNearestAfz,
                                              Opcode::kRoundNearestEven, Opcode::kSign};
  const bool whole = kWholeNumbers.Contains(inner);
  return whole && rewriter.Replace(round, round.operand(0).id());
}

bool IsSplatNonNegative(Instruction i) {
  const auto splat = SplatOf(i);
  const auto value = splat ? splat->AsDouble() : std::nullopt;
  return value && *value >= 0;
}

}  // namespace

bool IsNeutralForAdd(const PatternRewriter& rewriter, const Splat& splat) {
  const bool has_minus_zero = IsFloat(splat.type) || IsComplex(splat.type);
  if (!rewriter.options().Bool("signed-zeros") || !has_minus_zero) return splat.IsZero();
  return splat.IsNegativeZero();
}

bool IsNonNegative(Instruction i) {
  for (int depth = 0; depth < 8 && i.shape().IsArray(); ++depth) {
    const ElementType type = i.shape().element_type();
    const Opcode opcode = i.opcode();
    if (IsUnsigned(type) || type == ElementType::kPred || IsSplatNonNegative(i)) return true;
    if (opcode == Opcode::kIota) {
      // Narrow types wrap around.
      return IsSigned(type) && (BitsOf(type) == 64 ||
                                i.shape().dim(i.int_attr(Attr::kIotaDimension)) <= int64_t{1} << (BitsOf(type) - 1));
    }
    static constexpr OpcodeSet kCounts = {Opcode::kGetDimensionSize, Opcode::kPopulationCount, Opcode::kClz};
    if (kCounts.Contains(opcode)) {
      return true;
    }
    if (opcode == Opcode::kMaximum) {
      return IsInteger(type) && (IsSplatNonNegative(i.operand(0)) || IsSplatNonNegative(i.operand(1)));
    }
    if (opcode == Opcode::kConvert) {
      const ElementType from = i.operand(0).shape().element_type();
      if (from == ElementType::kPred || (IsUnsigned(from) && BitsOf(from) < BitsOf(type))) return true;
      if (!IsSigned(from) || !IsSigned(type) || BitsOf(from) > BitsOf(type)) return false;
    } else if (opcode == Opcode::kClamp) {
      // Between the bounds; an upper bound below the lower one wins.
      return IsInteger(type) && IsSplatNonNegative(i.operand(0)) && IsSplatNonNegative(i.operand(2));
    } else if (!MovesElements(opcode)) {
      return false;
    }
    i = i.operand(0);
  }
  return false;
}

void AddArithmeticRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kAdd}, "additions of zero removed", AddZero);
  rules->Add({Opcode::kSubtract}, "subtractions of zero removed", SubtractZero);
  rules->Add({Opcode::kSubtract, Opcode::kXor}, "differences of a value and itself folded", SubtractSelf);
  rules->Add({Opcode::kMultiply}, "products with one or zero removed", MultiplyIdentity);
  rules->Add({Opcode::kDivide}, "divisions by one removed", DivideByOne);
  rules->Add({Opcode::kRemainder}, "remainders of one folded", RemainderOfOne);
  rules->Add({Opcode::kPower}, "small powers expanded", SmallPower);
  rules->Add({Opcode::kShiftLeft, Opcode::kShiftRightArithmetic, Opcode::kShiftRightLogical}, "shifts by zero removed",
             ShiftByZero);
  rules->Add({Opcode::kMaximum, Opcode::kMinimum}, "extremes without effect removed", ExtremeIdentity);
  rules->Add({Opcode::kMaximum, Opcode::kMinimum}, "clamps formed", ExtremesToClamp);
  rules->Add({Opcode::kClamp}, "bounds of clamps made scalar", ClampScalarBounds);
  rules->Add({Opcode::kNegate}, "double negations removed", NegateTwice);
  rules->Add({Opcode::kAbs}, "double absolute values removed", AbsOfAbs);
  rules->Add({Opcode::kReal, Opcode::kImag}, "parts of complex numbers forwarded", RealOfComplex);
  rules->Add({Opcode::kComplex}, "complex numbers put together again", ComplexOfParts);
  rules->Add({Opcode::kCopy}, "copies removed", CopyOfSameLayout);
  rules->Add({Opcode::kCeil, Opcode::kFloor, Opcode::kRoundNearestAfz, Opcode::kRoundNearestEven},
             "roundings of whole numbers removed", RoundTwice);
}

}  // namespace hlokit
