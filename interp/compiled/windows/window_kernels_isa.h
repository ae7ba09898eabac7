// SPDX-License-Identifier: Apache-2.0
// Included by window_kernels.cc once for each instruction set, within a namespace of its own. HLOKIT_TARGET: attribute
// of functions; kLanes: floats of a vector; HLOKIT_EVEN, HLOKIT_ODD: the numbers of every other element of two vectors;
// HLOKIT_LOW, HLOKIT_HIGH: of the elements of two vectors in turns. Loops over the vectors of a block are unrolled, so
// that these stay in registers.

typedef float Vector __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint16_t Halves __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));
typedef uint8_t Bytes __attribute__((vector_size(kLanes), aligned(1), may_alias));
// Doubles of one register, and as many floats.
typedef float HalfVector __attribute__((vector_size(kLanes * 2), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kLanes * 4), aligned(8), may_alias));

#define HLOKIT_INLINE HLOKIT_TARGET inline __attribute__((always_inline))

// Rounds to the narrow type. NaN stays NaN.
template <WindowType kType>
HLOKIT_INLINE Vector Rounded(Vector x) {
  if constexpr (kType == WindowType::kBF16) {
    const Words bits = reinterpret_cast<Words>(x);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
    return x == x ? reinterpret_cast<Vector>(rounded) : x;
  } else if constexpr (kType == WindowType::kF16) {
    return HLOKIT_FROM_F16(HLOKIT_TO_F16(x));
  } else {
    return x;
  }
}

template <WindowType kType>
HLOKIT_INLINE Vector Scaled(Vector x, WindowScale scale) {
  if (scale.op == WindowScale::Op::kMultiply) return Rounded<kType>(x * scale.by);
  return scale.op == WindowScale::Op::kDivide ? Rounded<kType>(x / scale.by) : x;
}

// Calls body(first, vectors) for blocks of `kBlock` vectors, then of one. The last vector of more than one may begin
// before the end of the one before it. Returns the number of elements done: all, or none of less than a vector.
template <int kBlock, typename Body>
HLOKIT_INLINE int64_t ForEachBlock(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kBlock * kLanes <= n; i += kBlock * kLanes) body(i, std::integral_constant<int, kBlock>());
  for (; i + kLanes <= n; i += kLanes) body(i, std::integral_constant<int, 1>());
  if (i < n && n >= kLanes) body(n - kLanes, std::integral_constant<int, 1>());
  return n >= kLanes ? n : 0;
}

// Prefetches memory that is read soon, a part for each position.
class Prefetcher {
 public:
  HLOKIT_INLINE Prefetcher(WindowPrefetch prefetch, int64_t positions)
      : next_(prefetch.data), end_(prefetch.data + prefetch.bytes) {
    const int64_t lines = (prefetch.bytes + kLine - 1) / kLine;
    part_ = lines == 0 ? 0 : (lines + positions - 1) / positions * kLine;
  }
  HLOKIT_INLINE void Next() {
    const std::byte* const end = std::min(next_ + part_, end_);
    for (; next_ < end; next_ += kLine) __builtin_prefetch(next_);
  }

 private:
  static constexpr int64_t kLine = 64;
  const std::byte* next_;
  const std::byte* const end_;
  int64_t part_;
};

// Calls body(columns, count, first) for each position of the line: the columns of its window, and the number of its
// first feature.
template <typename Body>
HLOKIT_INLINE void ForEachPosition(const WindowLine& line, WindowPrefetch prefetch, const Body& body) {
  Prefetcher prefetcher(prefetch, line.positions);
  for (int64_t p = 0; p < line.positions; ++p) {
    prefetcher.Next();
    body(line.columns + line.begin[p], line.begin[p + 1] - line.begin[p], p * line.features);
  }
}

// The best element of one row in each window; sets `numbers` to those lanes that had no NaN. kCount: columns, 0: any.
template <bool kMaximum, int kCount, int kVectors>
HLOKIT_INLINE void BestOfBlock(const float* row, const WindowColumn* columns, int64_t count, float initial, int64_t f,
                               float* out, HLOKIT_NUMBERS* numbers) {
  Vector best[kVectors];
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) best[k] = initial - Vector{};
  // Those of the block, so that no block waits for the one before it.
  HLOKIT_NUMBERS first = HLOKIT_ALL_NUMBERS, second = HLOKIT_ALL_NUMBERS;
  const int64_t n = kCount == 0 ? count : kCount;
