// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/cost.h"

#include <gtest/gtest.h>

#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

Cost CostOfEntry(std::string_view text) {
  const std::unique_ptr<Module> module = Parse(text);
  return module == nullptr ? Cost() : CostAnalysis(*module).OfModule();
}

TEST(CostTest, Elementwise) {
  const Cost cost = CostOfEntry(R"(HloModule m
    ENTRY e {
      a = f32[10] parameter(0)
      b = f32[10] add(a, a)
      ROOT c = f32[10] tanh(b)
    })");
  EXPECT_EQ(cost.flops, 10);
  EXPECT_EQ(cost.transcendentals, 10);
  EXPECT_EQ(cost.bytes_read, 80 + 40);
  EXPECT_EQ(cost.bytes_written, 40 + 40);
}

TEST(CostTest, DotCountsTwoForEachProduct) {
  EXPECT_EQ(CostOfEntry(R"(HloModule m
    ENTRY e {
      a = f32[3,5] parameter(0)
      b = f32[5,7] parameter(1)
      ROOT c = f32[3,7] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })")
                .flops,
            2 * 3 * 5 * 7);
}

TEST(CostTest, ReduceAppliesItsFunctionToWhatGoes) {
  EXPECT_EQ(CostOfEntry(R"(HloModule m
    sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e {
      a = f32[3,5] parameter(0)
      z = f32[] constant(0)
      ROOT c = f32[3] reduce(a, z), dimensions={1}, to_apply=sum
    })")
                .flops,
            15 - 3);
}

TEST(CostTest, SlicesReadWhatTheyKeep) {
  const Cost cost = CostOfEntry(R"(HloModule m
    ENTRY e {
      a = f32[1000] parameter(0)
      i = s32[] parameter(1)
      s = f32[10] slice(a), slice={[0:10]}
      d = f32[10] dynamic-slice(a, i), dynamic_slice_sizes={10}
      ROOT u = f32[1000] dynamic-update-slice(a, s, i)
    })");
  EXPECT_EQ(cost.bytes_read, 40 + 44 + 44);
  EXPECT_EQ(cost.bytes_written, 40 + 40 + 40);
}

TEST(CostTest, FusionMovesItsParametersAndResult) {
  const Cost cost = CostOfEntry(R"(HloModule m
    f {
      a = f32[1000] parameter(0)
      s = f32[10] slice(a), slice={[0:10]}
      t = f32[10] exponential(s)
      ROOT u = f32[10] multiply(t, t)
    }
    ENTRY e {
      a = f32[1000] parameter(0)
      ROOT c = f32[10] fusion(a), kind=kLoop, calls=f
    })");
  EXPECT_EQ(cost.bytes_read, 40);
  EXPECT_EQ(cost.bytes_written, 40);
  EXPECT_EQ(cost.flops, 10);
  EXPECT_EQ(cost.transcendentals, 10);
}

TEST(CostTest, CustomCallsCountInXlasSumsOnly) {
  const std::unique_ptr<Module> module = Parse(R"(HloModule m
    ENTRY e {
      a = f32[10] parameter(0)
      ROOT c = f32[10] custom-call(a), custom_call_target="x"
    })");
  const CostAnalysis costs(*module);
  EXPECT_EQ(costs.OfModule(), Cost());
  EXPECT_EQ(costs.SumsOf(module->entry()).flops, -1);
  EXPECT_EQ(costs.SumsOf(module->entry()).bytes, -1);
}

TEST(CostTest, HugeShapesSaturate) {
  const Cost cost = CostOfEntry(R"(HloModule m
    ENTRY e {
      a = f32[1000000000,1000000000] parameter(0)
      ROOT c = f32[1000000000,1000000000] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
  EXPECT_EQ(cost.flops, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(cost.bytes(), std::numeric_limits<int64_t>::max());
}

// Counts, one by one, the positions of output and window that read the input.
int64_t CountPositions(int64_t input, int64_t kernel, int64_t output, int64_t stride, int64_t low, int64_t base,
                       int64_t window) {
  int64_t n = 0;
  for (int64_t k = 0; k < kernel; ++k) {
    for (int64_t o = 0; o < output; ++o) {
      const int64_t at = o * stride - low + k * window;
      n += at >= 0 && at % base == 0 && at / base < input;
    }
  }
  return n;
}

TEST(CostTest, ConvolutionsSkipPaddingAndHoles) {
  int tried = 0;
  for (int64_t input : {1, 4, 7}) {
    for (int64_t kernel : {1, 2, 3, 9}) {
      for (int64_t stride : {1, 2, 3}) {
        for (int64_t base : {1, 2, 3}) {
          for (int64_t window : {1, 2}) {
            for (int64_t low : {-1, 0, 2}) {
              const int64_t dilated = (input - 1) * base + 1, span = (kernel - 1) * window + 1;
              const int64_t high = 3, padded = dilated + low + high;
              if (padded < span) continue;
              const int64_t output = (padded - span) / stride + 1;
              const Cost cost = CostOfEntry(StrCat("HloModule m ENTRY e { a = f32[2,", input, ",3] parameter(0) ",
                                                   "b = f32[", kernel, ",3,5] parameter(1) ROOT c = f32[2,", output,
                                                   ",5] convolution(a, b), window={size=", kernel, " stride=", stride,
                                                   " pad=", low, "_", high, " lhs_dilate=", base,
                                                   " rhs_dilate=", window, "}, dim_labels=b0f_0io->b0f }"));
              ASSERT_EQ(cost.flops, 2 * 2 * 3 * 5 * CountPositions(input, kernel, output, stride, low, base, window))
                  << input << " " << kernel << " " << stride << " " << base << " " << window << " " << low;
              ++tried;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 500);
}

constexpr char kLoop[] = R"(HloModule m
  cond {
    p = (s32[], f32[8]) parameter(0)
    i = s32[] get-tuple-element(p), index=0
    n = s32[] constant(5)
    ROOT c = pred[] compare(i, n), direction=LT
  }
  body {
    p = (s32[], f32[8]) parameter(0)
    i = s32[] get-tuple-element(p), index=0
    one = s32[] constant(1)
    next = s32[] add(i, one)
    x = f32[8] get-tuple-element(p), index=1
    y = f32[8] multiply(x, x), metadata={op_name="loop/body/mul" source_file="a.py" source_line=7}
    ROOT t = (s32[], f32[8]) tuple(next, y)
  }
  ENTRY e {
    z = s32[] constant(0)
    a = f32[8] parameter(0)
    t = (s32[], f32[8]) tuple(z, a)
    ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body
  })";

TEST(CostTableTest, CountsTripsWhenAsked) {
  const std::unique_ptr<Module> module = Parse(kLoop);
  const CostAnalysis costs(*module);
  EXPECT_EQ(costs.OfModule().flops, 8 + 1 + 1);
  const auto flops = [&](CostKey key, bool trip_counts, std::string_view name) {
    for (const CostRow& row : CostTable(*module, costs, {key, trip_counts})) {
      if (row.key == name) return row.cost.flops;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(flops(CostKey::kOpcode, false, "multiply"), 8);
  EXPECT_EQ(flops(CostKey::kOpcode, true, "multiply"), 40);
  EXPECT_EQ(flops(CostKey::kOpcode, true, "compare"), 6);
  EXPECT_EQ(flops(CostKey::kScope, true, "loop/body"), 40);
  EXPECT_EQ(flops(CostKey::kSourceLine, true, "a.py:7"), 40);
  EXPECT_EQ(flops(CostKey::kComputation, false, "body"), 9);
}

}  // namespace
}  // namespace hlokit
