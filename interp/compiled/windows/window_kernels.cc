// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/windows/window_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

// window_kernels_isa.h undefines what is defined for it.
// HLOKIT_NUMBERS: which lanes had no NaN so far. HLOKIT_MAX(a, b), HLOKIT_MIN(a, b): b if one is NaN or both are equal.
namespace hlokit::interp::compiled {
namespace {

namespace sse4 {
constexpr int kLanes = 4;
#if defined(__x86_64__)
#define HLOKIT_TARGET __attribute__((target("sse4.1")))
#else
#define HLOKIT_TARGET
#endif
#define HLOKIT_EVEN (Ints{0, 2, 4, 6})
#define HLOKIT_ODD (Ints{1, 3, 5, 7})
#define HLOKIT_LOW (Ints{0, 4, 1, 5})
#define HLOKIT_HIGH (Ints{2, 6, 3, 7})
#if defined(__x86_64__)
#define HLOKIT_NUMBERS __m128
#define HLOKIT_ALL_NUMBERS _mm_castsi128_ps(_mm_set1_epi32(-1))
#define HLOKIT_ADD_NUMBERS(k, a, b) k = _mm_and_ps(k, _mm_cmpord_ps(a, b))
#define HLOKIT_BOTH_NUMBERS(a, b) _mm_and_ps(a, b)
#define HLOKIT_ARE_NUMBERS(k) (_mm_movemask_ps(k) == 0xf)
#define HLOKIT_MAX(a, b) _mm_max_ps(a, b)
#define HLOKIT_MIN(a, b) _mm_min_ps(a, b)
#define HLOKIT_INTS(x) reinterpret_cast<__m128i>(x)
#define HLOKIT_DOUBLES(p) _mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd(reinterpret_cast<const double*>(p))))
#define HLOKIT_STORE_FLOATS(x, p) _mm_storel_pi(reinterpret_cast<__m64*>(p), _mm_cvtpd_ps(x))
#define HLOKIT_WIDEN(p) _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))
#define HLOKIT_NARROW(x, p) _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(x, x))
#define HLOKIT_STORE_BYTES(x, p) _mm_storeu_si32(p, _mm_packus_epi16(_mm_packus_epi32(x, x), _mm_setzero_si128()))
#define HLOKIT_WHERE(p, number, yes, no) \
  _mm_blendv_ps(no, yes,                 \
                _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_cvtepu8_epi32(_mm_loadu_si32(p)), _mm_set1_epi32(number))))
#else
#define HLOKIT_INTS(x) (x)
#define HLOKIT_DOUBLES(p) __builtin_convertvector(*reinterpret_cast<const HalfVector*>(p), Doubles)
#define HLOKIT_STORE_FLOATS(x, p) *reinterpret_cast<HalfVector*>(p) = __builtin_convertvector(x, HalfVector)
#define HLOKIT_WIDEN(p) __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Words)
#define HLOKIT_NARROW(x, p) *reinterpret_cast<Halves*>(p) = __builtin_convertvector(x, Halves)
#define HLOKIT_STORE_BYTES(x, p) *reinterpret_cast<Bytes*>(p) = __builtin_convertvector(x, Bytes)
#define HLOKIT_WHERE(p, number, yes, no) \
  (__builtin_convertvector(*reinterpret_cast<const Bytes*>(p), Ints) == number ? yes : no)
#define HLOKIT_NUMBERS Ints
#define HLOKIT_ALL_NUMBERS (Ints{} - 1)
#define HLOKIT_ADD_NUMBERS(k, a, b) k &= (a == a) & (b == b)
#define HLOKIT_BOTH_NUMBERS(a, b) ((a) & (b))
#define HLOKIT_ARE_NUMBERS(k) ((k[0] & k[1] & k[2] & k[3]) != 0)
#define HLOKIT_MAX(a, b) (a > b ? a : b)
#define HLOKIT_MIN(a, b) (a < b ? a : b)
#endif
// Without instructions for it, arrays of f16 are left to the exact engine.
#define HLOKIT_FROM_F16(x) (Vector{})
#define HLOKIT_TO_F16(x) (Halves{})
#include "interp/compiled/windows/window_kernels_isa.h"
}  // namespace sse4

