// SPDX-License-Identifier: Apache-2.0
// f32 and f64 operations without mathematical functions: arithmetic, rounding, classification.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/program/element_op.h"

namespace hlokit::interp {
namespace {

using arithmetic::Add;
using arithmetic::Divide;
using arithmetic::Maximum;
using arithmetic::Minimum;
using arithmetic::Multiply;
using arithmetic::Negate;
using arithmetic::Subtract;

struct Abs {
  template <typename T>
  static T Apply(T a) {
    return std::fabs(a);
  }
};
struct Sign {
  template <typename T>
  static T Apply(T a) {
    return a > 0 ? T{1} : a < 0 ? T{-1} : a;  // zeros and NaNs are returned unchanged
  }
};
struct Not {
  template <typename T>
  static T Apply(T a) {
    return a == 0 ? T{1} : T{0};
  }
};
struct Sqrt {
  template <typename T>
  static T Apply(T a) {
    return std::sqrt(a);
  }
};
struct Rsqrt {
  // Computed in double, so that f32 results are rounded once.
  static float Apply(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
  static double Apply(double a) { return 1.0 / std::sqrt(a); }
};
struct Ceil {
  template <typename T>
  static T Apply(T a) {
    return std::ceil(a);
  }
};
struct Floor {
  template <typename T>
  static T Apply(T a) {
    return std::floor(a);
  }
};
struct RoundNearestAfz {
  template <typename T>
  static T Apply(T a) {
    return std::round(a);
  }
};
struct RoundNearestEven {
  template <typename T>
  static T Apply(T a) {
    return std::nearbyint(a);
  }
};
struct IsFinite {
  template <typename T>
  static uint8_t Apply(T a) {
    return std::fabs(a) <= std::numeric_limits<T>::max();
  }
};

// Keeps `exponent_bits` and `mantissa_bits` of a value: rounds to nearest even, overflows to infinity, flushes
// denormals to zero, keeps NaN.
template <typename T, typename Bits, int kMantissa, int kExponent>
void ReducePrecisionLoop(void* out, const void* a, const void*, const void*, int64_t n, int64_t param) {
  const int exponent_bits = static_cast<int>(param >> 8);
  const int mantissa_bits = static_cast<int>(param & 0xff);
  constexpr Bits kSign = Bits{1} << (kMantissa + kExponent);
  constexpr Bits kExponentMask = ((Bits{1} << kExponent) - 1) << kMantissa;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  const Bits* x = static_cast<const Bits*>(a);
  Bits* r = static_cast<Bits*>(out);
  for (int64_t i = 0; i < n; ++i) {
    Bits v = x[i];
    const bool is_nan = (v & ~kSign) > kExponentMask;
    if (is_nan) {
      // Without mantissa bits NaN is not representable: it becomes infinity.
      r[i] = mantissa_bits > 0 ? v : static_cast<Bits>((v & kSign) | kExponentMask);
      continue;
    }
    if (mantissa_bits < kMantissa) {
      const int drop = kMantissa - mantissa_bits;
      const Bits last = static_cast<Bits>((v >> drop) & 1);
      v = static_cast<Bits>(v + (Bits{1} << (drop - 1)) - 1 + last);
      v = static_cast<Bits>(v & ~((Bits{1} << drop) - 1));
    }
    if (exponent_bits < kExponent) {
      const int reduced_bias = (1 << (exponent_bits - 1)) - 1;
      const Bits max_exponent = static_cast<Bits>(kBias + reduced_bias) << kMantissa;
      const Bits min_exponent = static_cast<Bits>(kBias - reduced_bias) << kMantissa;
      const Bits exponent = v & kExponentMask;
      if (exponent > max_exponent) {
        v = static_cast<Bits>((v & kSign) | kExponentMask);
      } else if (exponent <= min_exponent) {
        v = static_cast<Bits>(v & kSign);
      }
    }
    r[i] = v;
  }
}

template <typename T>
void Register(ElementFnTable* t, ElementType type) {
  t->Set(Opcode::kAdd, type, BinaryLoop<Add, T>, 1);
  t->Set(Opcode::kSubtract, type, BinaryLoop<Subtract, T>, 1);
  t->Set(Opcode::kMultiply, type, BinaryLoop<Multiply, T>, 1);
  t->Set(Opcode::kDivide, type, BinaryLoop<Divide, T>, 1);
  t->Set(Opcode::kMaximum, type, BinaryLoop<Maximum, T>, 1);
  t->Set(Opcode::kMinimum, type, BinaryLoop<Minimum, T>, 1);
  t->Set(Opcode::kAbs, type, UnaryLoop<Abs, T>, 1);
  t->Set(Opcode::kNegate, type, UnaryLoop<Negate, T>, 1);
  t->Set(Opcode::kSign, type, UnaryLoop<Sign, T>, 1);
  t->Set(Opcode::kNot, type, UnaryLoop<Not, T>, 1);
  t->Set(Opcode::kSqrt, type, UnaryLoop<Sqrt, T>, 2);
  t->Set(Opcode::kRsqrt, type, UnaryLoop<Rsqrt, T>, 3);
  t->Set(Opcode::kCeil, type, UnaryLoop<Ceil, T>, 2);
  t->Set(Opcode::kFloor, type, UnaryLoop<Floor, T>, 2);
  t->Set(Opcode::kRoundNearestAfz, type, UnaryLoop<RoundNearestAfz, T>, 2);
  t->Set(Opcode::kRoundNearestEven, type, UnaryLoop<RoundNearestEven, T>, 2);
  t->Set(Opcode::kIsFinite, type, UnaryLoop<IsFinite, T, uint8_t>, 1);
}

}  // namespace

void RegisterFloatOps(ElementFnTable* t) {
  Register<float>(t, ElementType::kF32);
  Register<double>(t, ElementType::kF64);
  t->Set(Opcode::kReducePrecision, ElementType::kF32, ReducePrecisionLoop<float, uint32_t, 23, 8>, 3);
  t->Set(Opcode::kReducePrecision, ElementType::kF64, ReducePrecisionLoop<double, uint64_t, 52, 11>, 3);
}

}  // namespace hlokit::interp
