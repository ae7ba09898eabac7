// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/distributions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hlokit::lazy::nn {
namespace {

// Returns the probability that a standard normal number is less than x.
double NormalProbability(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

double RandomNumbers::Uniform() {
  state_ += 0x9E3779B97F4A7C15u;
  return (static_cast<double>(Mix(state_) >> 11) + 0.5) * 0x1p-53;
}

double RandomNumbers::Normal() {
  const double radius = std::sqrt(-2 * std::log(Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

// Abramowitz and Stegun 26.2.23 within 4.5e-4, then steps of Halley's method.
double InverseNormal(double p) {
  const bool upper = p > 0.5;
  const double tail = upper ? 1 - p : p;
  const double t = std::sqrt(-2 * std::log(tail));
  const double numerator = 2.515517 + t * (0.802853 + t * 0.010328);
  const double denominator = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
  double x = numerator / denominator - t;  // of the lower tail
  for (int step = 0; step < 2; ++step) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    if (density == 0) break;
    const double error = (NormalProbability(x) - tail) / density;
    x -= error / (1 + x * error / 2);
  }
  return upper ? -x : x;
}

Distribution Distribution::TruncatedNormal(double mean, double std, double low, double high) {
  Distribution d = {Kind::kTruncatedNormal, mean, std, low, high};
  d.mirrored = low > mean;
  const double first = (low - mean) / std, last = (high - mean) / std;
  d.below = NormalProbability(d.mirrored ? -last : first);
  d.above = NormalProbability(d.mirrored ? -first : last);
  return d;
}

double Distribution::Draw(RandomNumbers& random) const {
  switch (kind) {
    case Kind::kConstant:
      return center;
    case Kind::kUniform:
      return center + width * (2 * random.Uniform() - 1);
    case Kind::kNormal:
      return center + width * random.Normal();
    case Kind::kTruncatedNormal: {
      // As in torch: the number whose probability is uniform between those of the limits.
      const double p = std::clamp(below + (above - below) * random.Uniform(), 0x1p-1020, 1 - 0x1p-53);
      const double x = InverseNormal(p);
      return std::clamp(center + width * (mirrored ? -x : x), low, high);
    }
  }
  return 0;
}

}  // namespace hlokit::lazy::nn
