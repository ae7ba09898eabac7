// SPDX-License-Identifier: Apache-2.0
// Pooling kernels of each instruction set against plain loops, on arrays between pages that cannot be accessed.
#include "interp/compiled/window_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/properties/guarded_memory.h"

namespace hlokit::interp::compiled {
namespace {

constexpr InstructionSet kSets[] = {InstructionSet::kSse4, InstructionSet::kAvx2, InstructionSet::kAvx512};

// A line of positions over `length` elements (each of `features`), with a window of `size` in steps of `step` along the
// line, padded by one before it, and of two rows.
struct Line {
  Line(int64_t length, int64_t features, int64_t size, int64_t step, bool features_minor)
      : length(length), features(features), positions((length + 2 - size) / step + 1) {
    rows = {0, length * features};
    for (int64_t p = 0; p < positions; ++p) {
      begins.push_back(static_cast<int64_t>(offsets.size()));
      for (int64_t k = 0; k < size; ++k) {
        const int64_t element = p * step + k - 1;
        if (element < 0 || element >= length) continue;
        offsets.push_back(element * features);
      }
    }
    begins.push_back(static_cast<int64_t>(offsets.size()));
    for (int64_t k = 0; k < size && !features_minor; ++k) {
      LineRange range;
      range.step = step;
      while (range.first * step + k - 1 < 0) ++range.first;
      range.element = range.first * step + k - 1;
      range.end = range.first;
      while (range.end < positions && range.end * step + k - 1 < length) ++range.end;
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

  int64_t length, features, positions;
  std::vector<int64_t> rows, begins, offsets;
  std::vector<LineRange> ranges;
  WindowLine line;
};

struct Floats {
  Floats(int64_t n, GuardedMemory::Edge edge) : memory(static_cast<size_t>(n) * sizeof(float), edge) {
    values = reinterpret_cast<float*>(memory.data());
    // Few values, so that many are equal.
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i * 7919 % 13 - 6);
  }
  GuardedMemory memory;
  float* values;
};

TEST(WindowKernelsTest, AgreeWithPlainLoopsWithinTheirArrays) {
  for (const InstructionSet set : kSets) {
    if (set > HostInstructionSet()) continue;
    const WindowKernels& kernels = WindowKernelsOf(set);
    for (const auto edge : {GuardedMemory::Edge::kBegin, GuardedMemory::Edge::kEnd}) {
      for (const int64_t step : {1, 2, 3}) {
        for (const int64_t n : {1, 3, 8, 16, 17, 33, 64, 67, 130}) {
          for (const bool features_minor : {false, true}) {
            const Line line(features_minor ? 9 : n + 2, features_minor ? n : 1, 3, step, features_minor);
            const int64_t inputs = 2 * line.length * line.features, outputs = line.positions * line.features;
            const Floats in(inputs, edge), source(outputs, edge), out(outputs, edge), sums(2 * outputs, edge);
            Floats scattered(inputs, edge);
            std::vector<float> best(static_cast<size_t>(outputs), -4.0f), total(static_cast<size_t>(outputs), -4.0f);
            std::vector<float> expected(scattered.values, scattered.values + inputs);
            for (int64_t p = 0; p < line.positions; ++p) {
              for (int64_t f = 0; f < line.features; ++f) {
                const size_t at = static_cast<size_t>(p * line.features + f);
                int64_t chosen = -1;
                for (int64_t row : line.rows) {
                  for (int64_t c = line.begins[p]; c < line.begins[p + 1]; ++c) {
                    const int64_t element = row + line.offsets[c] + f;
                    best[at] = std::max(best[at], in.values[element]);
                    total[at] += in.values[element];
                    if (chosen < 0 || !(in.values[chosen] >= in.values[element])) chosen = element;
                  }
                }
                if (chosen >= 0) expected[static_cast<size_t>(chosen)] += source.values[at];
              }
            }
            const auto pool = [&](PoolOp op) {
              if (features_minor) {
                kernels.pool_features(op, line.line, in.values, -4.0f, out.values);
              } else {
                kernels.pool_line(op, line.line, in.values, -4.0f, out.values, reinterpret_cast<double*>(sums.values));
              }
            };
            const size_t bytes = static_cast<size_t>(outputs) * sizeof(float);
            pool(PoolOp::kMaximum);
            EXPECT_EQ(std::memcmp(out.values, best.data(), bytes), 0) << n << " step " << step;
            pool(PoolOp::kSum);
            EXPECT_EQ(std::memcmp(out.values, total.data(), bytes), 0) << n << " step " << step;
            if (features_minor) {
              kernels.scatter_features(true, true, line.line, in.values, source.values, scattered.values);
            } else {
              const Floats scratch(outputs, edge), chosen(outputs, edge);
              kernels.scatter_line(true, true, line.line, in.values, source.values, scattered.values, scratch.values,
                                   reinterpret_cast<int32_t*>(chosen.values));
            }
            EXPECT_EQ(std::memcmp(scattered.values, expected.data(), static_cast<size_t>(inputs) * sizeof(float)), 0)
                << n << " step " << step << (features_minor ? " features" : " line");
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
