// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/skinny_product.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "interp/exact/processor/instruction_set.h"

namespace hlokit::interp::compiled {
namespace {

#define HLOKIT_UNROLL _Pragma("GCC unroll 16")
#define HLOKIT_INLINE inline __attribute__((always_inline))

// Elements of the right operand that are added before the sum joins those before: shorter sums have smaller errors.
constexpr int64_t kGroup = 8;
// Elements of the contraction whose sum is one of f32; these sums are added in double. A sum of f32 has an error that
// grows with its number of additions: kDepthOfRows / kGroup, or kDepthOfLane in each lane.
constexpr int64_t kDepthOfRows = 128;
constexpr int64_t kDepthOfLane = 64;

HLOKIT_INLINE float Widen(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }

// The types are written out: the compiler does not convert vectors of dependent types.
template <int kLanes>
struct VectorTypes;
#define HLOKIT_VECTOR_TYPES(LANES)                                  \
  template <>                                                       \
  struct VectorTypes<LANES> {                                       \
    typedef float Float __attribute__((vector_size(LANES * 4)));    \
    typedef uint32_t Word __attribute__((vector_size(LANES * 4)));  \
    typedef uint16_t Half __attribute__((vector_size(LANES * 2)));  \
    static HLOKIT_INLINE void Widen(const Half& half, Word* word) { \
      *word = __builtin_convertvector(half, Word) << 16;            \
    }                                                               \
  };
HLOKIT_VECTOR_TYPES(4)
HLOKIT_VECTOR_TYPES(8)
HLOKIT_VECTOR_TYPES(16)
#undef HLOKIT_VECTOR_TYPES

template <int kLanes>
struct Vectors : VectorTypes<kLanes> {
  using Float = typename VectorTypes<kLanes>::Float;
  using Word = typename VectorTypes<kLanes>::Word;
  using Half = typename VectorTypes<kLanes>::Half;

  // Vectors are not returned: functions without these instructions would pass them in memory.
  static HLOKIT_INLINE void Load(const void* data, Float* to) { std::memcpy(to, data, sizeof(Float)); }
  template <bool kBf16>
  static HLOKIT_INLINE void Load(const std::byte* data, int64_t index, Float* to) {
    if constexpr (kBf16) {
      Half half;
      std::memcpy(&half, data + index * 2, sizeof(half));
      Word word;
      VectorTypes<kLanes>::Widen(half, &word);
      std::memcpy(to, &word, sizeof(word));
    } else {
      Load(data + index * 4, to);
    }
  }
};

template <bool kBf16>
HLOKIT_INLINE float LoadOne(const std::byte* data, int64_t index) {
  if constexpr (kBf16) {
    uint16_t half;
    std::memcpy(&half, data + index * 2, 2);
    return Widen(half);
  } else {
    float value;
    std::memcpy(&value, data + index * 4, 4);
    return value;
  }
}

// Adds `kCount` rows of the right operand, from row `p` on; the sum starts if `first`.
template <int kLanes, bool kBf16, int kCount>
HLOKIT_INLINE void AddRows(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, int64_t begin,
                           int64_t end, int64_t p, bool first) {
  using V = Vectors<kLanes>;
  float x[kMaxSkinnyRows][kCount];
  for (int64_t i = 0; i < s.m; ++i) std::memcpy(x[i], lhs + i * s.k + p, sizeof(x[i]));
  const std::byte* row[kCount];
  HLOKIT_UNROLL
  for (int r = 0; r < kCount; ++r) row[r] = rhs + (p + r) * s.rhs_stride * (kBf16 ? 2 : 4);
  int64_t j = begin;
  for (; j + kLanes <= end; j += kLanes) {
    typename V::Float w[kCount];
    HLOKIT_UNROLL
    for (int r = 0; r < kCount; ++r) {
      V::template Load<kBf16>(row[r], j, &w[r]);
      // The rows that follow, of which the processor does not know yet.
      __builtin_prefetch(row[r] + (kCount * s.rhs_stride + j) * (kBf16 ? 2 : 4));
    }
    for (int64_t i = 0; i < s.m; ++i) {
      typename V::Float sum = w[0] * x[i][0];
      HLOKIT_UNROLL
      for (int r = 1; r < kCount; ++r) sum = sum + w[r] * x[i][r];
      float* const to = result + i * s.result_row + j;
      if (!first) {
        typename V::Float before;
        V::Load(to, &before);
        sum = before + sum;
      }
      std::memcpy(to, &sum, sizeof(sum));
    }
  }
  for (; j < end; ++j) {
    for (int64_t i = 0; i < s.m; ++i) {
      float sum = LoadOne<kBf16>(row[0], j) * x[i][0];
      HLOKIT_UNROLL
      for (int r = 1; r < kCount; ++r) sum = sum + LoadOne<kBf16>(row[r], j) * x[i][r];
      float* const to = result + i * s.result_row + j;
      *to = first ? sum : *to + sum;
    }
  }
}

template <int kLanes, bool kBf16>
HLOKIT_INLINE void ByRows(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, double* sums,
                          int64_t begin, int64_t end) {
  const int64_t columns = end - begin;
  for (int64_t first = 0; first < s.k; first += kDepthOfRows) {
    const int64_t last = std::min(s.k, first + kDepthOfRows);
    int64_t p = first;
    for (; p + kGroup <= last; p += kGroup) {
      AddRows<kLanes, kBf16, kGroup>(s, lhs, rhs, result, begin, end, p, p == first);
    }
    for (; p < last; ++p) AddRows<kLanes, kBf16, 1>(s, lhs, rhs, result, begin, end, p, p == first);
    if (s.k <= kDepthOfRows) return;
    for (int64_t i = 0; i < s.m; ++i) {
      float* const part = result + i * s.result_row + begin;
      double* const sum = sums + i * columns;
      if (first == 0) {
        for (int64_t j = 0; j < columns; ++j) sum[j] = double{part[j]};
      } else if (last < s.k) {
        for (int64_t j = 0; j < columns; ++j) sum[j] += double{part[j]};
      } else {
        for (int64_t j = 0; j < columns; ++j) part[j] = static_cast<float>(sum[j] + double{part[j]});
      }
    }
  }
}

// Adds the products of elements [p, q) of `kColumns` columns and `kRows` rows to `totals`, whose rows have
// `total_columns`.
template <int kLanes, bool kBf16, int kRows, int kColumns>
HLOKIT_INLINE void AddColumns(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, double* totals,
                              int total_columns, int64_t i, int64_t j, int64_t p, int64_t q) {
  using V = Vectors<kLanes>;
  typename V::Float sums[kRows][kColumns] = {};
  int64_t t = p;
  for (; t + kLanes <= q; t += kLanes) {
    typename V::Float w[kColumns];
    HLOKIT_UNROLL
    for (int c = 0; c < kColumns; ++c) V::template Load<kBf16>(rhs, (j + c) * s.rhs_stride + t, &w[c]);
    HLOKIT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      typename V::Float x;
      V::Load(lhs + (i + r) * s.k + t, &x);
      HLOKIT_UNROLL
      for (int c = 0; c < kColumns; ++c) sums[r][c] = sums[r][c] + w[c] * x;
    }
  }
  HLOKIT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HLOKIT_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      float lanes[kLanes];
      std::memcpy(lanes, &sums[r][c], sizeof(lanes));
      for (int width = kLanes / 2; width > 0; width /= 2) {
        for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
      }
      float sum = lanes[0];
      for (int64_t u = t; u < q; ++u) {
        sum = sum + lhs[(i + r) * s.k + u] * LoadOne<kBf16>(rhs, (j + c) * s.rhs_stride + u);
      }
      totals[(i + r) * total_columns + c] += double{sum};
    }
  }
}

