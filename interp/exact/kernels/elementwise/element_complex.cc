// SPDX-License-Identifier: Apache-2.0
// c64 and c128. Functions of c64 are computed in double, so that results are rounded once and intermediate products do
// not overflow.
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/program/element_op.h"

namespace hlokit::interp {
namespace {

using arithmetic::Add;
using arithmetic::Divide;
using arithmetic::Multiply;
using arithmetic::Negate;
using arithmetic::Subtract;
using C64 = std::complex<float>;
using C128 = std::complex<double>;

struct Abs {
  template <typename F>
  static F Apply(std::complex<F> a) {
    return std::hypot(a.real(), a.imag());
  }
};
struct Real {
  template <typename F>
  static F Apply(std::complex<F> a) {
    return a.real();
  }
};
struct Imag {
  template <typename F>
  static F Apply(std::complex<F> a) {
    return a.imag();
  }
};
// For real numbers.
struct RealOfReal {
  template <typename F>
  static F Apply(F a) {
    return a;
  }
};
struct ImagOfReal {
  template <typename F>
  static F Apply(F) {
    return 0;
  }
};
struct MakeComplex {
  template <typename F>
  static std::complex<F> Apply(F re, F im) {
    return {re, im};
  }
};
struct IsFinite {
  template <typename F>
  static uint8_t Apply(std::complex<F> a) {
    return std::isfinite(a.real()) && std::isfinite(a.imag());
  }
};
struct Not {
  template <typename T>
  static T Apply(T a) {
    return a == T(0) ? T(1) : T(0);
  }
};

// Defines a function of C128, and of C64 by conversion.
#define HLOKIT_COMPLEX(Name, expression_of_z)             \
  struct Name {                                           \
    static C128 Apply(C128 z) { return expression_of_z; } \
    static C64 Apply(C64 a) {                             \
      const C128 z(a);                                    \
      return C64(expression_of_z);                        \
    }                                                     \
  }

// Where the magnitude is 0 or infinite without an angle, C returns 0 or infinity; this returns the product, NaN.
C128 ExpOf(C128 z) {
  if (std::isinf(z.real()) && !std::isfinite(z.imag())) {
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
  return std::exp(z);
}
C128 SignOf(C128 z) {
  const double magnitude = std::abs(z);
  return magnitude == 0 ? C128(0) : z / magnitude;
}
// Returns log|1 + z|, accurate near z = 0 and near |1 + z| = 1.
C128 Log1pOf(C128 z) {
  const double re = z.real();
  const double im = z.imag();
  const double angle = std::atan2(im, re + 1);
  if (std::fabs(re) < 0.5 && std::fabs(im) < 0.5) {
    // |1 + z|^2 - 1 = 2 re + re^2 + im^2; long double absorbs the cancellation between re and im^2.
    const long double r = re;
    const long double i = im;
    const long double excess = (2 + r) * r + i * i;
    return {static_cast<double>(std::log1p(excess) / 2), angle};
  }
  const double modulus = std::hypot(re + 1, im);
  if (std::isinf(modulus) && std::isfinite(re) && std::isfinite(im)) {
    return {std::log(std::hypot(re / 2, im / 2)) + std::log(2.0), angle};
  }
  return {std::log(modulus), angle};
}
// Returns e^z - 1 = (e^re - 1) cos(im) + (cos(im) - 1) + i e^re sin(im).
C128 Expm1Of(C128 z) {
  const double em1 = std::expm1(z.real());
  if (z.imag() == 0) return {em1, z.imag()};  // infinity times zero is NaN
  const double half_sine = std::sin(z.imag() / 2);
  const double cos_m1 = -2 * half_sine * half_sine;
  return {em1 * std::cos(z.imag()) + cos_m1, (em1 + 1) * std::sin(z.imag())};
}
C128 CbrtOf(C128 z) {
  if (z == C128(0)) return z;
  return std::polar(std::cbrt(std::abs(z)), std::arg(z) / 3);
}
C128 PowerOf(C128 a, C128 b) {
  if (b == C128(0)) return 1;
  if (a == C128(0)) {
    if (b.real() > 0) return 0;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return b.imag() == 0 ? C128(std::numeric_limits<double>::infinity(), nan) : C128(nan, nan);
  }
  return std::pow(a, b);
}
C128 RsqrtOf(C128 z) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (z == C128(0)) return {infinity, std::numeric_limits<double>::quiet_NaN()};
  if (std::isinf(z.real()) || std::isinf(z.imag())) return std::isnan(z.real()) ? C128(1) / std::sqrt(z) : C128(0);
  return C128(1) / std::sqrt(z);
}

HLOKIT_COMPLEX(Acos, std::acos(z));
HLOKIT_COMPLEX(Acosh, std::acosh(z));
HLOKIT_COMPLEX(Asin, std::asin(z));
HLOKIT_COMPLEX(Asinh, std::asinh(z));
HLOKIT_COMPLEX(Atanh, std::atanh(z));
HLOKIT_COMPLEX(Cbrt, CbrtOf(z));
HLOKIT_COMPLEX(Cos, std::cos(z));
HLOKIT_COMPLEX(Cosh, std::cosh(z));
HLOKIT_COMPLEX(Exp, ExpOf(z));
HLOKIT_COMPLEX(Expm1, Expm1Of(z));
HLOKIT_COMPLEX(Log, std::log(z));
HLOKIT_COMPLEX(Log1p, Log1pOf(z));
HLOKIT_COMPLEX(Logistic, C128(1) / (C128(1) + std::exp(-z)));
HLOKIT_COMPLEX(Rsqrt, RsqrtOf(z));
HLOKIT_COMPLEX(Sign, SignOf(z));
HLOKIT_COMPLEX(Sin, std::sin(z));
HLOKIT_COMPLEX(Sinh, std::sinh(z));
HLOKIT_COMPLEX(Sqrt, std::sqrt(z));
HLOKIT_COMPLEX(Tan, std::tan(z));
HLOKIT_COMPLEX(Tanh, std::tanh(z));

#undef HLOKIT_COMPLEX

struct Power {
  static C128 Apply(C128 a, C128 b) { return PowerOf(a, b); }
  static C64 Apply(C64 a, C64 b) { return C64(PowerOf(C128(a), C128(b))); }
};
// atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2))
struct Atan2 {
  static C128 Apply(C128 y, C128 x) {
    const C128 i(0, 1);
    return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
  }
  static C64 Apply(C64 y, C64 x) { return C64(Apply(C128(y), C128(x))); }
};

template <typename F>
void Register(ElementFnTable* t, ElementType type) {
  using C = std::complex<F>;
  t->Set(Opcode::kAdd, type, BinaryLoop<Add, C>, 1);
  t->Set(Opcode::kSubtract, type, BinaryLoop<Subtract, C>, 1);
  t->Set(Opcode::kMultiply, type, BinaryLoop<Multiply, C>, 3);
  t->Set(Opcode::kDivide, type, BinaryLoop<Divide, C>, 10);
  t->Set(Opcode::kPower, type, BinaryLoop<Power, C>, 100);
  t->Set(Opcode::kAtan2, type, BinaryLoop<Atan2, C>, 100);
  t->Set(Opcode::kAbs, type, UnaryLoop<Abs, C, F>, 10);
  t->Set(Opcode::kReal, type, UnaryLoop<Real, C, F>, 1);
  t->Set(Opcode::kImag, type, UnaryLoop<Imag, C, F>, 1);
  t->Set(Opcode::kIsFinite, type, UnaryLoop<IsFinite, C, uint8_t>, 1);
  t->Set(Opcode::kNegate, type, UnaryLoop<Negate, C>, 1);
  t->Set(Opcode::kNot, type, UnaryLoop<Not, C>, 1);
  t->Set(Opcode::kAcos, type, UnaryLoop<Acos, C>, 100);
  t->Set(Opcode::kAcosh, type, UnaryLoop<Acosh, C>, 100);
  t->Set(Opcode::kAsin, type, UnaryLoop<Asin, C>, 100);
  t->Set(Opcode::kAsinh, type, UnaryLoop<Asinh, C>, 100);
  t->Set(Opcode::kAtanh, type, UnaryLoop<Atanh, C>, 100);
  t->Set(Opcode::kCbrt, type, UnaryLoop<Cbrt, C>, 100);
  t->Set(Opcode::kCos, type, UnaryLoop<Cos, C>, 50);
  t->Set(Opcode::kCosh, type, UnaryLoop<Cosh, C>, 50);
  t->Set(Opcode::kExp, type, UnaryLoop<Exp, C>, 50);
  t->Set(Opcode::kExpm1, type, UnaryLoop<Expm1, C>, 50);
  t->Set(Opcode::kLog, type, UnaryLoop<Log, C>, 50);
  t->Set(Opcode::kLog1p, type, UnaryLoop<Log1p, C>, 50);
  t->Set(Opcode::kLogistic, type, UnaryLoop<Logistic, C>, 50);
  t->Set(Opcode::kRsqrt, type, UnaryLoop<Rsqrt, C>, 30);
  t->Set(Opcode::kSign, type, UnaryLoop<Sign, C>, 20);
  t->Set(Opcode::kSin, type, UnaryLoop<Sin, C>, 50);
  t->Set(Opcode::kSinh, type, UnaryLoop<Sinh, C>, 50);
  t->Set(Opcode::kSqrt, type, UnaryLoop<Sqrt, C>, 30);
  t->Set(Opcode::kTan, type, UnaryLoop<Tan, C>, 50);
  t->Set(Opcode::kTanh, type, UnaryLoop<Tanh, C>, 50);
}

template <typename F>
void RegisterOfReal(ElementFnTable* t, ElementType type) {
  t->Set(Opcode::kComplex, type, BinaryLoop<MakeComplex, F, std::complex<F>>, 1);
  t->Set(Opcode::kReal, type, UnaryLoop<RealOfReal, F>, 1);
  t->Set(Opcode::kImag, type, UnaryLoop<ImagOfReal, F>, 1);
}

}  // namespace

void RegisterComplexOps(ElementFnTable* t) {
  Register<float>(t, ElementType::kC64);
  Register<double>(t, ElementType::kC128);
  RegisterOfReal<float>(t, ElementType::kF32);
  RegisterOfReal<double>(t, ElementType::kF64);
}

}  // namespace hlokit::interp
