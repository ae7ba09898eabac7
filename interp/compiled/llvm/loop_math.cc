// SPDX-License-Identifier: Apache-2.0
// Functions of f32 as polynomials. The coefficients of exp, log and erf are Norbert Juffa's minimax approximations
// (published in answers at stackoverflow.com and forums.developer.nvidia.com), that of tanh near 0 is of the Cephes
// library. docs/engine.md has the greatest errors that the tests find.
//
// With a fused multiply-add where the processor has one, and multiplication and addition elsewhere.
#include <functional>
#include <initializer_list>
#include <limits>

#include "interp/compiled/llvm/value_emitter.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace hlokit::interp::compiled {

llvm::Value* ValueEmitter::F(double value) const { return llvm::ConstantFP::get(VectorType(b_.getFloatTy()), value); }
llvm::Value* ValueEmitter::I(int32_t value) const {
  return llvm::ConstantInt::getSigned(VectorType(b_.getInt32Ty()), value);
}

llvm::Value* ValueEmitter::Fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  if (set_ == InstructionSet::kSse4) return b_.CreateFAdd(b_.CreateFMul(a, b), c);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

// Highest power first.
llvm::Value* ValueEmitter::Polynomial(llvm::Value* x, std::initializer_list<double> coefficients) {
  llvm::Value* sum = nullptr;
  for (double c : coefficients) sum = sum == nullptr ? F(c) : Fma(sum, x, F(c));
  return sum;
}

ValueEmitter::Exponent ValueEmitter::ReduceExponent(llvm::Value* x) {
  constexpr double kShift = 0x1.8p23;
  llvm::Value* const shifted = Fma(x, F(0x1.715476p+0), F(kShift));
  llvm::Value* const n = b_.CreateFSub(shifted, F(kShift));
  llvm::Value* const r = Fma(n, F(-0x1.62e400p-1), x);
  return {shifted, n, Fma(n, F(-0x1.7f7d1cp-20), r)};
}

llvm::Value* ValueEmitter::ExpMinusOneNearZero(llvm::Value* r) {
  // Short chains of operations.
  llvm::Value* const s = b_.CreateFMul(r, r);
  llvm::Value* p = Polynomial(r, {0x1.125edcp-7, 0x1.555b5ap-5});
  p = Fma(F(0x1.694000p-10), s, p);
  p = Fma(p, s, Polynomial(r, {0x1.555450p-3, 0x1.fffff6p-2}));
  return Fma(p, s, r);
}

llvm::Value* ValueEmitter::Exp(llvm::Value* x) {
  const bool scales = set_ == InstructionSet::kAvx512 && lanes_ % 16 == 0;
  if (!scales) {
    // Beyond these the result is infinity or zero; NaN is kept.
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, F(89.0)), F(89.0), x);
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, F(-104.5)), F(-104.5), x);
  }
  auto [shifted, n, r] = ReduceExponent(x);
  if (scales) {
    // The nearer to zero of r and 0.5, and 0.5 in place of NaN. It matters beyond the limits above, where any r near
    // zero gives infinity or zero, and for NaN, which n keeps.
    r = InVectors(r, r, [&](llvm::Value* part, llvm::Value*) {
      constexpr int kNearerToZero = 2, kCurrentRounding = 4;
      return b_.CreateIntrinsic(
          llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
          {part, llvm::ConstantFP::get(part->getType(), 0.5), b_.getInt32(kNearerToZero),
           llvm::Constant::getNullValue(part->getType()), b_.getInt16(0xffff), b_.getInt32(kCurrentRounding)});
    });
  }
  llvm::Value* const p = b_.CreateFAdd(ExpMinusOneNearZero(r), F(1));
  if (scales) {
    // p * 2^n, rounded once: the bits of the products below.
    return InVectors(p, n, [&](llvm::Value* part, llvm::Value* power) {
      constexpr int kCurrentRounding = 4;
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                {part, power, llvm::Constant::getNullValue(part->getType()), b_.getInt16(0xffff),
                                 b_.getInt32(kCurrentRounding)});
    });
  }
  // 2^n in two factors, so that results may be denormal.
  llvm::Type* const ints = VectorType(b_.getInt32Ty());
  llvm::Value* const exponent = b_.CreateSub(b_.CreateBitCast(shifted, ints), I(0x4b400000));
  llvm::Value* const half = b_.CreateAShr(exponent, I(1));
  const auto power = [&](llvm::Value* e) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(e, I(127)), I(23)), p->getType());
  };
  return b_.CreateFMul(b_.CreateFMul(p, power(half)), power(b_.CreateSub(exponent, half)));
}

