// SPDX-License-Identifier: Apache-2.0
// Distributions of initial values, and the numbers that are drawn from them: the same for equal seeds on every
// platform, and for each stream (a tensor) its own.
#ifndef HLOKIT_TRACER_NN_DISTRIBUTIONS_H_
#define HLOKIT_TRACER_NN_DISTRIBUTIONS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace hlokit::lazy::nn {

// Numbers by position: splitmix64 of a counter.
class RandomNumbers {
 public:
  RandomNumbers(uint64_t seed, uint64_t stream) : state_(Mix(seed + 1) ^ Mix(stream * 0xD1B54A32D192ED03u + 7)) {}

  double Uniform();  // in (0, 1)
  double Normal();   // standard normal

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

struct Distribution {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal, kTruncatedNormal } kind = Kind::kConstant;
  double center = 0;         // the value, the middle, or the mean before truncation
  double width = 0;          // half the range, or the standard deviation before truncation
  double low = 0, high = 0;  // the limits of a truncated normal distribution
  // Of these limits, the probabilities that a number before truncation is less; mirrored if both are above the mean, so
  // that probabilities are not close to 1.
  double below = 0, above = 1;
  bool mirrored = false;

  static Distribution Constant(double value) { return {Kind::kConstant, value}; }
  static Distribution Uniform(double low, double high) { return {Kind::kUniform, (low + high) / 2, (high - low) / 2}; }
  static Distribution Normal(double mean, double std) { return {Kind::kNormal, mean, std}; }
  static Distribution TruncatedNormal(double mean, double std, double low, double high);

  // Draws a number.
  double Draw(RandomNumbers& random) const;
};

// Sets all values to numbers of the stream.
template <typename T>
void Fill(const Distribution& distribution, uint64_t seed, uint64_t stream, absl::Span<T> values) {
  RandomNumbers random(seed, stream);
  for (T& value : values) value = static_cast<T>(distribution.Draw(random));
}

// Returns x with the probability `p` that a standard normal number is less. Requires: 0 < p < 1.
double InverseNormal(double p);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_DISTRIBUTIONS_H_
