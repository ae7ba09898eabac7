// SPDX-License-Identifier: Apache-2.0
// Pooling kernels of each instruction set against plain loops, on arrays between pages that cannot be accessed.
#include "interp/compiled/window_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/properties/guarded_memory.h"

namespace hlokit::interp::compiled {
namespace {

using Edge = GuardedMemory::Edge;

constexpr InstructionSet kSets[] = {InstructionSet::kSse4, InstructionSet::kAvx2, InstructionSet::kAvx512};

// A line of positions over `length` elements (each of `features`), with a window of 3 in steps of `step` along the
// line, padded by `padding` on both sides, and of two rows.
struct Line {
  Line(int64_t length, int64_t features, int64_t step, int64_t padding, bool features_minor)
      : length(length), features(features), positions((length + 2 * padding - kSize) / step + 1) {
    rows = {0, length * features};
    for (int64_t p = 0; p < positions; ++p) {
      begins.push_back(static_cast<int64_t>(offsets.size()));
      for (int64_t k = 0; k < kSize; ++k) {
        const int64_t element = p * step + k - padding;
        if (element < 0 || element >= length) continue;
        offsets.push_back(element * features);
      }
    }
    begins.push_back(static_cast<int64_t>(offsets.size()));
    for (int64_t k = 0; k < kSize && !features_minor; ++k) {
      LineRange range;
      range.step = step;
      while (range.first * step + k - padding < 0) ++range.first;
      range.element = range.first * step + k - padding;
      range.end = range.first;
      while (range.end < positions && range.end * step + k - padding < length) ++range.end;
      if (range.first < range.end) ranges.push_back(range);
    }
    line.rows = rows.data();
    line.row_count = 2;
    line.positions = positions;
    line.column_begin = begins.data();
    line.column_offsets = offsets.data();
    line.features = features;
    line.ranges = ranges.data();
    line.range_count = static_cast<int64_t>(ranges.size());
  }