llvm::Value* ValueEmitter::InVectors(llvm::Value* a, llvm::Value* b,
                                     const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& emit) {
  constexpr int kLanes = 16;
  if (lanes_ == kLanes) return emit(a, b);
  llvm::Type* const vector = llvm::FixedVectorType::get(b_.getFloatTy(), kLanes);
  llvm::Value* all = llvm::PoisonValue::get(a->getType());
  for (int lane = 0; lane < lanes_; lane += kLanes) {
    llvm::Value* const at = b_.getInt64(static_cast<uint64_t>(lane));
    llvm::Value* const part = emit(b_.CreateExtractVector(vector, a, at), b_.CreateExtractVector(vector, b, at));
    all = b_.CreateInsertVector(a->getType(), all, part, at);
  }
  return all;
}

llvm::Value* ValueEmitter::Log(llvm::Value* x) {
  llvm::Type* const ints = VectorType(b_.getInt32Ty());
  // Denormal numbers are scaled.
  llvm::Value* const small = b_.CreateFCmpOLT(x, F(0x1p-126));
  llvm::Value* const a = b_.CreateSelect(small, b_.CreateFMul(x, F(0x1p23)), x);
  // a = 2^e (1 + m) with 1 + m in [2/3, 4/3)
  llvm::Value* const bits = b_.CreateBitCast(a, ints);
  llvm::Value* const e = b_.CreateAnd(b_.CreateSub(bits, I(0x3f2aaaab)), I(static_cast<int32_t>(0xff800000)));
  llvm::Value* const m = b_.CreateFSub(b_.CreateBitCast(b_.CreateSub(bits, e), a->getType()), F(1));
  llvm::Value* const i = Fma(b_.CreateSIToFP(e, a->getType()), F(0x1p-23), b_.CreateSelect(small, F(-23), F(0)));
  llvm::Value* const s = b_.CreateFMul(m, m);
  llvm::Value* r = Polynomial(s, {-0x1.0ae000p-3, -0x1.f19968p-4, -0x1.55b362p-3, -0x1.fffe02p-3});
  llvm::Value* const t = Polynomial(s, {0x1.208000p-3, 0x1.1e5740p-3, 0x1.99d8b2p-3});
  r = Fma(t, m, r);
  r = Fma(r, m, F(0x1.5554fap-2));
  r = Fma(r, m, F(-0.5));
  r = Fma(r, s, m);
  r = Fma(i, F(0x1.62e430p-1), r);
  // Infinity and NaN are kept; zero and negative numbers.
  llvm::Value* const infinity = llvm::ConstantFP::getInfinity(x->getType());
  r = b_.CreateSelect(b_.CreateFCmpULT(x, infinity), r, x);
  r = b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, r);
  r = b_.CreateSelect(b_.CreateFCmpOLT(x, F(0)), llvm::ConstantFP::getNaN(x->getType()), r);
  return b_.CreateSelect(b_.CreateFCmpOEQ(x, F(0)), llvm::ConstantFP::getInfinity(x->getType(), true), r);
}

llvm::Value* ValueEmitter::Expm1(llvm::Value* x) {
  llvm::Type* const ints = VectorType(b_.getInt32Ty());
  // Beyond these the result is infinity or -1; NaN is kept.
  llvm::Value* y = b_.CreateSelect(b_.CreateFCmpOGT(x, F(89.0)), F(89.0), x);
  y = b_.CreateSelect(b_.CreateFCmpOLT(y, F(-30.0)), F(-30.0), y);
  // As Exp, with e^r - 1 for e^r: 2 (2^(n - 1) (e^r - 1) + 2^(n - 1) - 1/2), where n = 128 has a power too.
  const auto [shifted, n, r] = ReduceExponent(y);
  llvm::Value* const p = ExpMinusOneNearZero(r);
  llvm::Value* const exponent = b_.CreateSub(b_.CreateBitCast(shifted, ints), I(0x4b400000 - 126));
  llvm::Value* const half = b_.CreateBitCast(b_.CreateShl(exponent, I(23)), x->getType());
  llvm::Value* const sum = Fma(p, half, b_.CreateFSub(half, F(0.5)));
  llvm::Value* const result = b_.CreateFAdd(sum, sum);
  return b_.CreateSelect(b_.CreateFCmpOLT(Unary(llvm::Intrinsic::fabs, x), F(0x1p-24)), x, result);
}

