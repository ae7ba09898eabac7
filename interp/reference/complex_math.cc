// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/complex_math.h"

#include <cmath>
#include <limits>

namespace hlokit::reference {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

C128 ComplexAtan2(C128 y, C128 x) {
  const C128 i(0, 1);
  return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
}

C128 ComplexCbrt(C128 z) { return z == C128(0) ? z : std::polar(std::cbrt(std::abs(z)), std::arg(z) / 3); }

C128 ComplexExp(C128 z) { return std::isinf(z.real()) && !std::isfinite(z.imag()) ? C128(kNaN, kNaN) : std::exp(z); }

C128 ComplexExpm1(C128 z) {
  // (e^re - 1) cos(im) + (cos(im) - 1) + i e^re sin(im)
  const double minus_one = std::expm1(z.real());
  if (z.imag() == 0) return {minus_one, z.imag()};  // where e^re is infinite
  const double half = std::sin(z.imag() / 2);
  return {minus_one * std::cos(z.imag()) - 2 * half * half, (minus_one + 1) * std::sin(z.imag())};
}

C128 ComplexLog1p(C128 z) {
  const double re = z.real(), im = z.imag();
  const double angle = std::atan2(im, re + 1);
  if (std::fabs(re) < 0.5 && std::fabs(im) < 0.5) {
    // |1 + z|^2 - 1 = 2 re + re^2 + im^2; long double absorbs the cancellation between re and im^2.
    const long double r = re, i = im;
    return {static_cast<double>(std::log1p((2 + r) * r + i * i) / 2), angle};
  }
  const double modulus = std::hypot(re + 1, im);
  if (std::isinf(modulus) && std::isfinite(re) && std::isfinite(im)) {
    return {std::log(std::hypot(re / 2, im / 2)) + std::log(2.0), angle};
  }
  return {std::log(modulus), angle};
}

C128 ComplexPower(C128 a, C128 b) {
  if (b == C128(0)) return 1;
  if (a != C128(0)) return std::pow(a, b);
  if (b.real() > 0) return 0;
  return b.imag() == 0 ? C128(kInfinity, kNaN) : C128(kNaN, kNaN);
}

C128 ComplexRsqrt(C128 z) {
  if (z == C128(0)) return {kInfinity, kNaN};
  if ((std::isinf(z.real()) || std::isinf(z.imag())) && !std::isnan(z.real())) return 0;
  return C128(1) / std::sqrt(z);
}

C128 ComplexSign(C128 z) {
  const double magnitude = std::abs(z);
  return magnitude == 0 ? C128(0) : z / magnitude;
}

}  // namespace hlokit::reference