#pragma GCC unroll 3
  for (int64_t c = 0; c < n; ++c) {
    const float* const from = row + columns[c].offset + f;
    Vector x[kVectors];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      x[k] = *reinterpret_cast<const Vector*>(from + k * kLanes);
      best[k] = kMaximum ? HLOKIT_MAX(x[k], best[k]) : HLOKIT_MIN(x[k], best[k]);
    }
    HLOKIT_ADD_NUMBERS(first, x[0], x[kVectors > 1 ? 1 : 0]);
    if constexpr (kVectors == 4) HLOKIT_ADD_NUMBERS(second, x[2], x[3]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) *reinterpret_cast<Vector*>(out + f + k * kLanes) = best[k];
  *numbers = HLOKIT_BOTH_NUMBERS(*numbers, HLOKIT_BOTH_NUMBERS(first, second));
}

template <bool kMaximum>
HLOKIT_TARGET bool BestLine(const float* row, const WindowLine& line, float initial, WindowPrefetch prefetch,
                            float* out) {
  HLOKIT_NUMBERS numbers = HLOKIT_ALL_NUMBERS;
  bool all = true;
  ForEachPosition(line, prefetch, [&](const WindowColumn* columns, int64_t count, int64_t start) HLOKIT_TARGET {
    float* const to = out + start;
    int64_t f = ForEachBlock<4>(line.features, [&](int64_t first, auto vectors) HLOKIT_TARGET {
      if (count == 3) {
        BestOfBlock<kMaximum, 3, vectors()>(row, columns, count, initial, first, to, &numbers);
      } else if (count == 2) {
        BestOfBlock<kMaximum, 2, vectors()>(row, columns, count, initial, first, to, &numbers);
      } else {
        BestOfBlock<kMaximum, 0, vectors()>(row, columns, count, initial, first, to, &numbers);
      }
    });
    for (; f < line.features; ++f) {
      float best = initial;
      for (int64_t c = 0; c < count; ++c) {
        const float x = row[columns[c].offset + f];
        all = all && x == x;
        best = (kMaximum ? x > best : x < best) ? x : best;
      }
      to[f] = best;
    }
  });
  return all && HLOKIT_ARE_NUMBERS(numbers);
}

template <bool kMaximum, int kCount>
HLOKIT_INLINE void BestOfRows(const float* const* rows, int64_t count, int64_t n, float* out) {
  const int64_t all = kCount == 0 ? count : kCount;
  const auto at = [&](int64_t i) HLOKIT_TARGET {
    Vector best = *reinterpret_cast<const Vector*>(rows[0] + i);
#pragma GCC unroll 3
    for (int64_t r = 1; r < all; ++r) {
      const Vector x = *reinterpret_cast<const Vector*>(rows[r] + i);
      best = kMaximum ? HLOKIT_MAX(x, best) : HLOKIT_MIN(x, best);
    }
    *reinterpret_cast<Vector*>(out + i) = best;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) at(i);
  if (i < n && n >= kLanes) return at(n - kLanes);
  for (; i < n; ++i) {
    float best = rows[0][i];
    for (int64_t r = 1; r < all; ++r) best = (kMaximum ? rows[r][i] > best : rows[r][i] < best) ? rows[r][i] : best;
    out[i] = best;
  }
}

template <bool kMaximum>
HLOKIT_TARGET void BestRows(const float* const* rows, int64_t count, int64_t n, float* out) {
  if (count == 3) {
    const float* const three[] = {rows[0], rows[1], rows[2]};
    return BestOfRows<kMaximum, 3>(three, count, n, out);
  }
  if (count == 2) {
    const float* const two[] = {rows[0], rows[1]};
    return BestOfRows<kMaximum, 2>(two, count, n, out);
  }
  BestOfRows<kMaximum, 0>(rows, count, n, out);
}

