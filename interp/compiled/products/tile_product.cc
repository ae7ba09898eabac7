// SPDX-License-Identifier: Apache-2.0
// Tiles of the result are held in registers: some rows, and up to four vectors of columns.
#include "interp/compiled/products/tile_product.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "interp/processor/instruction_set.h"
#include "interp/processor/vector_transpose.h"

namespace hlokit::interp::compiled {
namespace {

#define HLOKIT_UNROLL _Pragma("GCC unroll 16")
#define HLOKIT_INLINE inline __attribute__((always_inline))

constexpr int64_t kLine = 16;  // elements of a line of the cache
// The right operand is packed in columns of whole vectors of any width.
constexpr int64_t kPackedColumns = 16;

int64_t PackedRow(const TileProduct& s) { return (s.n + kPackedColumns - 1) / kPackedColumns * kPackedColumns; }

bool IsPacked(const TileProduct& s) { return s.rhs_column != 1 || s.n % kPackedColumns != 0; }

#if defined(__x86_64__)
template <int kLanes>
struct VectorOf;
template <>
struct VectorOf<8> {
  typedef float Type __attribute__((vector_size(32)));
};
template <>
struct VectorOf<16> {
  typedef float Type __attribute__((vector_size(64)));
};

// One tile: `kRows` rows and `kWide` vectors of columns, of which `columns` exist.
template <int kLanes, int kRows, int kWide>
HLOKIT_INLINE void ComputeTile(const TileProduct& s, const float* lhs, const float* rhs, int64_t rhs_row, float* result,
                               int64_t depth, bool first, int64_t columns) {
  using Vector = typename VectorOf<kLanes>::Type;
  Vector sums[kRows][kWide], totals[kRows][kWide];
  const float* row[kRows];
  HLOKIT_UNROLL
  for (int r = 0; r < kRows; ++r) row[r] = lhs + r * s.lhs_row;
  const auto add = [&](int64_t p) __attribute__((always_inline)) {
    Vector w[kWide];
    HLOKIT_UNROLL
    for (int v = 0; v < kWide; ++v) std::memcpy(&w[v], rhs + p * rhs_row + v * kLanes, sizeof(Vector));
    HLOKIT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float x = row[r][p * s.lhs_column];
      HLOKIT_UNROLL
      for (int v = 0; v < kWide; ++v) sums[r][v] = sums[r][v] + w[v] * x;
    }
  };
  for (int64_t begin = 0; begin < depth; begin += kTileTerms) {
    const int64_t end = std::min(begin + kTileTerms, depth);
    HLOKIT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      HLOKIT_UNROLL
      for (int v = 0; v < kWide; ++v) sums[r][v] = Vector{};
    }
    // The rows that follow are fetched meanwhile.
    if (s.lhs_column == 1) {
      for (int64_t p = begin; p < end;) {
        HLOKIT_UNROLL
        for (int r = 0; r < kRows; ++r) __builtin_prefetch(row[r] + kRows * s.lhs_row + p);
        for (const int64_t last = std::min(p + kLine, end); p < last; ++p) add(p);
      }
    } else {
      for (int64_t p = begin; p < end; ++p) {
        __builtin_prefetch(row[0] + p * s.lhs_column + kLine);
        add(p);
      }
    }
    HLOKIT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      HLOKIT_UNROLL
      for (int v = 0; v < kWide; ++v) totals[r][v] = begin == 0 ? sums[r][v] : totals[r][v] + sums[r][v];
    }
  }
  HLOKIT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HLOKIT_UNROLL
    for (int v = 0; v < kWide; ++v) {
      float* const to = result + r * s.result_row + v * kLanes;
      // Only the last vector may have fewer columns.
      const bool whole = v + 1 < kWide || columns >= kWide * kLanes;
      const size_t bytes = static_cast<size_t>(columns - v * kLanes) * sizeof(float);
      if (!first) {
        Vector before = {};
        whole ? std::memcpy(&before, to, sizeof(Vector)) : std::memcpy(&before, to, bytes);
        totals[r][v] = before + totals[r][v];
      }
      whole ? std::memcpy(to, &totals[r][v], sizeof(Vector)) : std::memcpy(to, &totals[r][v], bytes);
    }
  }
}

template <int kLanes, int kWide>
HLOKIT_INLINE void ComputeColumns(const TileProduct& s, const float* lhs, const float* rhs, int64_t rhs_row,
                                  float* result, int64_t depth, bool first, int64_t columns) {
  constexpr int kRows = 6;
  int64_t i = 0;
  const auto rest = [&] { return s.m - i; };
  const auto compute = [&](auto rows) __attribute__((always_inline)) {
    constexpr int kCount = decltype(rows)::value;
    ComputeTile<kLanes, kCount, kWide>(s, lhs + i * s.lhs_row, rhs, rhs_row, result + i * s.result_row, depth, first,
                                       columns);
    i += kCount;
  };
  // Of 8 rows, two tiles of 4.
  while (rest() >= kRows && rest() != kRows + 2) compute(std::integral_constant<int, 6>());
  while (rest() >= 4) compute(std::integral_constant<int, 4>());
  if (rest() == 3) compute(std::integral_constant<int, 3>());
  if (rest() == 2) compute(std::integral_constant<int, 2>());
  if (rest() == 1) compute(std::integral_constant<int, 1>());
}

