// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>

#include "parser/stablehlo/special_functions.h"

namespace hlokit::stablehlo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// gamma(z + 1) = sqrt(2 pi) t^(z + 1/2) e^-t a(z), t = z + g + 1/2, with g = 7 and nine terms of a.
constexpr double kLanczosG = 7;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {676.520368121885098567009190444019, -1259.13921672240287047156078755283,
                               771.3234287776530788486528258894,   -176.61502916214059906584551354,
                               12.507343278686904814458936853,     -0.13857109526572011689554707,
                               9.984369578019570859563e-6,         1.50563273514931155834e-7};

// What lgamma and digamma begin with.
struct Lanczos {
  Term reflects;  // x < 1/2: the value comes from 1 - x
  Term z;         // -x then, else x - 1
  Term a;
  Term t;
  Term log_t;
};

Lanczos Start(Term x) {
  const Term reflects = x < 0.5;
  const Term z = Select(reflects, -x, x - 1.0);
  Term a = x.Like(kLanczosBase);
  for (size_t i = 0; i < std::size(kLanczos); ++i) a = a + kLanczos[i] / (z + static_cast<double>(i + 1));
  constexpr double kOffset = kLanczosG + 0.5;
  // log(offset + z) is exact near z = 0 by log1p.
  return {reflects, z, a, kOffset + z, std::log(kOffset) + Log1p(z / kOffset)};
}

// -1 for natural numbers that are even, 1 for odd ones.
Term SignOf(Term n) { return 2.0 * Remainder(n, 2.0) - 1.0; }

}  // namespace

Term Lgamma(Term x) {
  const Lanczos s = Start(x);
  // (z + 1/2) log(t) - t, so that the product does not overflow.
  const Term power = (s.z + 0.5 - s.t / s.log_t) * s.log_t;
  const Term direct = (std::log(2 * std::numbers::pi) / 2 + power) + Log(s.a);
  // lgamma(x) = log(pi) - lgamma(1 - x) - log |sin(pi x)|. The sine has the period 1 and is symmetric: of the distance
  // to the next integer it is exact at the poles.
  const Term magnitude = Abs(x);
  const Term fraction = magnitude - Floor(magnitude);
  const Term distance = Select(x.Like(0.5) < fraction, 1.0 - fraction, fraction);
  const Term log_sine = Log(Sin(std::numbers::pi * distance));
  const Term finite = Select(Abs(log_sine) < kInfinity, (std::log(std::numbers::pi) - log_sine) - direct, -log_sine);
  return Select(magnitude == kInfinity, x.Like(kInfinity), Select(s.reflects, finite, direct));
}

Term Digamma(Term x) {
  const Lanczos s = Start(x);
  Term derivative = x.Like(0.0);
  for (size_t i = 0; i < std::size(kLanczos); ++i) {
    const Term term = s.z + static_cast<double>(i + 1);
    derivative = derivative - kLanczos[i] / (term * term);
  }
  const Term direct = (s.log_t + derivative / s.a) - kLanczosG / s.t;
  // digamma(x) = digamma(1 - x) - pi cot(pi x), with x moved to [-1/2, 1/2].
  const Term moved = std::numbers::pi * (x + Abs(Floor(x + 0.5)));
  const Term reflected = direct - (std::numbers::pi * Cos(moved)) / Sin(moved);
  const Term pole = (x < 0.0) & (x == Floor(x));
  const Term value = Select(pole, x.Like(kNan), Select(s.reflects, reflected, direct));
  return Select(x == 0.0, x.Like(-kInfinity), value);
}

Term Zeta(Term x, Term q) {
  // (2 k)! / B_2k for k from 12 to 1.
  static constexpr double kCoefficients[] = {-7.1661652561756670113e18,
                                             1.8152105401943546773e17,
                                             -4.5979787224074726105e15,
                                             1.1646782814350067249e14,
                                             -2.950130727918164224e12,
                                             7.47242496e10,
                                             -1.8924375803183791606e9,
                                             47900160.0,
                                             -1209600.0,
                                             30240.0,
                                             -720.0,
                                             12.0};
  constexpr size_t kTerms = std::size(kCoefficients);
  constexpr int kSummands = 10;
  const Term negative = -x;
  Term a = q;
  Term sum = Pow(q, negative);
  for (int i = 1; i < kSummands; ++i) {
    a = a + 1.0;
    sum = sum + Pow(a, negative);
  }
  a = a + 1.0;
  const Term power = Pow(a, negative);
  // The rest of the sum by Euler and Maclaurin: an integral, half of the next summand, derivatives.
  const Term integral = power * a / (x - 1.0);
  const Term inverse_square = 1.0 / (a * a);
  Term tail = x.Like(0.0);
  for (size_t i = 0; i + 1 < kTerms; ++i) {
    const auto offset = static_cast<double>(2 * (kTerms - 1 - i));
    tail = (x + offset) * (x + (offset - 1)) * (inverse_square * (tail + 1 / kCoefficients[i]));
  }
  tail = power * (0.5 + (x / a) * (1 / kCoefficients[kTerms - 1] + tail));
  const double epsilon =
      x.type() == ElementType::kF64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Term value = Select(Abs(power) < Abs(sum) * epsilon, sum, (sum + integral) + tail);
  const Term nan = x.Like(kNan);
  const Term infinity = x.Like(kInfinity);
  const Term x_is_integer = x == Floor(x);
  const Term q_is_not_positive = q <= 0.0;
  value = Select(x < 1.0, nan, value);
  value = Select(q_is_not_positive & (x != Floor(x)), nan, value);
  // Poles have a limit only if all powers are even.
  const Term is_even = x_is_integer & (Remainder(x, 2.0) == 0.0);
  value = Select(q_is_not_positive & (q == Floor(q)), Select(is_even, infinity, nan), value);
  return Select(x == 1.0, infinity, value);
}

Term Polygamma(Term n, Term x) {
  const Term next = n + 1.0;
  const Term derivative = SignOf(n) * Exp(Lgamma(next)) * Zeta(next, x);
  const Term value = Select(n == 0.0, Digamma(x), derivative);
  const Term natural = (n == Floor(n)) & (n.Like(-1.0) < n);
  return Select(natural, value, x.Like(kNan));
}

}  // namespace hlokit::stablehlo
