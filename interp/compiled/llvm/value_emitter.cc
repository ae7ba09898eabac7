// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/llvm/value_emitter.h"

#include "ir/ops/attribute.h"

namespace hlokit::interp::compiled {
namespace {

bool IsWide(ElementType type) { return type == ElementType::kF64; }

}  // namespace

llvm::Type* ValueEmitter::ScalarType(ElementType type) const {
  if (type == ElementType::kPred) return b_.getInt1Ty();
  if (IsFloat(type)) return IsWide(type) ? b_.getDoubleTy() : b_.getFloatTy();
  return b_.getIntNTy(static_cast<unsigned>(BitsOf(type)));
}

llvm::Type* ValueEmitter::StorageType(ElementType type) const {
  if (type == ElementType::kPred) return b_.getInt8Ty();
  if (type == ElementType::kBF16) return b_.getInt16Ty();
  if (type == ElementType::kF16) return b_.getHalfTy();
  if (IsFloat8(type)) return b_.getInt8Ty();
  return ScalarType(type);
}

llvm::Type* ValueEmitter::VectorType(llvm::Type* scalar) const {
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
}

llvm::Constant* ValueEmitter::Splat(ElementType type, double value) const {
  llvm::Type* const vector = VectorType(ScalarType(type));
  if (IsFloat(type)) return llvm::ConstantFP::get(vector, value);
  return llvm::ConstantInt::getSigned(vector, static_cast<int64_t>(value));
}

llvm::Value* ValueEmitter::FromStorage(llvm::Value* stored, ElementType type) {
  if (type == ElementType::kPred) {
    return b_.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
  }
  if (type == ElementType::kBF16) {
    llvm::Value* const wide = b_.CreateZExt(stored, VectorType(b_.getInt32Ty()));
    return b_.CreateBitCast(b_.CreateShl(wide, I(16)), VectorType(b_.getFloatTy()));
  }
  if (type == ElementType::kF16) return b_.CreateFPExt(stored, VectorType(b_.getFloatTy()));
  if (IsFloat8(type)) return FromFloat8(stored, type);
  return stored;
}

llvm::Value* ValueEmitter::ToStorage(llvm::Value* value, ElementType type) {
  if (type == ElementType::kPred) return b_.CreateZExt(value, VectorType(b_.getInt8Ty()));
  if (type == ElementType::kBF16) {
    llvm::Value* const bits = b_.CreateBitCast(value, VectorType(b_.getInt32Ty()));
    return b_.CreateTrunc(b_.CreateLShr(bits, I(16)), VectorType(b_.getInt16Ty()));
  }
  if (type == ElementType::kF16) return b_.CreateFPTrunc(value, VectorType(b_.getHalfTy()));
  if (IsFloat8(type)) return ToFloat8(value, type);
  return value;
}

// To nearest even, with integers: exact, and the same on all processors. Instructions for bf16 flush denormal numbers.
llvm::Value* ValueEmitter::RoundToBf16(llvm::Value* value) {
  llvm::Value* const bits = b_.CreateBitCast(value, VectorType(b_.getInt32Ty()));
  llvm::Value* const last = b_.CreateAnd(b_.CreateLShr(bits, I(16)), I(1));
  llvm::Value* const rounded = b_.CreateAdd(b_.CreateAdd(bits, I(0x7fff)), last);
  llvm::Value* const nan = b_.CreateOr(bits, I(0x00400000));
  llvm::Value* const chosen = b_.CreateSelect(b_.CreateFCmpUNO(value, value), nan, rounded);
  return b_.CreateBitCast(b_.CreateAnd(chosen, I(static_cast<int32_t>(0xffff0000))), value->getType());
}

llvm::Value* ValueEmitter::Round(llvm::Value* value, ElementType type) {
  if (type == ElementType::kBF16) return RoundToBf16(value);
  if (IsFloat8(type)) return RoundToFloat8(value, type);
  if (type == ElementType::kF16) {
    return b_.CreateFPExt(b_.CreateFPTrunc(value, VectorType(b_.getHalfTy())), value->getType());
  }
  return value;
}

llvm::Value* ValueEmitter::Compare(uint32_t direction, ElementType type, llvm::Value* a, llvm::Value* b) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P kOfFloats[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OGE, P::FCMP_OGT, P::FCMP_OLE, P::FCMP_OLT};
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SGE, P::ICMP_SGT, P::ICMP_SLE, P::ICMP_SLT};
  static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_UGE, P::ICMP_UGT, P::ICMP_ULE, P::ICMP_ULT};
  if (IsFloat(type)) return b_.CreateFCmp(kOfFloats[direction], a, b);
  return b_.CreateICmp(IsSigned(type) ? kSigned[direction] : kUnsigned[direction], a, b);
}