// A NaN in `best` stays; one in `x` is taken.
template <bool kMaximum, int kVectors>
HLOKIT_INLINE void BestWithNaN(const PoolRow* rows, int64_t row_count, const WindowColumn* columns, int64_t count,
                               float initial, int64_t f, float* out) {
  Vector best[kVectors];
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) best[k] = initial - Vector{};
  for (int64_t r = 0; r < row_count; ++r) {
    for (int64_t c = 0; c < count; ++c) {
      const float* const from = rows[r].data + columns[c].offset + f;
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const Vector x = *reinterpret_cast<const Vector*>(from + k * kLanes), b = best[k];
        const Ints keep = (kMaximum ? b >= x : b <= x) | (b != b);
        best[k] = keep ? b : x;
      }
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) *reinterpret_cast<Vector*>(out + f + k * kLanes) = best[k];
}

// kRows, kColumns: their numbers, 0: any.
template <WindowType kType, int kVectors, int kRows, int kColumns>
HLOKIT_INLINE void SumOfBlock(const PoolRow* rows, int64_t row_count, const WindowColumn* columns, int64_t count,
                              float initial, WindowScale scale, int64_t f, float* out) {
  const int64_t all_rows = kRows == 0 ? row_count : kRows, all_columns = kRows == 0 ? count : kColumns;
  // x - 0 is x in all elements, where x + 0 is not: -0 + 0 is 0.
  if constexpr (kType != WindowType::kF32 || kRows * kColumns == 1) {
    // A sum of two values is the same in double, rounded.
    Vector sums[kVectors];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) sums[k] = initial - Vector{};
    for (int64_t r = 0; r < all_rows; ++r) {
      for (int64_t c = 0; c < all_columns; ++c) {
        const float* const from = rows[r].data + columns[c].offset + f;
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) {
          sums[k] = Rounded<kType>(sums[k] + *reinterpret_cast<const Vector*>(from + k * kLanes));
        }
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) *reinterpret_cast<Vector*>(out + f + k * kLanes) = Scaled<kType>(sums[k], scale);
  } else {
    constexpr int kHalf = kLanes / 2;
    Doubles sums[2 * kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < 2 * kVectors; ++k) sums[k] = static_cast<double>(initial) - Doubles{};
#pragma GCC unroll 3
    for (int64_t r = 0; r < all_rows; ++r) {
#pragma GCC unroll 3
      for (int64_t c = 0; c < all_columns; ++c) {
        const float* const from = rows[r].data + columns[c].offset + f;
#pragma GCC unroll 8
        for (int k = 0; k < 2 * kVectors; ++k) {
          sums[k] += HLOKIT_DOUBLES(from + k * kHalf);
        }
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < 2 * kVectors; ++k) {
      HLOKIT_STORE_FLOATS(sums[k], out + f + k * kHalf);
    }
    if (scale.op == WindowScale::Op::kNone) return;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Vector* const to = reinterpret_cast<Vector*>(out + f + k * kLanes);
      *to = Scaled<kType>(*to, scale);
    }
  }
}

// A feature of less than a vector.
template <PoolOp kOp, WindowType kType>
HLOKIT_INLINE void PoolOne(const PoolRow* rows, int64_t row_count, const WindowColumn* columns, int64_t count,
                           float initial, WindowScale scale, int64_t f, float* out) {
  double sum = initial;
  float best = initial;
  for (int64_t r = 0; r < row_count; ++r) {
    for (int64_t c = 0; c < count; ++c) {
      const float x = rows[r].data[columns[c].offset + f];
      if constexpr (kOp == PoolOp::kSum && kType == WindowType::kF32) {
        sum += x;
      } else if constexpr (kOp == PoolOp::kSum) {
        best = Rounded<kType>((best + x) - Vector{})[0];
      } else {
        const bool keep = (kOp == PoolOp::kMaximum ? best >= x : best <= x) || best != best;
        best = keep ? best : x;
      }
    }
  }
  const float result = kOp == PoolOp::kSum && kType == WindowType::kF32 ? static_cast<float>(sum) : best;
  out[f] = Scaled<kType>(result - Vector{}, scale)[0];
}

// A sum of one element at each position, as in the gradient of average pooling.
HLOKIT_TARGET void PoolOneEach(const float* row, const WindowLine& line, float initial, WindowScale scale, float* out) {
  for (int64_t p = 0; p < line.positions; ++p) {
    const float* const from = row + line.columns[p].offset;
    float* const to = out + p * line.features;
    const auto at = [&](int64_t f) HLOKIT_TARGET {
      const Vector sum = *reinterpret_cast<const Vector*>(from + f) + initial;
      *reinterpret_cast<Vector*>(to + f) = Scaled<WindowType::kF32>(sum, scale);
    };
    int64_t f = 0;
    for (; f + kLanes <= line.features; f += kLanes) at(f);
    if (f < line.features) at(line.features - kLanes);
  }
}