template <int kLanes, int kMaxWide>
HLOKIT_INLINE void Compute(const TileProduct& s, const float* lhs, const float* rhs, int64_t rhs_row, float* result) {
  const int64_t parts = (s.k + kTileDepth - 1) / kTileDepth;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t p = part * s.k / parts, depth = (part + 1) * s.k / parts - p;
    const float* const left = lhs + p * s.lhs_column;
    const float* const right = rhs + p * rhs_row;
    // As many vectors in all tiles, or one less.
    const int64_t vectors = (s.n + kLanes - 1) / kLanes;
    const int64_t tiles = (vectors + kMaxWide - 1) / kMaxWide;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t begin = tile * vectors / tiles, wide = (tile + 1) * vectors / tiles - begin;
      const int64_t j = begin * kLanes;
      const auto compute = [&](auto width) __attribute__((always_inline)) {
        ComputeColumns<kLanes, decltype(width)::value>(s, left, right + j, rhs_row, result + j, depth, p == 0, s.n - j);
      };
      if (wide == 1) compute(std::integral_constant<int, 1>());
      if (wide == 2) compute(std::integral_constant<int, 2>());
      if constexpr (kMaxWide > 2) {
        if (wide == 3) compute(std::integral_constant<int, 3>());
        if (wide == 4) compute(std::integral_constant<int, 4>());
      }
    }
  }
}

// Copies the right operand with zeros as padding.
void PackRows(const TileProduct& s, const float* rhs, float* packed) {
  const int64_t row = PackedRow(s);
  for (int64_t p = 0; p < s.k; ++p, packed += row) {
    if (s.rhs_column == 1) {
      std::memcpy(packed, rhs + p * s.rhs_row, static_cast<size_t>(s.n) * sizeof(float));
    } else {
      for (int64_t j = 0; j < s.n; ++j) packed[j] = rhs[p * s.rhs_row + j * s.rhs_column];
    }
    std::fill(packed + s.n, packed + row, 0.0f);
  }
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma"))) void PackTransposed(const TileProduct& s,
                                                                                      const float* rhs, float* packed) {
  constexpr int64_t kLanes = 16;
  const int64_t row = PackedRow(s);
  for (int64_t j = 0; j < s.n; j += kLanes) {
    int64_t p = 0;
    for (; j + kLanes <= s.n && p + kLanes <= s.k; p += kLanes) {
      WordVector r[kLanes];
      HLOKIT_UNROLL
      for (int i = 0; i < kLanes; ++i) std::memcpy(&r[i], rhs + (j + i) * s.rhs_column + p, sizeof(r[i]));
      TransposeVectors(r);
      HLOKIT_UNROLL
      for (int i = 0; i < kLanes; ++i) std::memcpy(packed + (p + i) * row + j, &r[i], sizeof(r[i]));
    }
    for (; p < s.k; ++p) {
      for (int64_t i = 0; i < kLanes; ++i) packed[p * row + j + i] = j + i < s.n ? rhs[(j + i) * s.rhs_column + p] : 0;
    }
  }
}

__attribute__((target("avx2,fma"))) void Avx2Product(const TileProduct& s, const float* lhs, const float* rhs,
                                                     float* result, float* scratch) {
  if (IsPacked(s)) PackRows(s, rhs, scratch);
  Compute<8, 2>(s, lhs, IsPacked(s) ? scratch : rhs, IsPacked(s) ? PackedRow(s) : s.rhs_row, result);
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma,prefer-vector-width=512"))) void Avx512Product(
    const TileProduct& s, const float* lhs, const float* rhs, float* result, float* scratch) {
  if (IsPacked(s)) s.rhs_row == 1 ? PackTransposed(s, rhs, scratch) : PackRows(s, rhs, scratch);
  Compute<16, 4>(s, lhs, IsPacked(s) ? scratch : rhs, IsPacked(s) ? PackedRow(s) : s.rhs_row, result);
}
#endif

}  // namespace

int64_t TileProduct::scratch_size() const { return IsPacked(*this) ? k * PackedRow(*this) : 0; }

TileProductFunction TileProductOf() {
#if defined(__x86_64__)
  return ForHost<TileProductFunction>(nullptr, Avx2Product, Avx512Product);
#else
  return nullptr;
#endif
}

}  // namespace hlokit::interp::compiled