llvm::Value* ValueEmitter::Combine(LoopOp op, ElementType type, llvm::Value* a, llvm::Value* b) {
  const bool floats = IsFloat(type);
  if (op == LoopOp::kAdd) return floats ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
  if (op == LoopOp::kSubtract) return floats ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
  if (op == LoopOp::kMultiply) {
    return floats ? b_.CreateFMul(a, b) : type == ElementType::kPred ? b_.CreateAnd(a, b) : b_.CreateMul(a, b);
  }
  if (op == LoopOp::kDivide) return floats ? b_.CreateFDiv(a, b) : nullptr;
  if (op == LoopOp::kAnd) return b_.CreateAnd(a, b);
  if (op == LoopOp::kOr) return b_.CreateOr(a, b);
  if (op == LoopOp::kXor) return b_.CreateXor(a, b);
  if (op != LoopOp::kMaximum && op != LoopOp::kMinimum) return nullptr;
  const bool is_maximum = op == LoopOp::kMaximum;
  if (!floats) {
    const ComparisonDirection first = is_maximum ? ComparisonDirection::kGe : ComparisonDirection::kLe;
    return b_.CreateSelect(Compare(static_cast<uint32_t>(first), type, a, b), a, b);
  }
  // A NaN in b is put in.
  return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, CombineNumbers(op, a, b));
}

llvm::Value* ValueEmitter::CombineNumbers(LoopOp op, llvm::Value* a, llvm::Value* b) {
  // One instruction, which gives `a` if it equals b or one is NaN.
  llvm::Value* const second = op == LoopOp::kMaximum ? b_.CreateFCmpOGT(b, a) : b_.CreateFCmpOLT(b, a);
  return b_.CreateSelect(second, b, a);
}

// Shifts by the width or more give 0, or copies of the sign.
llvm::Value* ValueEmitter::Shift(LoopOp op, llvm::Value* a, llvm::Value* by) {
  llvm::Type* const type = a->getType();
  const uint64_t width = type->getScalarSizeInBits();
  llvm::Value* const fits = b_.CreateICmpULT(by, llvm::ConstantInt::get(type, width));
  llvm::Value* const last = llvm::ConstantInt::get(type, width - 1);
  llvm::Value* const bounded = b_.CreateSelect(fits, by, last);
  if (op == LoopOp::kShiftRightArithmetic) return b_.CreateAShr(a, bounded);
  llvm::Value* const shifted = op == LoopOp::kShiftLeft ? b_.CreateShl(a, bounded) : b_.CreateLShr(a, bounded);
  return b_.CreateSelect(fits, shifted, llvm::Constant::getNullValue(type));
}

llvm::Value* ValueEmitter::ConvertValue(llvm::Value* value, ElementType from, ElementType to) {
  if (from == to) return value;
  llvm::Type* const type = VectorType(ScalarType(to));
  if (IsFloat(from)) {
    if (to == ElementType::kPred) return b_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
    if (IsInteger(to)) {
      const auto id = IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
      return b_.CreateIntrinsic(id, {type, value->getType()}, {value});
    }
    if (IsWide(from) && IsWide(to)) return value;
    if (IsWide(to)) return b_.CreateFPExt(value, type);
    if (IsWide(from)) return BitsOf(to) == 32 ? b_.CreateFPTrunc(value, type) : nullptr;
    return BitsOf(to) < 32 && BitsOf(to) <= BitsOf(from) ? Round(value, to) : value;
  }
  const bool is_signed = IsSigned(from);
  if (IsFloat(to)) {
    // Narrower results would be rounded twice, except of integers that f32 represents.
    if (BitsOf(to) < 32 && BitsOf(from) > 16) return nullptr;
    llvm::Value* const number = is_signed ? b_.CreateSIToFP(value, type) : b_.CreateUIToFP(value, type);
    return Round(number, to);
  }
  if (to == ElementType::kPred) return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  return is_signed ? b_.CreateSExtOrTrunc(value, type) : b_.CreateZExtOrTrunc(value, type);
}

