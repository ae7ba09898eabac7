// SPDX-License-Identifier: Apache-2.0
// Included by window_kernels.cc once for each instruction set, within a namespace of its own. HLOKIT_TARGET: attribute
// of functions; kLanes: floats of a vector; HLOKIT_EVEN: the numbers of elements 0, 2, 4, ... of two vectors.

typedef float Vector __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));
// Of one register.
typedef float HalfVector __attribute__((vector_size(kLanes * 2), aligned(4), may_alias));
typedef double HalfDoubles __attribute__((vector_size(kLanes * 4), aligned(8), may_alias));

template <PoolOp kOp>
HLOKIT_TARGET void PoolFeatures(const WindowLine& line, const float* in, float initial, float* out) {
  constexpr bool kSum = kOp == PoolOp::kSum;
  for (int64_t p = 0; p < line.positions; ++p) {
    const int64_t* const columns = line.column_offsets + line.column_begin[p];
    const int64_t count = line.column_begin[p + 1] - line.column_begin[p];
    float* const to = out + p * line.features;
    int64_t f = 0;
    if constexpr (kSum) {
      constexpr int kHalf = kLanes / 2;
      for (; f + 4 * kHalf <= line.features; f += 4 * kHalf) {
        HalfDoubles sums[4];
        // x - 0 is x in all elements, where x + 0 is not: -0 + 0 is 0.
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) sums[k] = static_cast<double>(initial) - HalfDoubles{};
        for (int64_t r = 0; r < line.row_count; ++r) {
          for (int64_t c = 0; c < count; ++c) {
            const float* const from = in + line.rows[r] + columns[c] + f;
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
              const HalfVector x = *reinterpret_cast<const HalfVector*>(from + k * kHalf);
              sums[k] += __builtin_convertvector(x, HalfDoubles);
            }
          }
        }
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          *reinterpret_cast<HalfVector*>(to + f + k * kHalf) = __builtin_convertvector(sums[k], HalfVector);
        }
      }
    } else {
      for (; f + 4 * kLanes <= line.features; f += 4 * kLanes) {
        Vector best[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) best[k] = initial - Vector{};
        for (int64_t r = 0; r < line.row_count; ++r) {
          for (int64_t c = 0; c < count; ++c) {
            const float* const from = in + line.rows[r] + columns[c] + f;
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
              const Vector x = *reinterpret_cast<const Vector*>(from + k * kLanes);
              // A NaN in `best` stays; one in `x` is taken.
              best[k] = kOp == PoolOp::kMaximum ? (x > best[k] ? x : best[k]) : (x < best[k] ? x : best[k]);
              best[k] = x != x ? x : best[k];
            }
          }
        }
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) *reinterpret_cast<Vector*>(to + f + k * kLanes) = best[k];
      }
    }
    for (; f < line.features; ++f) {
      double sum = initial;
      float best = initial;
      for (int64_t r = 0; r < line.row_count; ++r) {
        for (int64_t c = 0; c < count; ++c) {
          const float x = in[line.rows[r] + columns[c] + f];
          if constexpr (kSum) {
            sum += x;
          } else {
            const bool keep = (kOp == PoolOp::kMaximum ? best >= x : best <= x) || best != best;
            best = keep ? best : x;
          }
        }
      }
      to[f] = kSum ? static_cast<float>(sum) : best;
    }
  }
}

// kStep: distance of the elements of neighboring positions, or 0 for any.
template <PoolOp kOp, int kStep>
HLOKIT_TARGET void PoolRange(const LineRange& range, const float* __restrict in, float* __restrict out,
                             double* __restrict sums) {
  const int64_t step = kStep == 0 ? range.step : kStep;
  const float* const from = in + range.element;
  const int64_t n = range.end - range.first;
  if constexpr (kOp == PoolOp::kSum) {
    double* __restrict to = sums + range.first;
    int64_t i = 0;
    if constexpr (kStep == 1 || kStep == 2) {
      for (; i + kLanes < n; i += kLanes) {
        Vector x = *reinterpret_cast<const Vector*>(from + i * step);
        if constexpr (kStep == 2) {
          x = __builtin_shuffle(x, *reinterpret_cast<const Vector*>(from + i * step + kLanes), HLOKIT_EVEN);
        }
        *reinterpret_cast<Doubles*>(to + i) += __builtin_convertvector(x, Doubles);
      }
    }
    for (; i < n; ++i) to[i] += from[i * step];
  } else {
    float* __restrict to = out + range.first;
    int64_t i = 0;
    if constexpr (kStep == 1 || kStep == 2) {
      // Of the last vector, an element after the last one would be read.
      for (; i + kLanes < n; i += kLanes) {
        Vector x = *reinterpret_cast<const Vector*>(from + i * step);
        if constexpr (kStep == 2) {
          x = __builtin_shuffle(x, *reinterpret_cast<const Vector*>(from + i * step + kLanes), HLOKIT_EVEN);
        }
        const Vector best = *reinterpret_cast<const Vector*>(to + i);
        const Vector of_numbers = kOp == PoolOp::kMaximum ? (x > best ? x : best) : (x < best ? x : best);
        *reinterpret_cast<Vector*>(to + i) = x != x ? x : of_numbers;
      }
    }
    for (; i < n; ++i) {
      const float best = to[i], x = from[i * step];
      const bool keep = (kOp == PoolOp::kMaximum ? best >= x : best <= x) | (best != best);
      to[i] = keep ? best : x;
    }
  }
}