template <PoolOp kOp, WindowType kType>
HLOKIT_TARGET void PoolLine(const PoolRow* rows, int64_t row_count, const WindowLine& line, float initial,
                            WindowScale scale, WindowPrefetch prefetch, float* out) {
  if (kOp == PoolOp::kSum && kType == WindowType::kF32 && row_count == 1 && line.one_each && line.features >= kLanes) {
    return PoolOneEach(rows[0].data, line, initial, scale, out);
  }
  ForEachPosition(line, prefetch, [&](const WindowColumn* columns, int64_t count, int64_t start) HLOKIT_TARGET {
    float* const to = out + start;
    int64_t f = ForEachBlock<4>(line.features, [&](int64_t first, auto vectors) HLOKIT_TARGET {
      if constexpr (kOp != PoolOp::kSum) {
        BestWithNaN<kOp == PoolOp::kMaximum, vectors()>(rows, row_count, columns, count, initial, first, to);
      } else if (row_count == 2 && count == 2) {
        SumOfBlock<kType, vectors(), 2, 2>(rows, row_count, columns, count, initial, scale, first, to);
      } else if (row_count == 3 && count == 3) {
        SumOfBlock<kType, vectors(), 3, 3>(rows, row_count, columns, count, initial, scale, first, to);
      } else if (row_count == 1 && count == 1) {
        SumOfBlock<kType, vectors(), 1, 1>(rows, row_count, columns, count, initial, scale, first, to);
      } else {
        SumOfBlock<kType, vectors(), 0, 0>(rows, row_count, columns, count, initial, scale, first, to);
      }
    });
    for (; f < line.features; ++f) PoolOne<kOp, kType>(rows, row_count, columns, count, initial, scale, f, to);
  });
}

// kSize: rows and columns, 0: any.
template <bool kGreater, bool kEqual, int kVectors, int kSize>
HLOKIT_INLINE void ChooseBlock(const PoolRow* rows, int64_t row_count, const WindowColumn* columns, int64_t count,
                               int64_t f, uint8_t* chosen) {
  Vector best[kVectors];
  Ints at[kVectors];
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) {
    best[k] = *reinterpret_cast<const Vector*>(rows[0].data + columns[0].offset + f + k * kLanes);
    at[k] = rows[0].number + columns[0].number - Ints{};
  }
  const int64_t all_rows = kSize == 0 ? row_count : kSize, all_columns = kSize == 0 ? count : kSize;
#pragma GCC unroll 3
  for (int64_t r = 0; r < all_rows; ++r) {
#pragma GCC unroll 3
    for (int64_t c = r == 0 ? 1 : 0; c < all_columns; ++c) {
      const float* const from = rows[r].data + columns[c].offset + f;
      const Ints number = rows[r].number + columns[c].number - Ints{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const Vector x = *reinterpret_cast<const Vector*>(from + k * kLanes), b = best[k];
        const Ints keep = kGreater ? (kEqual ? b >= x : b > x) : (kEqual ? b <= x : b < x);
        best[k] = keep ? b : x;
        at[k] = keep ? at[k] : number;
      }
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) {
    HLOKIT_STORE_BYTES(HLOKIT_INTS(at[k]), chosen + f + k * kLanes);
  }
}