llvm::Value* ValueEmitter::Emit(const LoopNode& node, llvm::Value* const* x, const ElementType* types) {
  const ElementType type = node.operand_count > 0 ? types[0] : node.type;
  const bool floats = IsFloat(type);
  const bool functions = floats && !IsWide(type);
  llvm::Value* v = nullptr;
  switch (node.op) {
    case LoopOp::kInput:
    case LoopOp::kCall:
    case LoopOp::kReduce:
      return nullptr;
    case LoopOp::kCopy:
      return x[0];
    case LoopOp::kAdd:
    case LoopOp::kSubtract:
    case LoopOp::kMultiply:
    case LoopOp::kDivide:
    case LoopOp::kMaximum:
    case LoopOp::kMinimum:
    case LoopOp::kAnd:
    case LoopOp::kOr:
    case LoopOp::kXor:
      v = Combine(node.op, type, x[0], x[1]);
      break;
    case LoopOp::kMultiplyAdd:
      v = Fma(x[0], x[1], x[2]);
      break;
    case LoopOp::kNot:
      return b_.CreateNot(x[0]);
    case LoopOp::kNegate:
      return floats ? WithoutMinusZero(b_.CreateFNeg(x[0]), type) : b_.CreateNeg(x[0]);
    case LoopOp::kAbs:
      return floats ? Unary(llvm::Intrinsic::fabs, x[0]) : nullptr;
    case LoopOp::kSign: {
      if (!floats) return nullptr;
      llvm::Value* const zero = llvm::Constant::getNullValue(x[0]->getType());
      v = b_.CreateSelect(b_.CreateFCmpOLT(x[0], zero), Splat(type, -1), x[0]);
      return b_.CreateSelect(b_.CreateFCmpOGT(x[0], zero), Splat(type, 1), v);
    }
    case LoopOp::kSqrt:
      v = floats ? Unary(llvm::Intrinsic::sqrt, x[0]) : nullptr;
      break;
    case LoopOp::kRsqrt: {
      // In double, so that f32 results are rounded once.
      if (!floats) return nullptr;
      llvm::Type* const wide = VectorType(b_.getDoubleTy());
      llvm::Value* const root = Unary(llvm::Intrinsic::sqrt, IsWide(type) ? x[0] : b_.CreateFPExt(x[0], wide));
      v = b_.CreateFDiv(llvm::ConstantFP::get(wide, 1.0), root);
      if (!IsWide(type)) v = b_.CreateFPTrunc(v, x[0]->getType());
      break;
    }
    case LoopOp::kFloor:
      return floats ? WithoutMinusZero(Unary(llvm::Intrinsic::floor, x[0]), type) : nullptr;
    case LoopOp::kCeil:
      return floats ? WithoutMinusZero(Unary(llvm::Intrinsic::ceil, x[0]), type) : nullptr;
    case LoopOp::kRoundNearestEven:
      return floats ? WithoutMinusZero(Unary(llvm::Intrinsic::nearbyint, x[0]), type) : nullptr;
    case LoopOp::kIsFinite:
      return b_.CreateFCmpOLT(Unary(llvm::Intrinsic::fabs, x[0]), llvm::ConstantFP::getInfinity(x[0]->getType()));
    case LoopOp::kSelect:
      return b_.CreateSelect(x[0], x[1], x[2]);
    case LoopOp::kClamp:
      v = Combine(LoopOp::kMaximum, type, x[0], x[1]);
      return Combine(LoopOp::kMinimum, type, v, x[2]);
    case LoopOp::kCompare:
      return Compare(node.param, type, x[0], x[1]);
    case LoopOp::kConvert:
      return ConvertValue(x[0], type, node.type);
    case LoopOp::kBitcastConvert:
      if (BitsOf(type) != BitsOf(node.type) || BitsOf(type) < 32) return nullptr;
      return b_.CreateBitCast(x[0], VectorType(ScalarType(node.type)));
    case LoopOp::kShiftLeft:
    case LoopOp::kShiftRightArithmetic:
    case LoopOp::kShiftRightLogical:
      return Shift(node.op, x[0], x[1]);
    case LoopOp::kExp:
      v = functions ? Exp(x[0]) : nullptr;
      break;
    case LoopOp::kLog:
      v = functions ? Log(x[0]) : nullptr;
      break;
    case LoopOp::kTanh:
      v = functions ? Tanh(x[0]) : nullptr;
      break;
    case LoopOp::kLogistic:
      v = functions ? Logistic(x[0]) : nullptr;
      break;
    case LoopOp::kExpm1:
      v = functions ? Expm1(x[0]) : nullptr;
      break;
    case LoopOp::kLog1p:
      v = functions ? Log1p(x[0]) : nullptr;
      break;
    case LoopOp::kErf:
      v = functions ? Erf(x[0]) : nullptr;
      break;
  }
  return v == nullptr ? nullptr : Round(v, node.type);
}

}  // namespace hlokit::interp::compiled