template <PoolOp kOp>
HLOKIT_TARGET void PoolLine(const WindowLine& line, const float* in, float initial, float* out, double* sums) {
  for (int64_t p = 0; p < line.positions; ++p) {
    if constexpr (kOp == PoolOp::kSum) {
      sums[p] = initial;
    } else {
      out[p] = initial;
    }
  }
  for (int64_t r = 0; r < line.row_count; ++r) {
    for (int64_t c = 0; c < line.range_count; ++c) {
      const LineRange& range = line.ranges[c];
      if (range.step == 1) {
        PoolRange<kOp, 1>(range, in + line.rows[r], out, sums);
      } else if (range.step == 2) {
        PoolRange<kOp, 2>(range, in + line.rows[r], out, sums);
      } else {
        PoolRange<kOp, 0>(range, in + line.rows[r], out, sums);
      }
    }
  }
  if constexpr (kOp == PoolOp::kSum) {
    for (int64_t p = 0; p < line.positions; ++p) out[p] = static_cast<float>(sums[p]);
  }
}

template <bool kGreater, bool kEqual>
HLOKIT_TARGET void ScatterFeatures(const WindowLine& line, const float* in, const float* source, float* out) {
  for (int64_t p = 0; p < line.positions; ++p) {
    const int64_t* const columns = line.column_offsets + line.column_begin[p];
    const int64_t count = line.column_begin[p + 1] - line.column_begin[p];
    if (count == 0 || line.row_count == 0) continue;
    const float* const given = source + p * line.features;
    int64_t f = 0;
    // Two vectors at a time, for the time that a comparison takes.
    for (; f + 2 * kLanes <= line.features; f += 2 * kLanes) {
      Vector best[2];
      Ints chosen[2] = {};
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        best[k] = *reinterpret_cast<const Vector*>(in + line.rows[0] + columns[0] + f + k * kLanes);
      }
      int32_t number = 0;
      for (int64_t r = 0; r < line.row_count; ++r) {
        for (int64_t c = 0; c < count; ++c, ++number) {
          if (number == 0) continue;
          const float* const from = in + line.rows[r] + columns[c] + f;
#pragma GCC unroll 2
          for (int k = 0; k < 2; ++k) {
            const Vector x = *reinterpret_cast<const Vector*>(from + k * kLanes);
            const Vector b = best[k];
            if constexpr (kGreater) {
              best[k] = kEqual ? (b >= x ? b : x) : (b > x ? b : x);
              chosen[k] = kEqual ? (b >= x ? chosen[k] : Ints{} + number) : (b > x ? chosen[k] : Ints{} + number);
            } else {
              best[k] = kEqual ? (b <= x ? b : x) : (b < x ? b : x);
              chosen[k] = kEqual ? (b <= x ? chosen[k] : Ints{} + number) : (b < x ? chosen[k] : Ints{} + number);
            }
          }
        }
      }
      const Vector g[2] = {*reinterpret_cast<const Vector*>(given + f),
                           *reinterpret_cast<const Vector*>(given + f + kLanes)};
      number = 0;
      for (int64_t r = 0; r < line.row_count; ++r) {
        for (int64_t c = 0; c < count; ++c, ++number) {
          float* const to = out + line.rows[r] + columns[c] + f;
#pragma GCC unroll 2
          for (int k = 0; k < 2; ++k) {
            Vector* const element = reinterpret_cast<Vector*>(to + k * kLanes);
            const Vector before = *element;
            *element = chosen[k] == number ? before + g[k] : before;
          }
        }
      }
    }
    for (; f < line.features; ++f) {
      int64_t at = line.rows[0] + columns[0];
      for (int64_t r = 0; r < line.row_count; ++r) {
        for (int64_t c = r == 0 ? 1 : 0; c < count; ++c) {
          const int64_t here = line.rows[r] + columns[c];
          const float best = in[at + f], x = in[here + f];
          const bool keep = kGreater ? (kEqual ? best >= x : best > x) : (kEqual ? best <= x : best < x);
          if (!keep) at = here;
        }
      }
      out[at + f] += given[f];
    }
  }
}

