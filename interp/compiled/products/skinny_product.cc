// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/products/skinny_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {
namespace {

#define HLOKIT_UNROLL _Pragma("GCC unroll 16")
#define HLOKIT_INLINE inline __attribute__((always_inline))

HLOKIT_INLINE float Widen(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }

// Of two vectors in `kRuns` runs each: lanes of the first or second run of each pair, the pairs of one vector after
// those of the other.
template <int kLanes, int kRuns>
constexpr std::array<uint32_t, kLanes> LanesOfPairs(int second) {
  std::array<uint32_t, kLanes> lanes = {};
  constexpr int kRun = kLanes / kRuns;
  for (int l = 0; l < kLanes; ++l) {
    const int run = l / kRun, vector = run / (kRuns / 2);
    lanes[static_cast<size_t>(l)] =
        static_cast<uint32_t>(vector * kLanes + (2 * (run % (kRuns / 2)) + second) * kRun + l % kRun);
  }
  return lanes;
}

// The types are written out: the compiler does not convert vectors of dependent types.
template <int kLanes>
struct VectorTypes;
#define HLOKIT_VECTOR_TYPES(LANES)                                                          \
  template <>                                                                               \
  struct VectorTypes<LANES> {                                                               \
    typedef float Float __attribute__((vector_size(LANES * 4)));                            \
    typedef uint32_t Word __attribute__((vector_size(LANES * 4)));                          \
    typedef uint16_t Half __attribute__((vector_size(LANES * 2)));                          \
    static HLOKIT_INLINE void Widen(const Half& half, Word* word) {                         \
      *word = __builtin_convertvector(half, Word) << 16;                                    \
    }                                                                                       \
    template <int kRuns>                                                                    \
    static HLOKIT_INLINE void AddPairs(const Float& a, const Float& b, Float* to) {         \
      static constexpr std::array<uint32_t, LANES> kFirst = LanesOfPairs<LANES, kRuns>(0);  \
      static constexpr std::array<uint32_t, LANES> kSecond = LanesOfPairs<LANES, kRuns>(1); \
      Word first, second;                                                                   \
      std::memcpy(&first, kFirst.data(), sizeof(first));                                    \
      std::memcpy(&second, kSecond.data(), sizeof(second));                                 \
      *to = __builtin_shuffle(a, b, first) + __builtin_shuffle(a, b, second);               \
    }                                                                                       \
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

  // Sets sums[c] to the sum of the lanes of vectors[c].
  template <int kCount>
  static HLOKIT_INLINE void SumLanes(const Float* vectors, float* sums) {
    if constexpr (kCount == 4) {
      // Halves of two vectors are added at once, then quarters of all four, then smaller parts.
      Float half[2], part;
      for (int i : {0, 1}) {
        VectorTypes<kLanes>::template AddPairs<2>(vectors[2 * i], vectors[2 * i + 1], &half[i]);
      }
      VectorTypes<kLanes>::template AddPairs<4>(half[0], half[1], &part);
      if constexpr (kLanes >= 8) VectorTypes<kLanes>::template AddPairs<8>(part, part, &part);
      if constexpr (kLanes >= 16) VectorTypes<kLanes>::template AddPairs<16>(part, part, &part);
      std::memcpy(sums, &part, kCount * sizeof(float));
    } else {
      for (int c = 0; c < kCount; ++c) SumAll(vectors[c], &sums[c]);
    }
  }

 private:
  static HLOKIT_INLINE void SumAll(const Float& vector, float* sum) {
    float lanes[kLanes];
    std::memcpy(lanes, &vector, sizeof(lanes));
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    }
    *sum = lanes[0];
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

// `kCount` rows of the right operand from row `p` on, and what they are multiplied with. `kRows`: rows of the left
// operand if there is one; 0: s.m.
template <int kLanes, bool kBf16, int kCount, int kRows>
class Rows {
 public:
  HLOKIT_INLINE Rows(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, int64_t p)
      : m_(s.m), stride_(s.rhs_stride) {
    for (int64_t i = 0; i < rows(); ++i) std::memcpy(x_[i], lhs + i * s.lhs_row + p, sizeof(x_[i]));
    HLOKIT_UNROLL
    for (int r = 0; r < kCount; ++r) row_[r] = rhs + (p + r) * s.rhs_stride * (kBf16 ? 2 : 4);
  }

