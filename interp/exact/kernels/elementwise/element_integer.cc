// SPDX-License-Identifier: Apache-2.0
// Integer and pred arithmetic: two's complement, with XLA's definition for every operand.
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/program/element_op.h"

namespace hlokit::interp {
namespace {

using arithmetic::Add;
using arithmetic::And;
using arithmetic::Maximum;
using arithmetic::Minimum;
using arithmetic::Multiply;
using arithmetic::Negate;
using arithmetic::Or;
using arithmetic::Subtract;
using arithmetic::Wrapping;
using arithmetic::Xor;

struct Divide {
  template <typename T>
  static T Apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);  // all bits set, for unsigned T too
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Subtract::Apply(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <typename T>
  static T Apply(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Power {
  template <typename T>
  static T Apply(T base, T exponent) {
    if constexpr (std::is_signed_v<T>) {
      // Integer part of base^exponent, a fraction unless |base| is 1.
      if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    Wrapping<T> result = 1;
    Wrapping<T> factor = static_cast<Wrapping<T>>(base);
    for (auto e = static_cast<std::make_unsigned_t<T>>(exponent); e != 0; e = static_cast<decltype(e)>(e >> 1)) {
      if (e & 1) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
};
struct Not {
  template <typename T>
  static T Apply(T a) {
    return static_cast<T>(~a);
  }
};
struct PredNot {
  static uint8_t Apply(uint8_t a) { return a == 0; }
};
struct PredAdd {
  static uint8_t Apply(uint8_t a, uint8_t b) { return a | b; }
};
struct PredSubtract {
  static uint8_t Apply(uint8_t a, uint8_t b) { return a ^ b; }
};
struct Abs {
  template <typename T>
  static T Apply(T a) {
    if constexpr (std::is_signed_v<T>) return a < 0 ? Subtract::Apply(T{0}, a) : a;
    return a;
  }
};
struct Sign {
  template <typename T>
  static T Apply(T a) {
    return static_cast<T>((a > 0) - (a < 0));
  }
};
template <typename T>
bool InWidth(T shift) {
  return static_cast<std::make_unsigned_t<T>>(shift) < 8 * sizeof(T);
}
struct ShiftLeft {
  template <typename T>
  static T Apply(T a, T b) {
    return InWidth(b) ? static_cast<T>(static_cast<Wrapping<T>>(a) << b) : T{0};
  }
};

// These functions depend on bits above the value, so on the width of types narrower than their storage; param is the
// width.
template <typename T>
std::make_unsigned_t<T> WidthMask(int64_t width) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(std::numeric_limits<U>::max() >> (8 * sizeof(T) - static_cast<size_t>(width)));
}
template <typename T>
void ShiftRightLogicalLoop(void* out, const void* a, const void* b, const void*, int64_t n, int64_t width) {
  using U = std::make_unsigned_t<T>;
  U* r = static_cast<U*>(out);
  const U* x = static_cast<const U*>(a);
  const U* y = static_cast<const U*>(b);
  const U mask = WidthMask<T>(width);
  ForEachElement(n, [=](int64_t i) { r[i] = InWidth(y[i]) ? static_cast<U>((x[i] & mask) >> y[i]) : U{0}; });
}
template <typename T>
void ShiftRightArithmeticLoop(void* out, const void* a, const void* b, const void*, int64_t n, int64_t width) {
  using Signed = std::make_signed_t<T>;
  Signed* r = static_cast<Signed*>(out);
  const Signed* x = static_cast<const Signed*>(a);
  const T* y = static_cast<const T*>(b);
  // The sign of an unsigned value narrower than its storage is its top bit.
  const int unused = 8 * static_cast<int>(sizeof(T)) - static_cast<int>(width);
  ForEachElement(n, [=](int64_t i) {
    const Signed s = static_cast<Signed>(static_cast<Signed>(static_cast<Wrapping<T>>(x[i]) << unused) >> unused);
    r[i] = static_cast<Signed>(InWidth(y[i]) ? s >> y[i] : s < 0 ? -1 : 0);
  });
}
template <typename T>
void MulhiLoop(void* out, const void* a, const void* b, const void*, int64_t n, int64_t width) {
  using Wide = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  T* r = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  ForEachElement(
      n, [=](int64_t i) { r[i] = static_cast<T>((static_cast<Wide>(x[i]) * static_cast<Wide>(y[i])) >> width); });
}
template <typename T>
void CountLeadingZerosLoop(void* out, const void* a, const void*, const void*, int64_t n, int64_t width) {
  using U = std::make_unsigned_t<T>;
  U* r = static_cast<U*>(out);
  const U* x = static_cast<const U*>(a);
  const U mask = WidthMask<T>(width);
  const int unused = 8 * static_cast<int>(sizeof(T)) - static_cast<int>(width);
  ForEachElement(n, [=](int64_t i) { r[i] = static_cast<U>(std::countl_zero(static_cast<U>(x[i] & mask)) - unused); });
}
template <typename T>
void PopulationCountLoop(void* out, const void* a, const void*, const void*, int64_t n, int64_t width) {
  using U = std::make_unsigned_t<T>;
  U* r = static_cast<U*>(out);
  const U* x = static_cast<const U*>(a);
  const U mask = WidthMask<T>(width);
  ForEachElement(n, [=](int64_t i) { r[i] = static_cast<U>(std::popcount(static_cast<U>(x[i] & mask))); });
}

template <typename T>
void Register(ElementFnTable* t, ElementType type) {
  t->Set(Opcode::kAdd, type, BinaryLoop<Add, T>, 1);
  t->Set(Opcode::kSubtract, type, BinaryLoop<Subtract, T>, 1);
  t->Set(Opcode::kMultiply, type, BinaryLoop<Multiply, T>, 1);
  t->Set(Opcode::kMulhi, type, MulhiLoop<T>, 1);
  t->Set(Opcode::kDivide, type, BinaryLoop<Divide, T>, 5);
  t->Set(Opcode::kRemainder, type, BinaryLoop<Remainder, T>, 5);
  t->Set(Opcode::kPower, type, BinaryLoop<Power, T>, 20);
  t->Set(Opcode::kMaximum, type, BinaryLoop<Maximum, T>, 1);
  t->Set(Opcode::kMinimum, type, BinaryLoop<Minimum, T>, 1);
  t->Set(Opcode::kAnd, type, BinaryLoop<And, T>, 1);
  t->Set(Opcode::kOr, type, BinaryLoop<Or, T>, 1);
  t->Set(Opcode::kXor, type, BinaryLoop<Xor, T>, 1);
  t->Set(Opcode::kShiftLeft, type, BinaryLoop<ShiftLeft, T>, 1);
  t->Set(Opcode::kShiftRightArithmetic, type, ShiftRightArithmeticLoop<T>, 1);
  t->Set(Opcode::kShiftRightLogical, type, ShiftRightLogicalLoop<T>, 1);
  t->Set(Opcode::kNot, type, UnaryLoop<Not, T>, 1);
  t->Set(Opcode::kAbs, type, UnaryLoop<Abs, T>, 1);
  t->Set(Opcode::kNegate, type, UnaryLoop<Negate, T>, 1);
  t->Set(Opcode::kSign, type, UnaryLoop<Sign, T>, 1);
  t->Set(Opcode::kClz, type, CountLeadingZerosLoop<T>, 1);
  t->Set(Opcode::kPopulationCount, type, PopulationCountLoop<T>, 1);
}

}  // namespace

void RegisterIntegerOps(ElementFnTable* t) {
  Register<int8_t>(t, ElementType::kS8);
  Register<int16_t>(t, ElementType::kS16);
  Register<int32_t>(t, ElementType::kS32);
  Register<int64_t>(t, ElementType::kS64);
  Register<uint8_t>(t, ElementType::kU8);
  Register<uint16_t>(t, ElementType::kU16);
  Register<uint32_t>(t, ElementType::kU32);
  Register<uint64_t>(t, ElementType::kU64);

  // pred: arithmetic modulo "any nonzero is true".
  constexpr ElementType kPred = ElementType::kPred;
  t->Set(Opcode::kAdd, kPred, BinaryLoop<PredAdd, uint8_t>, 1);
  t->Set(Opcode::kSubtract, kPred, BinaryLoop<PredSubtract, uint8_t>, 1);
  t->Set(Opcode::kMultiply, kPred, BinaryLoop<And, uint8_t>, 1);
  t->Set(Opcode::kMaximum, kPred, BinaryLoop<Or, uint8_t>, 1);
  t->Set(Opcode::kMinimum, kPred, BinaryLoop<And, uint8_t>, 1);
  t->Set(Opcode::kAnd, kPred, BinaryLoop<And, uint8_t>, 1);
  t->Set(Opcode::kOr, kPred, BinaryLoop<Or, uint8_t>, 1);
  t->Set(Opcode::kXor, kPred, BinaryLoop<Xor, uint8_t>, 1);
  t->Set(Opcode::kNot, kPred, UnaryLoop<PredNot, uint8_t>, 1);
}

}  // namespace hlokit::interp