template <int kLanes, bool kBf16>
HLOKIT_INLINE void ByColumns(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result,
                             int64_t begin, int64_t end) {
  constexpr int kRows = 4, kColumns = 4;
  for (int64_t j = begin; j < end;) {
    const bool wide = j + kColumns <= end;
    const int count = wide ? kColumns : 1;
    double totals[kMaxSkinnyRows * kColumns] = {};
    for (int64_t p = 0; p < s.k; p += kDepthOfLane * kLanes) {
      const int64_t q = std::min(s.k, p + kDepthOfLane * kLanes);
      int64_t i = 0;
      if (wide) {
        for (; i + kRows <= s.m; i += kRows) {
          AddColumns<kLanes, kBf16, kRows, kColumns>(s, lhs, rhs, totals, count, i, j, p, q);
        }
        for (; i < s.m; ++i) AddColumns<kLanes, kBf16, 1, kColumns>(s, lhs, rhs, totals, count, i, j, p, q);
      } else {
        for (; i < s.m; ++i) AddColumns<kLanes, kBf16, 1, 1>(s, lhs, rhs, totals, count, i, j, p, q);
      }
    }
    for (int64_t i = 0; i < s.m; ++i) {
      for (int c = 0; c < count; ++c) result[i * s.result_row + j + c] = static_cast<float>(totals[i * count + c]);
    }
    j += count;
  }
}

template <int kLanes>
HLOKIT_INLINE void Compute(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, double* sums,
                           int64_t begin, int64_t end) {
  if (s.rows_contiguous) {
    s.bf16 ? ByRows<kLanes, true>(s, lhs, rhs, result, sums, begin, end)
           : ByRows<kLanes, false>(s, lhs, rhs, result, sums, begin, end);
  } else {
    s.bf16 ? ByColumns<kLanes, true>(s, lhs, rhs, result, begin, end)
           : ByColumns<kLanes, false>(s, lhs, rhs, result, begin, end);
  }
}

void BaselineProduct(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, double* sums,
                     int64_t begin, int64_t end) {
  Compute<4>(s, lhs, rhs, result, sums, begin, end);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void Avx2Product(const SkinnyProduct& s, const float* lhs, const std::byte* rhs,
                                                     float* result, double* sums, int64_t begin, int64_t end) {
  Compute<8>(s, lhs, rhs, result, sums, begin, end);
}
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma,prefer-vector-width=512"))) void Avx512Product(
    const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, double* sums, int64_t begin,
    int64_t end) {
  Compute<16>(s, lhs, rhs, result, sums, begin, end);
}
#endif

}  // namespace

SkinnyProductFunction SkinnyProductOf() {
#if defined(__x86_64__)
  switch (HostInstructionSet()) {
    case InstructionSet::kAvx512:
      return Avx512Product;
    case InstructionSet::kAvx2:
      return Avx2Product;
    case InstructionSet::kSse4:
      break;
  }
#endif
  return BaselineProduct;
}

}  // namespace hlokit::interp::compiled
