// SPDX-License-Identifier: Apache-2.0
// Floats of eight bits with a sign: conversions between their codes and f32, by arithmetic on the bits of f32. Values
// in between are f32 numbers that the type represents.
#include <cmath>

#include "interp/compiled/llvm/value_emitter.h"
#include "ir/types/float_types.h"

namespace hlokit::interp::compiled {
namespace {

struct Float8Format {
  int mantissa = 0;      // bits
  float min_normal = 0;  // 2^(1 - bias)
  float max_finite = 0;
  bool has_infinity = false;   // else overflow is NaN
  bool has_minus_zero = true;  // else its code is NaN

  // Exponent of 2 of the smallest normal number.
  int min_exponent() const { return std::ilogb(min_normal); }
  // Exponent of 2 of the smallest number.
  int step_exponent() const { return min_exponent() - mantissa; }
};

Float8Format FormatOf(ElementType type) {
  Float8Format format;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (requires { T::kMaxFinite; }) {
      // Constants, since this module has no tables of the types.
      constexpr float kMinNormal = static_cast<float>(T::FromBits(1 << T::kMantissa));
      constexpr float kMaxFinite = static_cast<float>(T::FromBits(T::kMaxFinite));
      format.mantissa = T::kMantissa;
      format.min_normal = kMinNormal;
      format.max_finite = kMaxFinite;
      format.has_infinity = T::kInfinity != T::kNan;
      format.has_minus_zero = T::kNan != T::kSign;
    }
  });
  return format;
}

}  // namespace

llvm::Value* ValueEmitter::FromFloat8(llvm::Value* stored, ElementType type) {
  const Float8Format format = FormatOf(type);
  llvm::Type* const floats = VectorType(b_.getFloatTy());
  llvm::Value* const code = b_.CreateZExt(stored, VectorType(b_.getInt32Ty()));
  llvm::Value* const magnitude = b_.CreateAnd(code, I(0x7f));
  llvm::Value* const shifted = b_.CreateShl(magnitude, I(23 - format.mantissa));
  // The exponent of code 1 is that of the smallest normal number.
  llvm::Value* bits = b_.CreateAdd(shifted, I((format.min_exponent() + 126) << 23));
  if (format.has_infinity) {
    const int32_t infinity = ((1 << (7 - format.mantissa)) - 1) << format.mantissa;
    bits = b_.CreateSelect(b_.CreateICmpUGE(magnitude, I(infinity)), b_.CreateOr(shifted, I(0x7f800000)), bits);
  } else if (format.has_minus_zero) {
    bits = b_.CreateSelect(b_.CreateICmpEQ(magnitude, I(0x7f)), I(0x7fc00000), bits);
  }
  llvm::Value* const small =
      b_.CreateFMul(b_.CreateSIToFP(magnitude, floats), F(std::ldexp(1.0, format.step_exponent())));
  llvm::Value* const is_small = b_.CreateICmpULT(magnitude, I(1 << format.mantissa));
  bits = b_.CreateSelect(is_small, b_.CreateBitCast(small, code->getType()), bits);
  bits = b_.CreateOr(bits, b_.CreateShl(b_.CreateAnd(code, I(0x80)), I(24)));
  if (!format.has_minus_zero) bits = b_.CreateSelect(b_.CreateICmpEQ(code, I(0x80)), I(0x7fc00000), bits);
  return b_.CreateBitCast(bits, floats);
}

llvm::Value* ValueEmitter::ToFloat8(llvm::Value* value, ElementType type) {
  const Float8Format format = FormatOf(type);
  llvm::Type* const ints = VectorType(b_.getInt32Ty());
  llvm::Value* const bits = b_.CreateBitCast(value, ints);
  llvm::Value* const magnitude = b_.CreateAnd(bits, I(0x7fffffff));
  llvm::Value* const normal =
      b_.CreateLShr(b_.CreateSub(magnitude, I((format.min_exponent() + 126) << 23)), I(23 - format.mantissa));
  llvm::Value* const is_small = b_.CreateICmpULT(magnitude, I((format.min_exponent() + 127) << 23));
  // Numbers of the smallest one. Others are not converted: they may not fit an integer.
  llvm::Value* const number = b_.CreateSelect(is_small, b_.CreateBitCast(magnitude, value->getType()), F(0));
  llvm::Value* const steps = b_.CreateFPToSI(b_.CreateFMul(number, F(std::ldexp(1.0, -format.step_exponent()))), ints);
  llvm::Value* code = b_.CreateSelect(is_small, steps, normal);
  llvm::Value* const sign = b_.CreateAnd(b_.CreateLShr(bits, I(24)), I(0x80));
  llvm::Value* const is_nan = b_.CreateICmpUGT(magnitude, I(0x7f800000));
  if (format.has_infinity) {
    const int32_t infinity = ((1 << (7 - format.mantissa)) - 1) << format.mantissa;
    code = b_.CreateSelect(b_.CreateICmpEQ(magnitude, I(0x7f800000)), I(infinity), code);
  }
  if (format.has_minus_zero) {
    code = b_.CreateOr(b_.CreateSelect(is_nan, I(0x7f), code), sign);
  } else {
    code = b_.CreateOr(code, b_.CreateSelect(b_.CreateICmpEQ(magnitude, I(0)), I(0), sign));
    code = b_.CreateSelect(is_nan, I(0x80), code);
  }
  return b_.CreateTrunc(code, VectorType(b_.getInt8Ty()));
}

llvm::Value* ValueEmitter::RoundToFloat8(llvm::Value* value, ElementType type) {
  const Float8Format format = FormatOf(type);
  llvm::Type* const ints = VectorType(b_.getInt32Ty());
  llvm::Value* const magnitude = Unary(llvm::Intrinsic::fabs, value);
  // Everything that overflows, and NaN.
  const double beyond = std::ldexp(1.0, std::ilogb(format.max_finite) + 1);
  llvm::Value* const bounded = b_.CreateSelect(b_.CreateFCmpOLT(magnitude, F(beyond)), magnitude, F(beyond));
  // The sum with 2^(exponent + 23 - mantissa) has no bits beyond the mantissa: it is rounded to nearest even.
  llvm::Value* const exponent = b_.CreateAnd(b_.CreateBitCast(bounded, ints), I(0x7f800000));
  llvm::Value* const least = I((format.min_exponent() + 127) << 23);
  llvm::Value* const kept = b_.CreateSelect(b_.CreateICmpUGT(exponent, least), exponent, least);
  llvm::Value* const shift = b_.CreateBitCast(b_.CreateAdd(kept, I((23 - format.mantissa) << 23)), value->getType());
  llvm::Value* rounded = b_.CreateFSub(b_.CreateFAdd(bounded, shift), shift);
  llvm::Value* const special = format.has_infinity ? llvm::ConstantFP::getInfinity(value->getType())
                                                   : llvm::ConstantFP::getNaN(value->getType());
  rounded = b_.CreateSelect(b_.CreateFCmpOGT(rounded, F(format.max_finite)), special, rounded);
  rounded = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rounded, value);
  if (format.has_infinity) rounded = b_.CreateSelect(b_.CreateFCmpUNO(value, value), value, rounded);
  return WithoutMinusZero(rounded, type);
}

llvm::Value* ValueEmitter::WithoutMinusZero(llvm::Value* value, ElementType type) {
  if (!IsFloat8(type) || FormatOf(type).has_minus_zero) return value;
  return b_.CreateFAdd(value, F(0));
}

}  // namespace hlokit::interp::compiled
