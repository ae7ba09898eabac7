// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of f32 and f64.
//
// f32 results are computed in double and rounded once where the C library's float function may be off by more than one
// unit in the last place; glibc's powf, sinf and cosf are within 0.52 units. The most frequent functions of models have
// vector loops: element_vector_math.cc.
#include <cmath>
#include <cstdint>

#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/kernels/elementwise/element_vector_math.h"
#include "interp/exact/program/element_op.h"

namespace hlokit::interp {
namespace {

#define HLOKIT_MATH(Name, expression_of_a_double)                    \
  struct Name {                                                      \
    static double Apply(double a) { return expression_of_a_double; } \
    static float Apply(float x) {                                    \
      const double a = x;                                            \
      return static_cast<float>(expression_of_a_double);             \
    }                                                                \
  }

HLOKIT_MATH(Acos, std::acos(a));
HLOKIT_MATH(Acosh, std::acosh(a));
HLOKIT_MATH(Asin, std::asin(a));
HLOKIT_MATH(Asinh, std::asinh(a));
HLOKIT_MATH(Atanh, std::atanh(a));
HLOKIT_MATH(Cbrt, std::cbrt(a));
HLOKIT_MATH(Cosh, std::cosh(a));
HLOKIT_MATH(Erf, std::erf(a));
HLOKIT_MATH(Log1p, std::log1p(a));
HLOKIT_MATH(Sinh, std::sinh(a));
HLOKIT_MATH(Tan, std::tan(a));

#undef HLOKIT_MATH

struct Exp {
  static double Apply(double a) { return std::exp(a); }
};
struct Expm1 {
  static double Apply(double a) { return std::expm1(a); }
};
struct Log {
  static double Apply(double a) { return std::log(a); }
};
struct Logistic {
  static double Apply(double a) { return 1.0 / (1.0 + std::exp(-a)); }
};
struct Tanh {
  static double Apply(double a) { return std::tanh(a); }
};
struct Sin {
  template <typename T>
  static T Apply(T a) {
    return std::sin(a);
  }
};
struct Cos {
  template <typename T>
  static T Apply(T a) {
    return std::cos(a);
  }
};
struct Power {
  template <typename T>
  static T Apply(T a, T b) {
    return std::pow(a, b);
  }
};
struct Atan2 {
  static double Apply(double a, double b) { return std::atan2(a, b); }
  static float Apply(float a, float b) {
    return static_cast<float>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
  }
};
struct Remainder {
  template <typename T>
  static T Apply(T a, T b) {
    return std::fmod(a, b);
  }
};

template <typename T>
void Register(ElementFnTable* t, ElementType type) {
  t->Set(Opcode::kAcos, type, UnaryLoop<Acos, T>, 15);
  t->Set(Opcode::kAcosh, type, UnaryLoop<Acosh, T>, 20);
  t->Set(Opcode::kAsin, type, UnaryLoop<Asin, T>, 15);
  t->Set(Opcode::kAsinh, type, UnaryLoop<Asinh, T>, 20);
  t->Set(Opcode::kAtanh, type, UnaryLoop<Atanh, T>, 20);
  t->Set(Opcode::kCbrt, type, UnaryLoop<Cbrt, T>, 20);
  t->Set(Opcode::kCos, type, UnaryLoop<Cos, T>, 8);
  t->Set(Opcode::kCosh, type, UnaryLoop<Cosh, T>, 15);
  t->Set(Opcode::kErf, type, UnaryLoop<Erf, T>, 15);
  t->Set(Opcode::kLog1p, type, UnaryLoop<Log1p, T>, 15);
  t->Set(Opcode::kSin, type, UnaryLoop<Sin, T>, 8);
  t->Set(Opcode::kSinh, type, UnaryLoop<Sinh, T>, 15);
  t->Set(Opcode::kTan, type, UnaryLoop<Tan, T>, 20);
  t->Set(Opcode::kPower, type, BinaryLoop<Power, T>, 20);
  t->Set(Opcode::kAtan2, type, BinaryLoop<Atan2, T>, 20);
  t->Set(Opcode::kRemainder, type, BinaryLoop<Remainder, T>, 10);
}

}  // namespace

void RegisterFloatMath(ElementFnTable* t) {
  Register<float>(t, ElementType::kF32);
  Register<double>(t, ElementType::kF64);
  t->Set(Opcode::kExp, ElementType::kF64, UnaryLoop<Exp, double>, 5);
  t->Set(Opcode::kExpm1, ElementType::kF64, UnaryLoop<Expm1, double>, 15);
  t->Set(Opcode::kLog, ElementType::kF64, UnaryLoop<Log, double>, 6);
  t->Set(Opcode::kLogistic, ElementType::kF64, UnaryLoop<Logistic, double>, 10);
  t->Set(Opcode::kTanh, ElementType::kF64, UnaryLoop<Tanh, double>, 20);
  RegisterVectorMath(t);
}

}  // namespace hlokit::interp
