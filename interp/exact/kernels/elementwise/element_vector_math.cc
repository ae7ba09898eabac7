// SPDX-License-Identifier: Apache-2.0
// The most frequent f32 functions of models: exponential, exponential-minus-one, log, tanh, logistic.
//
// Computed in double to about 2^-38 relative error and rounded once, so that all but a few in many thousands are
// correctly rounded. The loops have no branches and no calls, so that compilers vectorize them; compiled for several
// instruction sets, they give the same bits on all, since none fuses operations.
#include "interp/exact/kernels/elementwise/element_vector_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "interp/exact/kernels/element_loop.h"
#include "interp/processor/instruction_set.h"

namespace hlokit::interp {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Evaluates the polynomial with these coefficients, highest power first.
template <typename... Rest>
[[gnu::always_inline]] inline double Polynomial(double x, double first, Rest... rest) {
  ((first = first * x + rest), ...);
  return first;
}

// e^x - 1 as scale * tail + (scale - 1), where scale is a power of two and tail is small; used by both functions.
struct Exponential {
  double scale;
  double tail;
};

[[gnu::always_inline]] inline Exponential Split(double x) {
  // Larger magnitudes give infinity or zero in f32; NaN is kept.
  x = x > 700.0 ? 700.0 : x;
  x = x < -700.0 ? -700.0 : x;
  // n = x / ln 2 rounded to an integer, in the low bits of the sum.
  constexpr double kShift = 0x1.8p52;
  const double shifted = x * 0x1.71547652b82fep0 + kShift;
  const double n = shifted - kShift;
  const double r = (x - n * 0x1.62e42fefa39efp-1) - n * 0x1.abc9e3b39803fp-56;  // |r| <= ln 2 / 2
  const int64_t exponent = std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(kShift);
  const double scale = std::bit_cast<double>((exponent + 1023) << 52);
  // Taylor series of e^r - 1; the remainder is below 2^-40 r.
  const double p = Polynomial(r, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                              1.0 / 6, 1.0 / 2, 1.0);
  return {scale, p * r};
}

struct Exp {
  [[gnu::always_inline]] static float Apply(float a) {
    const Exponential e = Split(a);
    return static_cast<float>(e.scale * e.tail + e.scale);
  }
};

struct Expm1 {
  [[gnu::always_inline]] static float Apply(float a) {
    const Exponential e = Split(a);
    const float result = static_cast<float>(e.scale * e.tail + (e.scale - 1.0));
    return a == 0 ? a : result;  // keeps the sign of zero
  }
};

struct Tanh {
  [[gnu::always_inline]] static float Apply(float a) {
    const Exponential e = Split(2.0 * static_cast<double>(a));
    const double minus_one = e.scale * e.tail + (e.scale - 1.0);
    // Beyond 350 the quotient remains 1 and nothing overflows.
    const float result = static_cast<float>(minus_one / (minus_one + 2.0));
    return a == 0 ? a : result;
  }
};

struct Logistic {
  [[gnu::always_inline]] static float Apply(float a) {
    const Exponential e = Split(-static_cast<double>(a));
    return static_cast<float>(1.0 / (1.0 + (e.scale * e.tail + e.scale)));
  }
};

struct Log {
  [[gnu::always_inline]] static float Apply(float a) {
    const double x = a;
    // x = 2^n m with m in [1/sqrt 2, sqrt 2); floats, including denormals, are normal doubles.
    constexpr uint64_t kHalfSqrt = 0x3fe6a09e667f3bcd;
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    const int64_t exponent = static_cast<int64_t>(bits - kHalfSqrt) >> 52;
    const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << 52));
    // Converts a small integer to double without an instruction that some processors lack.
    const double n = std::bit_cast<double>(exponent + 0x4338000000000000) - 0x1.8p52;
    // log m = 2 atanh s = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    const double p = Polynomial(z, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0);
    double y = n * 0x1.62e42fefa39efp-1 + (s * p + n * 0x1.abc9e3b39803fp-56);
    y = x > 0 ? y : std::numeric_limits<double>::quiet_NaN();
    y = x == 0 ? -kInfinity : y;
    y = x == kInfinity ? x : y;
    y = x == x ? y : x;
    return static_cast<float>(y);
  }
};

template <typename Op>
[[gnu::always_inline]] inline void Loop(void* out, const void* in, int64_t n) {
  float* r = static_cast<float*>(out);
  const float* x = static_cast<const float*>(in);
  constexpr int64_t kChunk = 64;
  int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) {
    HLOKIT_INDEPENDENT
    for (int64_t j = 0; j < kChunk; ++j) r[i + j] = Op::Apply(x[i + j]);
  }
  for (; i < n; ++i) r[i] = Op::Apply(x[i]);
}

template <typename Op>
void BaselineLoop(void* out, const void* a, const void*, const void*, int64_t n, int64_t) {
  Loop<Op>(out, a, n);
}
#if defined(__x86_64__)
template <typename Op>
__attribute__((target("avx2"))) void Avx2Loop(void* out, const void* a, const void*, const void*, int64_t n, int64_t) {
  Loop<Op>(out, a, n);
}
template <typename Op>
__attribute__((target("avx512f,avx512dq,avx512vl,prefer-vector-width=512"))) void Avx512Loop(void* out, const void* a,
                                                                                             const void*, const void*,
                                                                                             int64_t n, int64_t) {
  Loop<Op>(out, a, n);
}
#endif

template <typename Op>
ElementFn BestLoop() {
#if defined(__x86_64__)
  return ForHost<ElementFn>(BaselineLoop<Op>, Avx2Loop<Op>, Avx512Loop<Op>);
#else
  return BaselineLoop<Op>;
#endif
}

}  // namespace

void RegisterVectorMath(ElementFnTable* t) {
  t->Set(Opcode::kExp, ElementType::kF32, BestLoop<Exp>(), 2);
  t->Set(Opcode::kExpm1, ElementType::kF32, BestLoop<Expm1>(), 2);
  t->Set(Opcode::kLog, ElementType::kF32, BestLoop<Log>(), 3);
  t->Set(Opcode::kLogistic, ElementType::kF32, BestLoop<Logistic>(), 3);
  t->Set(Opcode::kTanh, ElementType::kF32, BestLoop<Tanh>(), 3);
}

}  // namespace hlokit::interp
