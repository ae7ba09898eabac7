// SPDX-License-Identifier: Apache-2.0
// Conversions.
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Returns true if conversion from `from` to `to` and back yields the same value. NaNs may lose their payload.
bool IsLossless(ElementType from, ElementType to) {
  if (from == to) return true;
  if (from == ElementType::kPred) return IsInteger(to) || IsFloat(to);
  const auto standard = [](ElementType t) {
    return t == ElementType::kBF16 || t == ElementType::kF16 || t == ElementType::kF32 || t == ElementType::kF64;
  };
  if (IsFloat(from) && IsFloat(to)) {
    if (!standard(to)) return false;
    if (standard(from)) return BitsOf(from) < BitsOf(to);
    // The range and precision of f32 cover all types of at most eight bits.
    return BitsOf(to) >= 32 && BitsOf(from) <= 8;
  }
  if (IsSigned(from) && IsSigned(to)) return BitsOf(from) < BitsOf(to);
  if (IsUnsigned(from) && IsUnsigned(to)) return BitsOf(from) < BitsOf(to);
  if (IsUnsigned(from) && IsSigned(to)) return BitsOf(from) < BitsOf(to);
  if (IsComplex(from) && IsComplex(to)) return BitsOf(from) < BitsOf(to);
  return false;
}

bool ConvertToSame(PatternRewriter& rewriter, Instruction convert) {
  return rewriter.Replace(convert, convert.operand(0).id());
}

// Removes a conversion to a type and back, or via a wider type that loses nothing.
bool ConvertOfConvert(PatternRewriter& rewriter, Instruction convert) {
  const Instruction inner = convert.operand(0);
  if (inner.opcode() != Opcode::kConvert) return false;
  const ElementType a = inner.operand(0).shape().element_type(), b = inner.shape().element_type(),
                    c = convert.shape().element_type();
  if (!IsLossless(a, b)) return false;
  if (a == c) return rewriter.Replace(convert, inner.operand(0).id(), {inner});
  // One conversion equals two if the first one loses nothing. From integers via floats, and from pred, the kinds must
  // agree.
  const bool one_kind = (IsFloat(a) && IsFloat(b)) || (IsInteger(a) && IsInteger(b)) || a == ElementType::kPred;
  return one_kind && rewriter.ReplaceWithNew(convert, Opcode::kConvert, {inner.operand(0).id()}, {}, {inner});
}

bool BitcastConvertOfSame(PatternRewriter& rewriter, Instruction i) {
  const Instruction inner = i.operand(0);
  if (inner.shape() == i.shape()) return rewriter.Replace(i, inner.id());
  if (inner.opcode() != Opcode::kBitcastConvert) return false;
  const Instruction source = inner.operand(0);
  if (source.shape() == i.shape()) return rewriter.Replace(i, source.id(), {inner});
  if (BitsOf(source.shape().element_type()) != BitsOf(inner.shape().element_type()) ||
      BitsOf(inner.shape().element_type()) != BitsOf(i.shape().element_type())) {
    return false;
  }
  return rewriter.ReplaceWithNew(i, Opcode::kBitcastConvert, {source.id()}, {}, {inner});
}

// Removes a reduce-precision to at least the precision of the type.
bool ReducePrecisionToOwn(PatternRewriter& rewriter, Instruction i) {
  int exponent = 0, mantissa = 0;
  const ElementType type = i.shape().element_type();
  if (type == ElementType::kBF16) {
    exponent = 8, mantissa = 7;
  } else if (type == ElementType::kF16) {
    exponent = 5, mantissa = 10;
  } else if (type == ElementType::kF32) {
    exponent = 8, mantissa = 23;
  } else if (type == ElementType::kF64) {
    exponent = 11, mantissa = 52;
  } else {
    return false;
  }
  return i.int_attr(Attr::kExponentBits) >= exponent && i.int_attr(Attr::kMantissaBits) >= mantissa &&
         rewriter.Replace(i, i.operand(0).id());
}

}  // namespace

void AddConvertRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kConvert}, "conversions to the same type removed", ConvertToSame);
  rules->Add({Opcode::kConvert}, "conversions of conversions merged", ConvertOfConvert);
  rules->Add({Opcode::kBitcastConvert}, "bitcast-conversions merged", BitcastConvertOfSame);
  rules->Add({Opcode::kReducePrecision}, "precision reductions without effect removed", ReducePrecisionToOwn);
}

}  // namespace hlokit