template <bool kGreater, bool kEqual, int kStep>
HLOKIT_TARGET void ChooseRange(const LineRange& range, int32_t row, const float* __restrict in, float* __restrict best,
                               int32_t* __restrict chosen) {
  const int64_t step = kStep == 0 ? range.step : kStep;
  const float* const from = in + range.element;
  float* __restrict to = best + range.first;
  int32_t* __restrict at = chosen + range.first;
  const int32_t first = row + static_cast<int32_t>(range.element);
  const int32_t advance = static_cast<int32_t>(step);
  const int32_t n = static_cast<int32_t>(range.end - range.first);
  int32_t i = 0;
  if constexpr (kStep == 1 || kStep == 2) {
    Ints lane;
    for (int32_t k = 0; k < kLanes; ++k) lane[k] = k * advance;
    for (; i + kLanes < n; i += kLanes) {
      Vector x = *reinterpret_cast<const Vector*>(from + i * step);
      if constexpr (kStep == 2) {
        x = __builtin_shuffle(x, *reinterpret_cast<const Vector*>(from + i * step + kLanes), HLOKIT_EVEN);
      }
      const Vector b = *reinterpret_cast<const Vector*>(to + i);
      const Ints before = *reinterpret_cast<const Ints*>(at + i);
      const Ints keep = (before >= 0) & (kGreater ? (kEqual ? b >= x : b > x) : (kEqual ? b <= x : b < x));
      *reinterpret_cast<Vector*>(to + i) = keep ? b : x;
      *reinterpret_cast<Ints*>(at + i) = keep ? before : lane + (first + i * advance);
    }
  }
  for (; i < n; ++i) {
    const float b = to[i], x = from[i * step];
    const bool keep = (at[i] >= 0) & (kGreater ? (kEqual ? b >= x : b > x) : (kEqual ? b <= x : b < x));
    to[i] = keep ? b : x;
    at[i] = keep ? at[i] : first + i * advance;
  }
}

template <bool kGreater, bool kEqual>
HLOKIT_TARGET void ScatterLine(const WindowLine& line, const float* in, const float* source, float* out, float* best,
                               int32_t* chosen) {
  for (int64_t p = 0; p < line.positions; ++p) chosen[p] = -1;
  for (int64_t r = 0; r < line.row_count; ++r) {
    const int32_t row = static_cast<int32_t>(line.rows[r] - line.rows[0]);
    for (int64_t c = 0; c < line.range_count; ++c) {
      const LineRange& range = line.ranges[c];
      if (range.step == 1) {
        ChooseRange<kGreater, kEqual, 1>(range, row, in + line.rows[r], best, chosen);
      } else if (range.step == 2) {
        ChooseRange<kGreater, kEqual, 2>(range, row, in + line.rows[r], best, chosen);
      } else {
        ChooseRange<kGreater, kEqual, 0>(range, row, in + line.rows[r], best, chosen);
      }
    }
  }
  for (int64_t p = 0; p < line.positions; ++p) {
    if (chosen[p] >= 0) out[line.rows[0] + chosen[p]] += source[p];
  }
}

HLOKIT_TARGET void PoolFeaturesOf(PoolOp op, const WindowLine& line, const float* in, float initial, float* out) {
  if (op == PoolOp::kMaximum) return PoolFeatures<PoolOp::kMaximum>(line, in, initial, out);
  if (op == PoolOp::kMinimum) return PoolFeatures<PoolOp::kMinimum>(line, in, initial, out);
  PoolFeatures<PoolOp::kSum>(line, in, initial, out);
}
HLOKIT_TARGET void PoolLineOf(PoolOp op, const WindowLine& line, const float* in, float initial, float* out,
                              double* sums) {
  if (op == PoolOp::kMaximum) return PoolLine<PoolOp::kMaximum>(line, in, initial, out, sums);
  if (op == PoolOp::kMinimum) return PoolLine<PoolOp::kMinimum>(line, in, initial, out, sums);
  PoolLine<PoolOp::kSum>(line, in, initial, out, sums);
}
HLOKIT_TARGET void ScatterFeaturesOf(bool greater, bool equal, const WindowLine& line, const float* in,
                                     const float* source, float* out) {
  if (greater) {
    return equal ? ScatterFeatures<true, true>(line, in, source, out)
                 : ScatterFeatures<true, false>(line, in, source, out);
  }
  return equal ? ScatterFeatures<false, true>(line, in, source, out)
               : ScatterFeatures<false, false>(line, in, source, out);
}
HLOKIT_TARGET void ScatterLineOf(bool greater, bool equal, const WindowLine& line, const float* in, const float* source,
                                 float* out, float* best, int32_t* chosen) {
  if (greater) {
    return equal ? ScatterLine<true, true>(line, in, source, out, best, chosen)
                 : ScatterLine<true, false>(line, in, source, out, best, chosen);
  }
  return equal ? ScatterLine<false, true>(line, in, source, out, best, chosen)
               : ScatterLine<false, false>(line, in, source, out, best, chosen);
}
constexpr WindowKernels kKernels = {PoolFeaturesOf, PoolLineOf, ScatterFeaturesOf, ScatterLineOf};
