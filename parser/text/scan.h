// SPDX-License-Identifier: Apache-2.0
// Scanning for the end of a name, or for the next of a few characters. Sixteen bytes at a time with SSE2, which every
// x86-64 has, and byte by byte elsewhere and near the end: bytes from `end` on are never read.
#ifndef HLOKIT_PARSER_TEXT_SCAN_H_
#define HLOKIT_PARSER_TEXT_SCAN_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hlokit {

// Character classes. A name is [A-Za-z0-9_.-]+ that does not begin with a digit, '.' or '-'.
namespace char_class {
inline constexpr uint8_t kNameStart = 1;
inline constexpr uint8_t kName = 2;
inline constexpr uint8_t kDigit = 4;
inline constexpr uint8_t kWhitespace = 8;
extern const uint8_t kTable[256];
inline bool Is(char c, uint8_t classes) { return (kTable[static_cast<unsigned char>(c)] & classes) != 0; }
inline bool IsDigit(char c) { return Is(c, kDigit); }
inline bool IsName(char c) { return Is(c, kName); }
}  // namespace char_class

namespace scan {

// Returns the first byte of [p, end) that is not a name character, or `end`.
inline const char* NameEnd(const char* p, const char* end) {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    // Unsigned `x - first <= size` is equivalent to `min(x - first, size) == x - first`.
    const auto in_range = [](__m128i v, char first, char size) {
      const __m128i offset = _mm_sub_epi8(v, _mm_set1_epi8(first));
      return _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8(size)), offset);
    };
    const __m128i letter = in_range(_mm_or_si128(x, _mm_set1_epi8(0x20)), 'a', 'z' - 'a');
    const __m128i digit = _mm_andnot_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('/')), in_range(x, '-', '9' - '-'));
    const __m128i name = _mm_or_si128(_mm_or_si128(letter, digit), _mm_cmpeq_epi8(x, _mm_set1_epi8('_')));
    const auto others = static_cast<uint32_t>(_mm_movemask_epi8(name)) ^ 0xffffu;
    if (others != 0) return p + std::countr_zero(others);
  }
#endif
  while (p < end && char_class::IsName(*p)) ++p;
  return p;
}

// Returns the first byte of [p, end) that is one of `wanted`, or `end`.
template <char... wanted>
const char* FindAny(const char* p, const char* end) {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m128i found = _mm_setzero_si128();
    ((found = _mm_or_si128(found, _mm_cmpeq_epi8(x, _mm_set1_epi8(wanted)))), ...);
    const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(found));
    if (mask != 0) return p + std::countr_zero(mask);
  }
#endif
  while (p < end && ((*p != wanted) && ...)) ++p;
  return p;
}

// Returns the position after the brace that closes the one at `open`, ignoring braces in quotes; null if there is none.
inline const char* BracedEnd(const char* open, const char* end) {
  int64_t depth = 0;
  for (const char* p = open;;) {
    p = FindAny<'{', '}', '"'>(p, end);
    if (p >= end) return nullptr;
    const char c = *p++;
    if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (--depth == 0) return p;
    } else {
      for (;;) {
        p = FindAny<'"', '\\'>(p, end);
        if (p >= end) return nullptr;
        if (*p++ == '"') break;
        if (p < end) ++p;  // any escaped character
      }
    }
  }
}

}  // namespace scan
}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_SCAN_H_
