// SPDX-License-Identifier: Apache-2.0
// Deterministic pseudo-random values from 32-bit integer arithmetic: the same bits on every platform. k: stream, i:
// index.
#ifndef HLOKIT_TRACER_GRAPH_DETERMINISTIC_INIT_H_
#define HLOKIT_TRACER_GRAPH_DETERMINISTIC_INIT_H_

#include <cmath>
#include <cstdint>

namespace hlokit::lazy {

inline uint32_t HashWord(uint32_t k, uint32_t i) {
  uint32_t h = i * 0x9E3779B1u + (k + 1) * 0x85EBCA77u;
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  h ^= h >> 16;
  return h;
}

// Returns a value in [-1, 1).
inline double HashedValue(uint32_t k, uint32_t i) { return static_cast<double>(HashWord(k, i)) / 2147483648.0 - 1; }

// Returns a smooth alternative based on the library's sine.
inline double SineValue(uint32_t k, uint32_t i) {
  return std::sin((0.1 + 0.7 * static_cast<double>(k)) + 0.013 * static_cast<double>(i));
}

enum class InitPattern { kHash, kSine };
inline double PatternValue(InitPattern f, uint32_t k, uint32_t i) {
  return f == InitPattern::kHash ? HashedValue(k, i) : SineValue(k, i);
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_DETERMINISTIC_INIT_H_