  // Adds the products of columns [begin, end) to a part, or to a result of one row; the sum starts if `first`.
  HLOKIT_INLINE void Add(float* to, bool first, int64_t begin, int64_t end) const {
    constexpr int kWide = 2;
    int64_t j = begin;
    for (; j + kWide * kLanes <= end; j += kWide * kLanes) AddVectors<kWide>(to, first, j);
    for (; j + kLanes <= end; j += kLanes) AddVectors<1>(to, first, j);
    for (; j < end; ++j) {
      for (int64_t i = 0; i < rows(); ++i) {
        float sum = LoadOne<kBf16>(row_[0], j) * x_[i][0];
        HLOKIT_UNROLL
        for (int r = 1; r < kCount; ++r) sum = sum + LoadOne<kBf16>(row_[r], j) * x_[i][r];
        float* const at = At(to, i, j);
        *at = first ? sum : *at + sum;
      }
    }
  }

 private:
  using V = Vectors<kLanes>;

  HLOKIT_INLINE int64_t rows() const { return kRows > 0 ? kRows : m_; }
  HLOKIT_INLINE float* At(float* to, int64_t i, int64_t j) const {
    if constexpr (kRows == 1) return to + j;
    return to + (j / kSkinnyColumns * m_ + i) * kSkinnyColumns + j % kSkinnyColumns;
  }

  template <int kWide>
  HLOKIT_INLINE void AddVectors(float* to, bool first, int64_t j) const {
    typename V::Float w[kCount][kWide];
    HLOKIT_UNROLL
    for (int r = 0; r < kCount; ++r) {
      HLOKIT_UNROLL
      for (int v = 0; v < kWide; ++v) {
        V::template Load<kBf16>(row_[r], j + v * kLanes, &w[r][v]);
        // With more arithmetic the processor does not look ahead as far as to the rows that follow; with less, this
        // would make it slower.
        if constexpr (kRows != 1) {
          __builtin_prefetch(row_[r] + (kCount * stride_ + j + v * kLanes) * (kBf16 ? 2 : 4));
        }
      }
    }
    for (int64_t i = 0; i < rows(); ++i) {
      typename V::Float sum[kWide];
      HLOKIT_UNROLL
      for (int r = 0; r < kCount; ++r) {
        HLOKIT_UNROLL
        for (int v = 0; v < kWide; ++v) sum[v] = r == 0 ? w[r][v] * x_[i][r] : sum[v] + w[r][v] * x_[i][r];
      }
      float* const at = At(to, i, j);
      HLOKIT_UNROLL
      for (int v = 0; v < kWide; ++v) {
        if (!first) {
          typename V::Float before;
          V::Load(at + v * kLanes, &before);
          sum[v] = before + sum[v];
        }
        std::memcpy(at + v * kLanes, &sum[v], sizeof(sum[v]));
      }
    }
  }

