// SPDX-License-Identifier: Apache-2.0
// Hashing for the intern tables: fast and seedless, so that table layouts are the same in every run. Not the module
// fingerprint (see fingerprint.h).
#ifndef HLOKIT_IR_CORE_HASHING_H_
#define HLOKIT_IR_CORE_HASHING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hlokit {

constexpr uint64_t MixHash(uint64_t a, uint64_t b) {
  // 64x64 -> 128 multiply, folded: every input bit affects every output bit.
  const unsigned __int128 product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t HashBytes(const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  uint64_t h = size;
  while (size >= 16) {
    uint64_t a, b;
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + 8, 8);
    h = MixHash(h ^ a, b);
    p += 16;
    size -= 16;
  }
  uint64_t a = 0, b = 0;
  if (size >= 8) {
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + size - 8, 8);
  } else if (size >= 4) {
    uint32_t lo, hi;
    std::memcpy(&lo, p, 4);
    std::memcpy(&hi, p + size - 4, 4);
    a = lo;
    b = hi;
  } else if (size > 0) {
    a = static_cast<unsigned char>(p[0]) | (static_cast<unsigned char>(p[size / 2]) << 8) |
        (static_cast<unsigned char>(p[size - 1]) << 16);
  }
  return MixHash(h ^ a, b);
}

// Returns true if two ranges of `size` bytes are equal. As memcmp, but inline, for the short texts of intern tables.
inline bool SameBytes(const void* left, const void* right, size_t size) {
  const char* a = static_cast<const char*>(left);
  const char* b = static_cast<const char*>(right);
  const auto differ = [](const char* x, const char* y) {
    uint64_t u, v;
    std::memcpy(&u, x, 8);
    std::memcpy(&v, y, 8);
    return u ^ v;
  };
  if (size > 64) return std::memcmp(a, b, size) == 0;
  if (size >= 8) {
    for (size_t i = 0; i + 8 < size; i += 8) {
      if (differ(a + i, b + i) != 0) return false;
    }
    return differ(a + size - 8, b + size - 8) == 0;
  }
  if (size >= 4) {
    uint32_t head[2], tail[2];
    std::memcpy(&head[0], a, 4);
    std::memcpy(&head[1], b, 4);
    std::memcpy(&tail[0], a + size - 4, 4);
    std::memcpy(&tail[1], b + size - 4, 4);
    return ((head[0] ^ head[1]) | (tail[0] ^ tail[1])) == 0;
  }
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

inline uint64_t HashBytes(std::string_view s) { return HashBytes(s.data(), s.size()); }

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_HASHING_H_