#if defined(__x86_64__)
namespace avx2 {
constexpr int kLanes = 8;
#define HLOKIT_TARGET __attribute__((target("avx2,f16c")))
#define HLOKIT_EVEN (Ints{0, 2, 4, 6, 8, 10, 12, 14})
#define HLOKIT_ODD (Ints{1, 3, 5, 7, 9, 11, 13, 15})
#define HLOKIT_LOW (Ints{0, 8, 1, 9, 2, 10, 3, 11})
#define HLOKIT_HIGH (Ints{4, 12, 5, 13, 6, 14, 7, 15})
#define HLOKIT_NUMBERS __m256
#define HLOKIT_ALL_NUMBERS _mm256_castsi256_ps(_mm256_set1_epi32(-1))
#define HLOKIT_ADD_NUMBERS(k, a, b) k = _mm256_and_ps(k, _mm256_cmp_ps(a, b, _CMP_ORD_Q))
#define HLOKIT_BOTH_NUMBERS(a, b) _mm256_and_ps(a, b)
#define HLOKIT_ARE_NUMBERS(k) (_mm256_movemask_ps(k) == 0xff)
#define HLOKIT_MAX(a, b) _mm256_max_ps(a, b)
#define HLOKIT_MIN(a, b) _mm256_min_ps(a, b)
#define HLOKIT_INTS(x) reinterpret_cast<__m256i>(x)
#define HLOKIT_DOUBLES(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define HLOKIT_STORE_FLOATS(x, p) _mm_storeu_ps(p, _mm256_cvtpd_ps(x))
#define HLOKIT_WIDEN(p) _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))
#define HLOKIT_NARROW(x, p)                       \
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), \
                   _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)))
#define HLOKIT_STORE_BYTES(x, p)                                                                                 \
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p),                                                                \
                   _mm_packus_epi16(_mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)), \
                                    _mm_setzero_si128()))
#define HLOKIT_WHERE(p, number, yes, no)      \
  _mm256_blendv_ps(                           \
      no, yes,                                \
      _mm256_castsi256_ps(_mm256_cmpeq_epi32( \
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), _mm256_set1_epi32(number))))
#define HLOKIT_FROM_F16(x) _mm256_cvtph_ps(reinterpret_cast<__m128i>(x))
#define HLOKIT_TO_F16(x) reinterpret_cast<Halves>(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT))
#include "interp/compiled/windows/window_kernels_isa.h"
}  // namespace avx2

namespace avx512 {
constexpr int kLanes = 16;
#define HLOKIT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,prefer-vector-width=512")))
#define HLOKIT_EVEN (Ints{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30})
#define HLOKIT_ODD (Ints{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31})
#define HLOKIT_LOW (Ints{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23})
#define HLOKIT_HIGH (Ints{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})
#define HLOKIT_NUMBERS __mmask16
#define HLOKIT_ALL_NUMBERS 0xffff
#define HLOKIT_ADD_NUMBERS(k, a, b) k = _mm512_mask_cmp_ps_mask(k, a, b, _CMP_ORD_Q)
#define HLOKIT_BOTH_NUMBERS(a, b) static_cast<__mmask16>((a) & (b))
#define HLOKIT_ARE_NUMBERS(k) (k == 0xffff)
#define HLOKIT_MAX(a, b) _mm512_maskz_max_ps(0xffff, a, b)
#define HLOKIT_MIN(a, b) _mm512_maskz_min_ps(0xffff, a, b)
#define HLOKIT_INTS(x) reinterpret_cast<__m512i>(x)
#define HLOKIT_DOUBLES(p) _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p))
#define HLOKIT_STORE_FLOATS(x, p) _mm256_storeu_ps(p, _mm512_maskz_cvtpd_ps(0xff, x))
#define HLOKIT_WIDEN(p) _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))
#define HLOKIT_NARROW(x, p) _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, x))
#define HLOKIT_STORE_BYTES(x, p) _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(0xffff, x))
#define HLOKIT_WHERE(p, number, yes, no)                                                       \
  _mm512_mask_mov_ps(no,                                                                       \
                     _mm_cmpeq_epi8_mask(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), \
                                         _mm_set1_epi8(static_cast<char>(number))),            \
                     yes)
#define HLOKIT_FROM_F16(x) _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(x))
#define HLOKIT_TO_F16(x) reinterpret_cast<Halves>(_mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT))
#include "interp/compiled/windows/window_kernels_isa.h"
}  // namespace avx512
#endif

}  // namespace

const WindowKernels& WindowKernelsOf(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return avx512::kKernels;
  if (set == InstructionSet::kAvx2) return avx2::kKernels;
#else
  (void)set;
#endif
  return sse4::kKernels;
}

}  // namespace hlokit::interp::compiled
