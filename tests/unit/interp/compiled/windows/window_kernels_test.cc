// SPDX-License-Identifier: Apache-2.0
// Pooling kernels of each instruction set against plain loops, on arrays between pages that cannot be accessed.
#include "interp/compiled/windows/window_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  Line(int64_t length, int64_t features, int64_t step, int64_t padding)
      : length(length), features(features), positions((length + 2 * padding - kSize) / step + 1) {
    rows = {0, length * features};
    for (int64_t p = 0; p < positions; ++p) {
      begins.push_back(static_cast<int64_t>(columns.size()));
      for (int64_t k = 0; k < kSize; ++k) {
        const int64_t element = p * step + k - padding;
        if (element < 0 || element >= length) continue;
        columns.push_back({element * features, static_cast<int32_t>(k)});
      }
    }
    begins.push_back(static_cast<int64_t>(columns.size()));
    line = {positions, begins.data(), columns.data(), features};
  }
  std::vector<PoolRow> RowsOf(const float* in) const {
    return {{in + rows[0], 0}, {in + rows[1], static_cast<int32_t>(kSize)}};
  }

  static constexpr int64_t kSize = 3;
  int64_t length, features, positions;
  std::vector<int64_t> rows, begins;
  std::vector<WindowColumn> columns;
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
          const float x = in[row + line.columns[static_cast<size_t>(c)].offset + f];
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

// Returns the number of the element that each window chooses.
std::vector<uint8_t> Choose(bool greater, bool equal, const Line& line, const float* in) {
  std::vector<uint8_t> numbers;
  for (int64_t p = 0; p < line.positions; ++p) {
    for (int64_t f = 0; f < line.features; ++f) {
      uint8_t chosen = kNoneChosen;
      float best = 0;
      for (const PoolRow& row : line.RowsOf(in)) {
        for (int64_t c = line.begins[p]; c < line.begins[p + 1]; ++c) {
          const WindowColumn& column = line.columns[static_cast<size_t>(c)];
          const float x = row.data[column.offset + f];
          const bool keep = chosen != kNoneChosen && (best == x ? equal : greater ? best > x : best < x);
          if (keep) continue;
          best = x;
          chosen = static_cast<uint8_t>(row.number + column.number);
        }
      }
      numbers.push_back(chosen);
    }
  }
  return numbers;
}

void CheckPools(const WindowKernels& kernels, const Line& line, Values kind, Edge edge, const std::string& what) {
  const int64_t inputs = 2 * line.length * line.features, outputs = line.positions * line.features;
  const Floats in(inputs, edge, kind), out(outputs, edge), first(outputs, edge), second(outputs, edge);
  const std::vector<PoolRow> rows = line.RowsOf(in.values);
  for (const PoolOp op : {PoolOp::kMaximum, PoolOp::kMinimum, PoolOp::kSum}) {
    for (const float initial : {-4.0f, 4.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()}) {
      const std::string which = StrCat(what, ", operation ", static_cast<int>(op), " from ", std::to_string(initial));
      const std::vector<float> expected = Pool(op, line, in.values, initial);
      kernels.pool(op, WindowType::kF32, rows.data(), 2, line.line, initial, {}, {}, out.values);
      ExpectSame(out.values, expected, which);
      if (op == PoolOp::kSum) continue;
      const bool numbers = kernels.best(op, rows[0].data, line.line, initial, {}, first.values) &&
                           kernels.best(op, rows[1].data, line.line, initial, {}, second.values);
      EXPECT_EQ(numbers, kind != Values::kNan) << which;
      if (!numbers) continue;
      const float* const both[] = {first.values, second.values};
      kernels.combine(op, both, 2, outputs, out.values);
      ExpectSame(out.values, expected, StrCat(which, ", row by row"));
    }
  }
}

