// Numbers by formula: 32-bit arithmetic without a library, so the same bits everywhere. Stream k, place i.
#ifndef HLOKIT_TRACER_HASH_NUMBERS_H_
#define HLOKIT_TRACER_HASH_NUMBERS_H_

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

// In [-1, 1).
inline double HashNumber(uint32_t k, uint32_t i) { return static_cast<double>(HashWord(k, i)) / 2147483648.0 - 1; }

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_HASH_NUMBERS_H_