template <bool kGreater, bool kEqual>
HLOKIT_TARGET void ChooseLine(const PoolRow* rows, int64_t row_count, const WindowLine& line, WindowPrefetch prefetch,
                              uint8_t* chosen) {
  ForEachPosition(line, prefetch, [&](const WindowColumn* columns, int64_t count, int64_t start) HLOKIT_TARGET {
    uint8_t* const to = chosen + start;
    if (count == 0 || row_count == 0) {
      std::memset(to, kNoneChosen, static_cast<size_t>(line.features));
      return;
    }
    int64_t f = ForEachBlock<4>(line.features, [&](int64_t first, auto vectors) HLOKIT_TARGET {
      if (row_count == 3 && count == 3) {
        ChooseBlock<kGreater, kEqual, vectors(), 3>(rows, row_count, columns, count, first, to);
      } else if (row_count == 2 && count == 2) {
        ChooseBlock<kGreater, kEqual, vectors(), 2>(rows, row_count, columns, count, first, to);
      } else {
        ChooseBlock<kGreater, kEqual, vectors(), 0>(rows, row_count, columns, count, first, to);
      }
    });
    for (; f < line.features; ++f) {
      float best = rows[0].data[columns[0].offset + f];
      int32_t at = rows[0].number + columns[0].number;
      for (int64_t r = 0; r < row_count; ++r) {
        for (int64_t c = r == 0 ? 1 : 0; c < count; ++c) {
          const float x = rows[r].data[columns[c].offset + f];
          const bool keep = kGreater ? (kEqual ? best >= x : best > x) : (kEqual ? best <= x : best < x);
          best = keep ? best : x;
          at = keep ? at : rows[r].number + columns[c].number;
        }
      }
      to[f] = static_cast<uint8_t>(at);
    }
  });
}

// kRows, kColumns: their numbers, 0: any.
template <WindowType kType, int kVectors, int kRows, int kColumns>
HLOKIT_INLINE void ScatterBlock(const ScatterRow* rows, int64_t row_count, const WindowColumn* columns, int64_t count,
                                float initial, int64_t f, float* out) {
  Vector sums[kVectors];
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) sums[k] = initial - Vector{};
  const int64_t all_rows = kRows == 0 ? row_count : kRows, all_columns = kRows == 0 ? count : kColumns;
#pragma GCC unroll 2
  for (int64_t r = 0; r < all_rows; ++r) {
#pragma GCC unroll 2
    for (int64_t c = 0; c < all_columns; ++c) {
      const int64_t offset = columns[c].offset + f;
      const uint8_t* const chosen = rows[r].chosen + offset;
      const float* const source = rows[r].source + offset;
      const int32_t number = rows[r].number + columns[c].number;
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const Vector sum = Rounded<kType>(sums[k] + *reinterpret_cast<const Vector*>(source + k * kLanes));
        sums[k] = HLOKIT_WHERE(chosen + k * kLanes, number, sum, sums[k]);
      }
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) *reinterpret_cast<Vector*>(out + f + k * kLanes) = sums[k];
}

template <WindowType kType>
HLOKIT_TARGET void ScatterLine(const ScatterRow* rows, int64_t row_count, const WindowLine& line, float initial,
                               WindowPrefetch prefetch, float* out) {
  ForEachPosition(line, prefetch, [&](const WindowColumn* columns, int64_t count, int64_t start) HLOKIT_TARGET {
    float* const to = out + start;
    int64_t f = ForEachBlock<4>(line.features, [&](int64_t first, auto vectors) HLOKIT_TARGET {
      if (row_count == 1 && count == 1) {
        ScatterBlock<kType, vectors(), 1, 1>(rows, row_count, columns, count, initial, first, to);
      } else if (row_count == 1 && count == 2) {
        ScatterBlock<kType, vectors(), 1, 2>(rows, row_count, columns, count, initial, first, to);
      } else if (row_count == 2 && count == 1) {
        ScatterBlock<kType, vectors(), 2, 1>(rows, row_count, columns, count, initial, first, to);
      } else if (row_count == 2 && count == 2) {
        ScatterBlock<kType, vectors(), 2, 2>(rows, row_count, columns, count, initial, first, to);
      } else {
        ScatterBlock<kType, vectors(), 0, 0>(rows, row_count, columns, count, initial, first, to);
      }
    });
    for (; f < line.features; ++f) {
      float sum = initial;
      for (int64_t r = 0; r < row_count; ++r) {
        for (int64_t c = 0; c < count; ++c) {
          const int64_t offset = columns[c].offset + f;
          if (rows[r].chosen[offset] != rows[r].number + columns[c].number) continue;
          sum = Rounded<kType>((sum + rows[r].source[offset]) - Vector{})[0];
        }
      }
      to[f] = sum;
    }
  });
}

template <WindowType kType>
HLOKIT_INLINE Vector LoadOf(const std::byte* in, int64_t i) {
  if constexpr (kType == WindowType::kF32) {
    return *reinterpret_cast<const Vector*>(in + i * 4);
  } else {
    if constexpr (kType == WindowType::kF16) {
      return HLOKIT_FROM_F16(*reinterpret_cast<const Halves*>(in + i * 2));
    } else {
      return reinterpret_cast<Vector>(reinterpret_cast<Words>(HLOKIT_WIDEN(in + i * 2)) << 16);
    }
  }
}