void CheckGradients(const WindowKernels& kernels, const Line& line, Values kind, Edge edge, const std::string& what) {
  const int64_t inputs = 2 * line.length * line.features, outputs = line.positions * line.features;
  const Floats in(inputs, edge, kind), source(outputs, edge), sums(outputs, edge);
  GuardedMemory chosen(static_cast<size_t>(outputs), edge);
  auto* const numbers = reinterpret_cast<uint8_t*>(chosen.data());
  for (const bool greater : {false, true}) {
    for (const bool equal : {false, true}) {
      const std::string which = StrCat(what, greater ? ", greater" : ", less", equal ? " or equal" : "");
      kernels.choose(greater, equal, line.RowsOf(in.values).data(), 2, line.line, {}, numbers);
      EXPECT_EQ(std::vector<uint8_t>(numbers, numbers + outputs), Choose(greater, equal, line, in.values)) << which;
      // Each position adds its gradients where it chose number 1 of the first row, or 2 of the second.
      std::vector<int64_t> begins = {0};
      std::vector<WindowColumn> columns;
      for (int64_t p = 0; p < line.positions; ++p) {
        columns.push_back({p * line.features, 1});
        begins.push_back(p + 1);
      }
      const WindowLine windows = {line.positions, begins.data(), columns.data(), line.features};
      const ScatterRow rows[] = {{numbers, source.values, 0}, {numbers, source.values, 4}};
      kernels.scatter(WindowType::kF32, rows, 2, windows, 0.5f, {}, sums.values);
      std::vector<float> expected;
      for (int64_t i = 0; i < outputs; ++i) {
        expected.push_back(numbers[i] == 1 || numbers[i] == 5 ? 0.5f + source.values[i] : 0.5f);
      }
      ExpectSame(sums.values, expected, which);
    }
  }
}

TEST(WindowKernelsTest, AgreeWithPlainLoopsWithinTheirArrays) {
  for (const InstructionSet set : kSets) {
    if (set > HostInstructionSet()) continue;
    const WindowKernels& kernels = WindowKernelsOf(set);
    for (const Edge edge : {Edge::kBegin, Edge::kEnd}) {
      for (const int64_t step : {1, 2, 3}) {
        // In whole vectors and in part.
        for (const int64_t features : {1, 3, 8, 16, 17, 33, 64, 67, 130}) {
          for (const int64_t padding : {1, -1}) {
            const Line line(9, features, step, padding);
            for (const Values kind : {Values::kFew, Values::kNan, Values::kNegativeZero}) {
              const std::string what = StrCat(ToString(set), ", ", features, " features, step ", step, ", padding ",
                                              padding, ", values ", static_cast<int>(kind));
              CheckPools(kernels, line, kind, edge, what);
              CheckGradients(kernels, line, kind, edge, what);
            }
          }
        }
      }
    }
  }
}

TEST(WindowKernelsTest, LinesAreDealtOutAndMergedAndConverted) {
  for (const InstructionSet set : kSets) {
    if (set > HostInstructionSet()) continue;
    const WindowKernels& kernels = WindowKernelsOf(set);
    for (const Edge edge : {Edge::kBegin, Edge::kEnd}) {
      for (const int64_t n : {1, 2, 7, 16, 31, 32, 33, 64, 101}) {
        const Floats in(n, edge), even((n + 1) / 2, edge), odd(std::max<int64_t>(n / 2, 1), edge), out(n, edge);
        kernels.deinterleave(in.values, n, even.values, odd.values);
        for (int64_t i = 0; i < n; ++i) EXPECT_EQ((i % 2 == 0 ? even : odd).values[i / 2], in.values[i]);
        kernels.interleave(even.values, odd.values, n, out.values);
        ExpectSame(out.values, std::vector<float>(in.values, in.values + n), "merged");
        for (const WindowType type : {WindowType::kF32, WindowType::kBF16, WindowType::kF16}) {
          if (type == WindowType::kF16 && set == InstructionSet::kSse4) continue;
          const int64_t bytes = type == WindowType::kF32 ? 4 : 2;
          GuardedMemory narrow(static_cast<size_t>(n * bytes), edge);
          // Small whole numbers, of which all types have also the halves.
          kernels.store(type, in.values, n, {WindowScale::Op::kMultiply, 0.5f}, narrow.data());
          kernels.load(type, narrow.data(), n, {WindowScale::Op::kDivide, 0.5f}, out.values);
          ExpectSame(out.values, std::vector<float>(in.values, in.values + n), "converted");
        }
      }
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
