// SPDX-License-Identifier: Apache-2.0
// Loops over rows of all sizes: in registers, several vectors at a time, and what is left at the end of a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 79, 128, 129, 200, 256, 257, 300, 1025};
constexpr int64_t kRows[] = {1, 5};

std::string Text(int64_t rows, int64_t columns, const std::string& body) {
  std::string text = R"(HloModule m
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
)";
  const std::string all = StrCat("f32[", rows, ",", columns, "]"), each = StrCat("f32[", rows, "]");
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '@') {
      text += all;
    } else if (body[i] == '#') {
      text += each;
    } else {
      text += body[i];
    }
  }
  return text + "}\n";
}

constexpr char kSoftmax[] = R"(
  x = @ parameter(0)
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  max = # reduce(x, lowest), dimensions={1}, to_apply=larger
  max.wide = @ broadcast(max), dimensions={0}
  shifted = @ subtract(x, max.wide)
  weights = @ exponential(shifted)
  sum = # reduce(weights, zero), dimensions={1}, to_apply=plus
  sum.wide = @ broadcast(sum), dimensions={0}
  ROOT y = @ divide(weights, sum.wide)
)";

// The squares of what differs from the mean, by their root, with the mean as a result of its own.
constexpr char kNormal[] = R"(
  x = @ parameter(0)
  zero = f32[] constant(0)
  share = f32[] constant(0.0078125)
  share.wide = # broadcast(share), dimensions={}
  total = # reduce(x, zero), dimensions={1}, to_apply=plus
  mean = # multiply(total, share.wide)
  mean.wide = @ broadcast(mean), dimensions={0}
  centered = @ subtract(x, mean.wide)
  squares = @ multiply(centered, centered)
  sum = # reduce(squares, zero), dimensions={1}, to_apply=plus
  factor = # rsqrt(sum)
  factor.wide = @ broadcast(factor), dimensions={0}
  y = @ multiply(centered, factor.wide)
  ROOT both = (@, #) tuple(y, mean)
)";

// Runs a module with one loop on an array of rows.
std::vector<Literal> RunLoop(const std::string& text, const std::vector<float>& values) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", text), ParseOptions(), &sink);
  if (module == nullptr) return {};
  const auto kernels =
      std::make_shared<CompiledKernels>(ObservationRequest(), GroupOptions::OfAnySize(GroupOptions().max_members));
  const auto evaluator = Evaluator::Prepare(*module, EvaluatorOptions(), &sink, kernels);
  if (evaluator == nullptr || kernels->loops().empty()) return {};
  std::vector<Literal> arguments;
  arguments.push_back(Literal::Zeros(evaluator->argument_shapes()[0]));
  std::copy(values.begin(), values.end(), arguments[0].values<float>().begin());
  auto results = evaluator->Run(arguments, &sink);
  return results.has_value() ? *std::move(results) : std::vector<Literal>();
}

std::vector<float> Samples(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7919 % 1013) * 0.01f - 5);
  return values;
}

void ExpectNear(float actual, double exact, double ulps, const std::string& where) {
  EXPECT_NEAR(actual, exact, std::max(std::fabs(exact), 1e-30) * ulps * 0x1p-23) << where;
}

TEST(LoopRowsTest, SoftmaxOfRowsOfAllSizes) {
  if (!Generator().ok()) GTEST_SKIP() << "this build has no LLVM";
  for (const int64_t columns : kSizes) {
    for (const int64_t rows : kRows) {
      const std::vector<float> x = Samples(rows * columns);
      const std::vector<Literal> results = RunLoop(Text(rows, columns, kSoftmax), x);
      ASSERT_EQ(results.size(), 1u);
      for (int64_t r = 0; r < rows; ++r) {
        const float* const row = x.data() + r * columns;
        const double max = *std::max_element(row, row + columns);
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) sum += std::exp(row[c] - max);
        for (int64_t c = 0; c < columns; ++c) {
          // The exponential has two units, and the difference half a unit of a number of up to ten.
          ExpectNear(results[0].values<float>()[static_cast<size_t>(r * columns + c)], std::exp(row[c] - max) / sum, 16,
                     StrCat(rows, "x", columns, " at ", r, ",", c));
        }
      }
    }
  }
}

TEST(LoopRowsTest, ValuesOfRowsAndElements) {
  if (!Generator().ok()) GTEST_SKIP() << "this build has no LLVM";
  for (const int64_t columns : kSizes) {
    if (columns == 1) continue;  // the sum would cancel
    for (const int64_t rows : kRows) {
      const std::vector<float> x = Samples(rows * columns);
      const std::vector<Literal> results = RunLoop(Text(rows, columns, kNormal), x);
      ASSERT_EQ(results.size(), 2u);
      for (int64_t r = 0; r < rows; ++r) {
        const float* const row = x.data() + r * columns;
        double total = 0;
        for (int64_t c = 0; c < columns; ++c) total += row[c];
        const float mean = static_cast<float>(total) * 0.0078125f;
        EXPECT_EQ(results[1].values<float>()[static_cast<size_t>(r)], mean);
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) {
          const float centered = row[c] - mean;
          sum += centered * centered;
        }
        for (int64_t c = 0; c < columns; ++c) {
          ExpectNear(results[0].values<float>()[static_cast<size_t>(r * columns + c)], (row[c] - mean) / std::sqrt(sum),
                     4, StrCat(rows, "x", columns, " at ", r, ",", c));
        }
      }
    }
  }
}

TEST(LoopRowsTest, OneNanMakesItsRowNan) {
  if (!Generator().ok()) GTEST_SKIP() << "this build has no LLVM";
  for (const int64_t columns : {5, 17, 128, 130, 300}) {
    // Every second row has one, each at another place.
    const int64_t rows = 2 * columns;
    std::vector<float> x = Samples(rows * columns);
    for (int64_t at = 0; at < columns; ++at) {
      x[static_cast<size_t>((2 * at + 1) * columns + at)] = std::numeric_limits<float>::quiet_NaN();
    }
    const std::string text = Text(rows, columns, R"(
  x = @ parameter(0)
  lowest = f32[] constant(-inf)
  max = # reduce(x, lowest), dimensions={1}, to_apply=larger
  max.wide = @ broadcast(max), dimensions={0}
  y = @ subtract(x, max.wide)
  ROOT both = (@, #) tuple(y, max)
)");
    const std::vector<Literal> results = RunLoop(text, x);
    ASSERT_EQ(results.size(), 2u);
    const auto max = results[1].values<float>();
    for (int64_t at = 0; at < columns; ++at) {
      const auto row = x.begin() + 2 * at * columns;
      EXPECT_EQ(max[static_cast<size_t>(2 * at)], *std::max_element(row, row + columns));
      EXPECT_TRUE(std::isnan(max[static_cast<size_t>(2 * at + 1)])) << columns << " at " << at;
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