template <WindowType kType>
HLOKIT_INLINE void StoreOf(Vector x, std::byte* out, int64_t i) {
  if constexpr (kType == WindowType::kF32) {
    *reinterpret_cast<Vector*>(out + i * 4) = x;
  } else if constexpr (kType == WindowType::kF16) {
    *reinterpret_cast<Halves*>(out + i * 2) = HLOKIT_TO_F16(x);
  } else {
    const Words bits = reinterpret_cast<Words>(x);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Words nan = (bits >> 16) | 0x40;
    HLOKIT_NARROW(HLOKIT_INTS(x == x ? rounded : nan), out + i * 2);
  }
}

template <WindowType kFrom, WindowType kTo>
HLOKIT_TARGET void Convert(const std::byte* in, int64_t n, WindowScale scale, std::byte* out) {
  constexpr WindowType kNarrow = kFrom == WindowType::kF32 ? kTo : kFrom;
  constexpr int64_t kFromBytes = kFrom == WindowType::kF32 ? 4 : 2, kToBytes = kTo == WindowType::kF32 ? 4 : 2;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    StoreOf<kTo>(Scaled<kNarrow>(LoadOf<kFrom>(in, i), scale), out, i);
  }
  if (i == n) return;
  if (n >= kLanes) return StoreOf<kTo>(Scaled<kNarrow>(LoadOf<kFrom>(in, n - kLanes), scale), out, n - kLanes);
  alignas(64) std::byte some[kLanes * 4] = {};
  std::memcpy(some, in + i * kFromBytes, static_cast<size_t>((n - i) * kFromBytes));
  StoreOf<kTo>(Scaled<kNarrow>(LoadOf<kFrom>(some, 0), scale), some, 0);
  std::memcpy(out + i * kToBytes, some, static_cast<size_t>((n - i) * kToBytes));
}

HLOKIT_TARGET void Load(WindowType type, const std::byte* in, int64_t n, WindowScale scale, float* out) {
  std::byte* const to = reinterpret_cast<std::byte*>(out);
  if (type == WindowType::kF32) return Convert<WindowType::kF32, WindowType::kF32>(in, n, scale, to);
  if (type == WindowType::kBF16) return Convert<WindowType::kBF16, WindowType::kF32>(in, n, scale, to);
  Convert<WindowType::kF16, WindowType::kF32>(in, n, scale, to);
}

HLOKIT_TARGET void StoreLine(WindowType type, const float* in, int64_t n, WindowScale scale, std::byte* out) {
  const std::byte* const from = reinterpret_cast<const std::byte*>(in);
  if (type == WindowType::kF32) return Convert<WindowType::kF32, WindowType::kF32>(from, n, scale, out);
  if (type == WindowType::kBF16) return Convert<WindowType::kF32, WindowType::kBF16>(from, n, scale, out);
  Convert<WindowType::kF32, WindowType::kF16>(from, n, scale, out);
}

HLOKIT_TARGET void Deinterleave(const float* in, int64_t n, float* even, float* odd) {
  int64_t i = 0;
  for (; 2 * (i + kLanes) <= n; i += kLanes) {
    const Vector a = *reinterpret_cast<const Vector*>(in + 2 * i);
    const Vector b = *reinterpret_cast<const Vector*>(in + 2 * i + kLanes);
    *reinterpret_cast<Vector*>(even + i) = __builtin_shuffle(a, b, HLOKIT_EVEN);
    *reinterpret_cast<Vector*>(odd + i) = __builtin_shuffle(a, b, HLOKIT_ODD);
  }
  for (; 2 * i < n; ++i) {
    even[i] = in[2 * i];
    if (2 * i + 1 < n) odd[i] = in[2 * i + 1];
  }
}

