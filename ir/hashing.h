// Hashing for the intern tables: fast and seedless, so that table layouts are the same in every run. Not the module
// fingerprint (see fingerprint.h).
#ifndef HLOKIT_IR_HASHING_H_
#define HLOKIT_IR_HASHING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hlokit {

constexpr uint64_t MixHash(uint64_t a, uint64_t b) {
  // 64x64 -> 128 multiply, folded: every input bit reaches every output bit.
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

inline uint64_t HashBytes(std::string_view s) { return HashBytes(s.data(), s.size()); }

}  // namespace hlokit

#endif  // HLOKIT_IR_HASHING_H_