llvm::Value* ValueEmitter::Log1p(llvm::Value* x) {
  // log(1 + x) = log(u) + what u = 1 + x lost in rounding, divided by u.
  llvm::Value* const u = b_.CreateFAdd(x, F(1));
  llvm::Value* const is_large = b_.CreateFCmpOGT(x, F(1));
  llvm::Value* const larger = b_.CreateSelect(is_large, x, F(1));
  llvm::Value* const smaller = b_.CreateSelect(is_large, F(1), x);
  llvm::Value* const lost = b_.CreateFSub(smaller, b_.CreateFSub(u, larger));
  const auto is = [&](double value) { return b_.CreateFCmpOEQ(u, F(value)); };
  llvm::Value* const exact = b_.CreateOr(is(0), is(std::numeric_limits<double>::infinity()));
  llvm::Value* const more = b_.CreateSelect(exact, F(0), b_.CreateFDiv(lost, u));
  llvm::Value* const result = b_.CreateFAdd(Log(u), more);
  return b_.CreateSelect(b_.CreateFCmpOLT(Unary(llvm::Intrinsic::fabs, x), F(0x1p-24)), x, result);
}

llvm::Value* ValueEmitter::Tanh(llvm::Value* x) {
  llvm::Value* const t = Unary(llvm::Intrinsic::fabs, x);
  llvm::Value* const z = b_.CreateFMul(x, x);
  llvm::Value* const p =
      Polynomial(z, {-5.70498872745E-3, 2.06390887954E-2, -5.37397155531E-2, 1.33314422036E-1, -3.33332819422E-1});
  llvm::Value* const near = Fma(b_.CreateFMul(p, z), x, x);
  llvm::Value* const e = Exp(b_.CreateFAdd(t, t));
  llvm::Value* far = b_.CreateFSub(F(1), b_.CreateFDiv(F(2), b_.CreateFAdd(e, F(1))));
  far = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(t, F(0.625)), near, far);
}

llvm::Value* ValueEmitter::Logistic(llvm::Value* x) {
  llvm::Value* const e = Exp(b_.CreateFNeg(Unary(llvm::Intrinsic::fabs, x)));
  llvm::Value* const negative = b_.CreateFCmpOLT(x, F(0));
  llvm::Value* const sum = b_.CreateFAdd(e, F(1));
  llvm::Value* const r = b_.CreateFDiv(b_.CreateSelect(negative, e, F(1)), sum);
  // Corrected for what the sum lost in rounding: 1 + e = sum + lost, and r (1 - lost / sum) is nearer.
  llvm::Value* const lost = b_.CreateFSub(e, b_.CreateFSub(sum, F(1)));
  llvm::Value* const inverse = b_.CreateSelect(negative, b_.CreateFSub(F(1), r), r);
  return Fma(b_.CreateFNeg(b_.CreateFMul(r, lost)), inverse, r);
}

llvm::Value* ValueEmitter::Erf(llvm::Value* x) {
  llvm::Value* const t = Unary(llvm::Intrinsic::fabs, x);
  llvm::Value* const s = b_.CreateFMul(x, x);
  // 1 - e^r beyond 475/512
  llvm::Value* r = Fma(F(-0x1.220000p-16), t, F(0x1.91cfb2p-12));
  llvm::Value* const u = Fma(F(-0x1.fd1438p-9), t, F(0x1.8d6342p-6));
  r = Fma(r, s, u);
  r = Fma(r, t, F(-0x1.b55cb8p-4));
  r = Fma(r, s, Polynomial(t, {-0x1.450aa0p-1, -0x1.079d0cp-3}));
  r = Fma(r, t, b_.CreateFNeg(t));
  // The polynomial overflows to NaN at infinity; e^r is zero from 5 on.
  r = b_.CreateSelect(b_.CreateFCmpOGT(t, F(5)), F(-30), r);
  llvm::Value* far = b_.CreateFSub(F(1), Exp(r));
  far = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  llvm::Value* near =
      Polynomial(s, {-0x1.38e000p-11, 0x1.471a58p-8, -0x1.b691b2p-6, 0x1.ce1c44p-4, -0x1.812700p-2, 0x1.06eba8p-3});
  near = Fma(near, x, x);
  return b_.CreateSelect(b_.CreateFCmpOGT(t, F(475.0 / 512)), far, near);
}

}  // namespace hlokit::interp::compiled