HLOKIT_TARGET void Interleave(const float* even, const float* odd, int64_t n, float* out) {
  int64_t i = 0;
  for (; 2 * (i + kLanes) <= n; i += kLanes) {
    const Vector a = *reinterpret_cast<const Vector*>(even + i), b = *reinterpret_cast<const Vector*>(odd + i);
    *reinterpret_cast<Vector*>(out + 2 * i) = __builtin_shuffle(a, b, HLOKIT_LOW);
    *reinterpret_cast<Vector*>(out + 2 * i + kLanes) = __builtin_shuffle(a, b, HLOKIT_HIGH);
  }
  for (; 2 * i < n; ++i) {
    out[2 * i] = even[i];
    if (2 * i + 1 < n) out[2 * i + 1] = odd[i];
  }
}

HLOKIT_TARGET bool Best(PoolOp op, const float* row, const WindowLine& line, float initial, WindowPrefetch prefetch,
                        float* out) {
  return op == PoolOp::kMaximum ? BestLine<true>(row, line, initial, prefetch, out)
                                : BestLine<false>(row, line, initial, prefetch, out);
}

HLOKIT_TARGET void Combine(PoolOp op, const float* const* rows, int64_t count, int64_t n, float* out) {
  return op == PoolOp::kMaximum ? BestRows<true>(rows, count, n, out) : BestRows<false>(rows, count, n, out);
}

HLOKIT_TARGET void Pool(PoolOp op, WindowType type, const PoolRow* rows, int64_t row_count, const WindowLine& line,
                        float initial, WindowScale scale, WindowPrefetch prefetch, float* out) {
  constexpr WindowType kF32 = WindowType::kF32;
  if (op == PoolOp::kMaximum)
    return PoolLine<PoolOp::kMaximum, kF32>(rows, row_count, line, initial, scale, prefetch, out);
  if (op == PoolOp::kMinimum)
    return PoolLine<PoolOp::kMinimum, kF32>(rows, row_count, line, initial, scale, prefetch, out);
  if (type == kF32) return PoolLine<PoolOp::kSum, kF32>(rows, row_count, line, initial, scale, prefetch, out);
  if (type == WindowType::kBF16) {
    return PoolLine<PoolOp::kSum, WindowType::kBF16>(rows, row_count, line, initial, scale, prefetch, out);
  }
  PoolLine<PoolOp::kSum, WindowType::kF16>(rows, row_count, line, initial, scale, prefetch, out);
}

HLOKIT_TARGET void Choose(bool greater, bool equal, const PoolRow* rows, int64_t row_count, const WindowLine& line,
                          WindowPrefetch prefetch, uint8_t* chosen) {
  if (greater) {
    return equal ? ChooseLine<true, true>(rows, row_count, line, prefetch, chosen)
                 : ChooseLine<true, false>(rows, row_count, line, prefetch, chosen);
  }
  return equal ? ChooseLine<false, true>(rows, row_count, line, prefetch, chosen)
               : ChooseLine<false, false>(rows, row_count, line, prefetch, chosen);
}

HLOKIT_TARGET void Scatter(WindowType type, const ScatterRow* rows, int64_t row_count, const WindowLine& line,
                           float initial, WindowPrefetch prefetch, float* out) {
  if (type == WindowType::kF32) return ScatterLine<WindowType::kF32>(rows, row_count, line, initial, prefetch, out);
  if (type == WindowType::kBF16) return ScatterLine<WindowType::kBF16>(rows, row_count, line, initial, prefetch, out);
  ScatterLine<WindowType::kF16>(rows, row_count, line, initial, prefetch, out);
}

constexpr WindowKernels kKernels = {Best, Combine, Pool, Choose, Scatter, Load, StoreLine, Deinterleave, Interleave};
#undef HLOKIT_INLINE
#undef HLOKIT_TARGET
#undef HLOKIT_EVEN
#undef HLOKIT_ODD
#undef HLOKIT_LOW
#undef HLOKIT_HIGH
#undef HLOKIT_NUMBERS
#undef HLOKIT_ALL_NUMBERS
#undef HLOKIT_ADD_NUMBERS
#undef HLOKIT_ARE_NUMBERS
#undef HLOKIT_BOTH_NUMBERS
#undef HLOKIT_MAX
#undef HLOKIT_MIN
#undef HLOKIT_FROM_F16
#undef HLOKIT_TO_F16
#undef HLOKIT_DOUBLES
#undef HLOKIT_STORE_FLOATS
#undef HLOKIT_INTS
#undef HLOKIT_WIDEN
#undef HLOKIT_NARROW
#undef HLOKIT_STORE_BYTES
#undef HLOKIT_WHERE