  static constexpr int64_t kSize = 3;
  int64_t length, features, positions;
  std::vector<int64_t> rows, begins, offsets;
  std::vector<LineRange> ranges;
  WindowLine line;
};

enum class Values { kFew, kNan, kNegativeZero };

struct Floats {
  Floats(int64_t n, Edge edge, Values kind = Values::kFew) : memory(static_cast<size_t>(n) * sizeof(float), edge) {
    values = reinterpret_cast<float*>(memory.data());
    for (int64_t i = 0; i < n; ++i) {
      // Few values, so that many are equal.
      values[i] = static_cast<float>(i * 7919 % 13 - 6);
      if (kind == Values::kNan && i % 7 == 3) values[i] = std::numeric_limits<float>::quiet_NaN();
      if (kind == Values::kNegativeZero) values[i] = -0.0f;
    }
  }
  GuardedMemory memory;
  float* values;
};

void ExpectSame(const float* actual, const std::vector<float>& expected, const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    if (std::memcmp(actual + i, &expected[i], sizeof(float)) == 0) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", expected " << expected[i];
    return;
  }
}

std::vector<float> Pool(PoolOp op, const Line& line, const float* in, float initial) {
  std::vector<float> results;
  for (int64_t p = 0; p < line.positions; ++p) {
    for (int64_t f = 0; f < line.features; ++f) {
      double sum = initial;
      float best = initial;
      for (int64_t row : line.rows) {
        for (int64_t c = line.begins[p]; c < line.begins[p + 1]; ++c) {
          const float x = in[row + line.offsets[c] + f];
          sum += x;
          const bool keep = std::isnan(best) || (op == PoolOp::kMaximum ? best >= x : best <= x);
          if (!keep) best = x;
        }
      }
      results.push_back(op == PoolOp::kSum ? static_cast<float>(sum) : best);
    }
  }
  return results;
}

void Scatter(bool greater, bool equal, const Line& line, const float* in, const float* source,
             std::vector<float>* results) {
  for (int64_t p = 0; p < line.positions; ++p) {
    for (int64_t f = 0; f < line.features; ++f) {
      int64_t chosen = -1;
      for (int64_t row : line.rows) {
        for (int64_t c = line.begins[p]; c < line.begins[p + 1]; ++c) {
          const int64_t at = row + line.offsets[c] + f;
          const bool keep = chosen >= 0 && (in[chosen] == in[at] ? equal
                                            : greater            ? in[chosen] > in[at]
                                                                 : in[chosen] < in[at]);
          if (!keep) chosen = at;
        }
      }
      if (chosen >= 0) (*results)[static_cast<size_t>(chosen)] += source[p * line.features + f];
    }
  }
}

void CheckPools(const WindowKernels& kernels, const Line& line, bool features_minor, Values kind, Edge edge,
                const std::string& what) {
  const int64_t inputs = 2 * line.length * line.features, outputs = line.positions * line.features;
  const Floats in(inputs, edge, kind), out(outputs, edge), sums(2 * outputs, edge);
  for (const PoolOp op : {PoolOp::kMaximum, PoolOp::kMinimum, PoolOp::kSum}) {
    for (const float initial : {-4.0f, 4.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()}) {
      if (features_minor) {
        kernels.pool_features(op, line.line, in.values, initial, out.values);
      } else {
        kernels.pool_line(op, line.line, in.values, initial, out.values, reinterpret_cast<double*>(sums.values));
      }
      ExpectSame(out.values, Pool(op, line, in.values, initial),
                 StrCat(what, ", operation ", static_cast<int>(op), " from ", std::to_string(initial)));
    }
  }
}

void CheckScatters(const WindowKernels& kernels, const Line& line, bool features_minor, Values kind, Edge edge,
                   const std::string& what) {
  const int64_t inputs = 2 * line.length * line.features, outputs = line.positions * line.features;
  const Floats in(inputs, edge, kind), source(outputs, edge), best(outputs, edge), chosen(outputs, edge);
  for (const bool greater : {false, true}) {
    for (const bool equal : {false, true}) {
      const Floats out(inputs, edge);
      std::vector<float> expected(out.values, out.values + inputs);
      Scatter(greater, equal, line, in.values, source.values, &expected);
      if (features_minor) {
        kernels.scatter_features(greater, equal, line.line, in.values, source.values, out.values);
      } else {
        kernels.scatter_line(greater, equal, line.line, in.values, source.values, out.values, best.values,
                             reinterpret_cast<int32_t*>(chosen.values));
      }
      ExpectSame(out.values, expected, StrCat(what, greater ? ", greater" : ", less", equal ? " or equal" : ""));
    }
  }
}

TEST(WindowKernelsTest, AgreeWithPlainLoopsWithinTheirArrays) {
  for (const InstructionSet set : kSets) {
    if (set > HostInstructionSet()) continue;
    const WindowKernels& kernels = WindowKernelsOf(set);
    for (const Edge edge : {Edge::kBegin, Edge::kEnd}) {
      for (const int64_t step : {1, 2, 3}) {
        // Features or positions, in whole vectors and in part.
        for (const int64_t n : {1, 3, 8, 16, 17, 33, 64, 67, 130}) {
          for (const int64_t padding : {1, -1}) {
            for (const bool features_minor : {false, true}) {
              const int64_t length = features_minor ? 9 : n + 4;
              const Line line(length, features_minor ? n : 1, step, padding, features_minor);
              for (const Values kind : {Values::kFew, Values::kNan, Values::kNegativeZero}) {
                const std::string what =
                    StrCat(ToString(set), ", ", n, features_minor ? " features" : " elements", ", step ", step,
                           ", padding ", padding, ", values ", static_cast<int>(kind));
                CheckPools(kernels, line, features_minor, kind, edge, what);
                CheckScatters(kernels, line, features_minor, kind, edge, what);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