  int64_t m_;
  int64_t stride_;
  float x_[kRows > 0 ? kRows : kMaxSkinnyRows][kCount];
  const std::byte* row_[kCount];
};

template <int kLanes, bool kBf16, int kRows>
HLOKIT_INLINE void ByRows(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, float* parts,
                          const SkinnyRange& range) {
  constexpr int64_t kSums = int64_t{8} << 10;  // which stay in the cache
  const int64_t columns = std::max<int64_t>(kSums / s.m / kSkinnyColumns, 1) * kSkinnyColumns;
  for (int64_t first = range.terms_begin; first < range.terms_end; first += kSkinnyDepth) {
    const int64_t last = std::min(range.terms_end, first + kSkinnyDepth);
    float* const to = parts == nullptr ? result : parts + first / kSkinnyDepth * s.part_size();
    for (int64_t begin = range.columns_begin; begin < range.columns_end; begin += columns) {
      const int64_t end = std::min(range.columns_end, begin + columns);
      int64_t p = first;
      for (; p + kSkinnyGroup <= last; p += kSkinnyGroup) {
        Rows<kLanes, kBf16, kSkinnyGroup, kRows>(s, lhs, rhs, p).Add(to, p == first, begin, end);
      }
      for (; p < last; ++p) Rows<kLanes, kBf16, 1, kRows>(s, lhs, rhs, p).Add(to, p == first, begin, end);
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
      V::Load(lhs + (i + r) * s.lhs_row + t, &x);
      HLOKIT_UNROLL
      for (int c = 0; c < kColumns; ++c) sums[r][c] = sums[r][c] + w[c] * x;
    }
  }
  HLOKIT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float sum[kColumns];
    V::template SumLanes<kColumns>(sums[r], sum);
    for (int c = 0; c < kColumns; ++c) {
      for (int64_t u = t; u < q; ++u) {
        sum[c] = sum[c] + lhs[(i + r) * s.lhs_row + u] * LoadOne<kBf16>(rhs, (j + c) * s.rhs_stride + u);
      }
      totals[(i + r) * total_columns + c] += double{sum[c]};
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
    double totals[kMaxSkinnyRows * kColumns];
    std::fill_n(totals, s.m * count, 0.0);
    for (int64_t p = 0; p < s.k; p += kSkinnyLaneDepth * kLanes) {
      const int64_t q = std::min(s.k, p + kSkinnyLaneDepth * kLanes);
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
HLOKIT_INLINE void Compute(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, float* parts,
                           const SkinnyRange& range) {
  if (s.rows_contiguous && s.m == 1) {
    s.bf16 ? ByRows<kLanes, true, 1>(s, lhs, rhs, result, parts, range)
           : ByRows<kLanes, false, 1>(s, lhs, rhs, result, parts, range);
  } else if (s.rows_contiguous) {
    s.bf16 ? ByRows<kLanes, true, 0>(s, lhs, rhs, result, parts, range)
           : ByRows<kLanes, false, 0>(s, lhs, rhs, result, parts, range);
  } else {
    s.bf16 ? ByColumns<kLanes, true>(s, lhs, rhs, result, range.columns_begin, range.columns_end)
           : ByColumns<kLanes, false>(s, lhs, rhs, result, range.columns_begin, range.columns_end);
  }
}

void BaselineProduct(const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, float* parts,
                     const SkinnyRange& range) {
  Compute<4>(s, lhs, rhs, result, parts, range);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void Avx2Product(const SkinnyProduct& s, const float* lhs, const std::byte* rhs,
                                                     float* result, float* parts, const SkinnyRange& range) {
  Compute<8>(s, lhs, rhs, result, parts, range);
}
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma,prefer-vector-width=512"))) void Avx512Product(
    const SkinnyProduct& s, const float* lhs, const std::byte* rhs, float* result, float* parts,
    const SkinnyRange& range) {
  Compute<16>(s, lhs, rhs, result, parts, range);
}
#endif

}  // namespace

void AddSkinnyParts(const SkinnyProduct& s, const float* parts, float* result, int64_t begin, int64_t end) {
  double sums[kSkinnyColumns];
  for (int64_t j = begin; j < end; j += kSkinnyColumns) {
    const int64_t count = std::min(end - j, kSkinnyColumns);
    for (int64_t i = 0; i < s.m; ++i) {
      const float* from = parts + j * s.m + i * kSkinnyColumns;
      std::fill_n(sums, kSkinnyColumns, 0.0);
      for (int64_t part = 0; part < s.parts(); ++part, from += s.part_size()) {
        for (int64_t c = 0; c < count; ++c) sums[c] += double{from[c]};
      }
      for (int64_t c = 0; c < count; ++c) result[i * s.result_row + j + c] = static_cast<float>(sums[c]);
    }
  }
}

SkinnyProductFunction SkinnyProductOf() {
#if defined(__x86_64__)
  return ForHost<SkinnyProductFunction>(BaselineProduct, Avx2Product, Avx512Product);
#else
  return BaselineProduct;
#endif
}

}  // namespace hlokit::interp::compiled
