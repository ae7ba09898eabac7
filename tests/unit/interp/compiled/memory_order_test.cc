// SPDX-License-Identifier: Apache-2.0
// Loops in the order of memory of their inputs, reductions of any dimensions, batch normalization and pooling. Arrays
// in another order than that of their dimensions are transposes of parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "interp/compiled/code/engine_modules.h"
#include "interp/processor/instruction_set.h"
#include "ir/core/str_cat.h"
#include "tests/unit/interp/compiled/both_engines.h"

namespace hlokit::interp::compiled {
namespace {

class MemoryOrderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Generator().ok()) GTEST_SKIP() << "the module for LLVM is not built";
  }
};

constexpr std::string_view kFunctions = R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
min {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] minimum(a, b)
}
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}
)";

int CountForms(const FastRun& run, LoopForm form) {
  return static_cast<int>(
      std::count_if(run.loops.begin(), run.loops.end(), [&](const CompiledLoop& l) { return l.program.form == form; }));
}

int CountWindows(const FastRun& run) {
  return static_cast<int>(std::count_if(run.choices.begin(), run.choices.end(), [](const KernelChoice& choice) {
    return choice.kind == KernelChoice::Kind::kWindow;
  }));
}

// Declares f32[n,c,h,w], in memory in that order or with features (c) minor.
std::string Image(std::string_view name, int parameter, bool features_minor, int n, int c, int h, int w) {
  if (!features_minor) {
    return StrCat("  ", name, " = f32[", n, ",", c, ",", h, ",", w, "] parameter(", parameter, ")\n");
  }
  return StrCat("  ", name, "_in = f32[", n, ",", h, ",", w, ",", c, "] parameter(", parameter, ")\n  ", name,
                " = f32[", n, ",", c, ",", h, ",", w, "] transpose(", name, "_in), dimensions={0,3,1,2}\n");
}

TEST_F(MemoryOrderTest, ALoopTakesTheOrderOfItsInputs) {
  const FastRun run = RunBoth(
      StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, true, 3, 19, 17, 13), Image("y", 1, true, 3, 19, 17, 13), R"(
  b = f32[19] parameter(2)
  bb = f32[3,19,17,13] broadcast(b), dimensions={1}
  s = f32[3,19,17,13] add(x, y)
  t = f32[3,19,17,13] multiply(s, bb)
  c = pred[3,19,17,13] compare(t, x), direction=GT
  ROOT r = (f32[3,19,17,13], pred[3,19,17,13]) tuple(t, c)
})"),
      0);
  ASSERT_EQ(run.loops.size(), 1u);
  // The values of features are read once for many rows of them.
  EXPECT_EQ(run.loops[0].program.form, LoopForm::kColumns);
}

TEST_F(MemoryOrderTest, InputsInTwoOrdersGiveTheSameValues) {
  RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, true, 2, 33, 9, 7), Image("y", 1, false, 2, 33, 9, 7),
                 Image("z", 2, true, 2, 33, 9, 7), R"(
  s = f32[2,33,9,7] add(x, y)
  t = f32[2,33,9,7] subtract(s, z)
  u = f32[2,33,63] reshape(t)
  ROOT r = (f32[2,33,9,7], f32[2,33,63]) tuple(t, u)
})"),
          0);
}

TEST_F(MemoryOrderTest, BatchNormalizationIsPartOfALoop) {
  for (const bool features_minor : {false, true}) {
    const FastRun run = RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 3, 35, 9, 11),
                                       Image("skip", 3, features_minor, 3, 35, 9, 11), R"(
  scale = f32[35] parameter(1)
  offset = f32[35] parameter(2)
  n = (f32[3,35,9,11], f32[35], f32[35]) batch-norm-training(x, scale, offset), epsilon=1e-5, feature_index=1
  y = f32[3,35,9,11] get-tuple-element(n), index=0
  mean = f32[35] get-tuple-element(n), index=1
  variance = f32[35] get-tuple-element(n), index=2
  zero = f32[] constant(0)
  zeros = f32[3,35,9,11] broadcast(zero), dimensions={}
  s = f32[3,35,9,11] add(y, skip)
  relu = f32[3,35,9,11] maximum(s, zeros)
  ROOT r = (f32[3,35,9,11], f32[35], f32[35]) tuple(relu, mean, variance)
})"),
                                {Ulps(1)});
    ASSERT_EQ(run.loops.size(), 2u);
    EXPECT_EQ(run.loops[0].program.form, features_minor ? LoopForm::kColumns : LoopForm::kRows);
    EXPECT_EQ(run.loops[1].program.outputs.size(), 1u);
  }
}

TEST_F(MemoryOrderTest, GradientAndInferenceOfBatchNormalization) {
  for (const bool features_minor : {false, true}) {
    const FastRun run = RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 3, 35, 9, 11),
                                       Image("g", 1, features_minor, 3, 35, 9, 11), R"(
  scale = f32[35] parameter(2)
  mean = f32[35] parameter(3)
  root = f32[35] parameter(4)
  variance = f32[35] multiply(root, root)
  d = (f32[3,35,9,11], f32[35], f32[35]) batch-norm-grad(x, scale, mean, variance, g), epsilon=1e-3, feature_index=1
  i = f32[3,35,9,11] batch-norm-inference(x, scale, mean, mean, variance), epsilon=1e-3, feature_index=1
  ROOT r = ((f32[3,35,9,11], f32[35], f32[35]), f32[3,35,9,11]) tuple(d, i)
})"),
                                {Ulps(1)});
    for (const KernelChoice& choice : run.choices) {
      EXPECT_TRUE(choice.kind == KernelChoice::Kind::kLoop || choice.reason.empty()) << choice.reason;
    }
    EXPECT_GE(run.loops.size(), 2u);
  }
}

TEST_F(MemoryOrderTest, BatchNormalizationOfNarrowTypes) {
  for (const std::string_view type : {"bf16", "f16"}) {
    if (type == "f16" && HostInstructionSet() == InstructionSet::kSse4) continue;
    for (const std::string_view dims : {"[3,35,9,11]", "[3,9,11,35]"}) {
      const int feature = dims == "[3,35,9,11]" ? 1 : 3;
      const std::string image = StrCat(type, dims), each = StrCat(type, "[35]"),
                        three = StrCat("(", image, ", ", each, ", ", each, ")");
      const FastRun run = RunBoth(
          StrCat("HloModule m\nENTRY e {\n  x = ", image, " parameter(0)\n  g = ", image,
                 " parameter(1)\n  scale = ", each, " parameter(2)\n  mean = ", each, " parameter(3)\n  root = ", each,
                 " parameter(4)\n  variance = ", each, " multiply(root, root)\n  n = ", three,
                 " batch-norm-training(x, scale, mean), epsilon=1e-5, feature_index=", feature, "\n  d = ", three,
                 " batch-norm-grad(x, scale, mean, variance, g), epsilon=1e-3, feature_index=", feature, "\n  i = ",
                 image, " batch-norm-inference(x, scale, mean, mean, variance), epsilon=1e-3, feature_index=", feature,
                 "\n  ROOT r = (", three, ", ", three, ", ", image, ") tuple(n, d, i)\n}"),
          {Ulps(1)});
      EXPECT_GE(run.loops.size(), 4u) << type;
    }
  }
}

TEST_F(MemoryOrderTest, StatisticsOfInfiniteAndEqualValues) {
  RunBoth(StrCat(kFunctions, R"(ENTRY e {
  x = f32[40,37] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[40,37] broadcast(zero), dimensions={}
  inf = f32[] constant(inf)
  infs = f32[40,37] broadcast(inf), dimensions={}
  column = s32[40,37] iota(), iota_dimension=1
  row = s32[40,37] iota(), iota_dimension=0
  three = s32[] constant(3)
  threes = s32[40,37] broadcast(three), dimensions={}
  is_three = pred[40,37] compare(column, threes), direction=EQ
  is_row = pred[40,37] compare(row, column), direction=EQ
  is_inf = pred[40,37] and(is_three, is_row)
  few = pred[40,37] compare(column, threes), direction=LT
  y = f32[40,37] select(few, zeros, x)
  z = f32[40,37] select(is_inf, infs, y)
  scale = f32[37] parameter(1)
  offset = f32[37] parameter(2)
  ROOT n = (f32[40,37], f32[37], f32[37]) batch-norm-training(z, scale, offset), epsilon=1e-5, feature_index=1
})"),
          {Ulps(1)});
}

TEST_F(MemoryOrderTest, ReductionsOfAnyDimensionsJoinWhatTheyReduce) {
  struct Case {
    std::string_view dims, kept;
  };
  for (const Case& c : {Case{"0,2,3", "[24]"}, Case{"0", "[24,18,20]"}, Case{"1", "[16,18,20]"}, Case{"0,1,2,3", "[]"},
                        Case{"2,3", "[16,24]"}, Case{"1,2", "[16,20]"}}) {
    for (const bool features_minor : {false, true}) {
      const FastRun run = RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 16, 24, 18, 20), R"(
  y = f32[16,24,18,20] multiply(x, x)
  zero = f32[] constant(0.5)
  s = f32)",
                                         c.kept, " reduce(y, zero), dimensions={", c.dims, R"(}, to_apply=sum
  m = f32)",
                                         c.kept, " reduce(x, zero), dimensions={", c.dims, R"(}, to_apply=max
  ROOT r = (f32)",
                                         c.kept, ", f32", c.kept, ", f32[16,24,18,20]) tuple(s, m, y)\n}"),
                                  {Ulps(1), ErrorSpec(), ErrorSpec()});
      EXPECT_GE(run.loops.size(), 1u) << c.dims;
    }
  }
}

TEST_F(MemoryOrderTest, RowsAcrossMemoryAreReducedByColumns) {
  const FastRun run = RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, true, 6, 32, 20, 20), R"(
  zero = f32[] constant(0)
  y = f32[6,32,20,20] multiply(x, x)
  ROOT s = f32[6,32] reduce(y, zero), dimensions={2,3}, to_apply=sum
})"),
                              {Ulps(1)});
  ASSERT_EQ(run.loops.size(), 1u);
  EXPECT_EQ(run.loops[0].program.form, LoopForm::kColumns);
}

TEST_F(MemoryOrderTest, ReductionsOfIntegersAndNarrowTypes) {
  const FastRun run = RunBoth(R"(HloModule m
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
min {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT m = bf16[] minimum(a, b)
}
all {
  a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT m = pred[] and(a, b)
}
ENTRY e {
  x = s32[3000,37] parameter(0)
  y = bf16[3000,37] parameter(1)
  p = pred[3000,37] parameter(2)
  zero = s32[] constant(0)
  inf = bf16[] constant(inf)
  true = pred[] constant(true)
  s = s32[37] reduce(x, zero), dimensions={0}, to_apply=sum
  m = bf16[37] reduce(y, inf), dimensions={0}, to_apply=min
  q = pred[] reduce(p, true), dimensions={0,1}, to_apply=all
  ROOT r = (s32[37], bf16[37], pred[]) tuple(s, m, q)
})",
                              0);
  EXPECT_EQ(run.loops.size(), 3u);
  EXPECT_EQ(CountForms(run, LoopForm::kColumns), 2);
}

// Values of pools are those of the exact engine, bit for bit.
TEST_F(MemoryOrderTest, PoolsInAnyOrder) {
  struct Case {
    std::string_view window, result;
    int width;
  };
  for (const Case& c : {Case{"size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1", "[3,37,10,19]", 37},
                        Case{"size=1x1x2x2 stride=1x1x2x2", "[3,37,9,18]", 36},
                        Case{"size=1x1x3x5 stride=1x1x1x3 pad=0_0x0_0x4_0x2_1", "[3,37,21,13]", 38},
                        Case{"size=1x1x2x3 rhs_dilate=1x1x3x2 pad=0_0x0_0x0_1x2_2", "[3,37,17,37]", 37}}) {
    for (const bool features_minor : {false, true}) {
      const FastRun run =
          RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 3, 37, 19, c.width), R"(
  low = f32[] constant(-inf)
  zero = f32[] constant(0.25)
  m = f32)",
                         c.result, " reduce-window(x, low), window={", c.window, R"(}, to_apply=max
  s = f32)",
                         c.result, " reduce-window(x, zero), window={", c.window, R"(}, to_apply=sum
  ROOT r = (f32)",
                         c.result, ", f32", c.result, ") tuple(m, s)\n}"),
                  0);
      EXPECT_EQ(CountWindows(run), 2) << c.window;
    }
  }
}

TEST_F(MemoryOrderTest, TheGradientOfMaximumPoolingTakesTheFirstOfEqualElements) {
  for (const std::string_view direction : {"GE", "GT", "LE", "LT"}) {
    for (const bool features_minor : {false, true}) {
      std::string text = StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 3, 37, 19, 45),
                                Image("g", 1, features_minor, 3, 37, 10, 23), R"(
  k = f32[] constant(4)
  ks = f32[3,37,19,45] broadcast(k), dimensions={}
  y = f32[3,37,19,45] multiply(x, ks)
  z = f32[3,37,19,45] floor(y)
  zero = f32[] constant(-0.0)
  ROOT s = f32[3,37,19,45] select-and-scatter(z, g, zero), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1}, select=ge, scatter=sum
})");
      text.replace(text.find("direction=GE"), 12, StrCat("direction=", direction));
      const FastRun run = RunBoth(text, 0);
      EXPECT_EQ(run.choices.back().kind, KernelChoice::Kind::kWindow) << run.choices.back().reason;
    }
  }
}

TEST_F(MemoryOrderTest, WindowsOfSwappedDimensions) {
  // In memory, the second dimension of the window comes before the first one.
  const FastRun run = RunBoth(StrCat(kFunctions, R"(ENTRY e {
  x = f32[2,64,32,48] parameter(0)
  y = f32[2,32,64,48] transpose(x), dimensions={0,2,1,3}
  g = f32[2,30,62,48] parameter(1)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[2,30,62,48] reduce-window(y, low), window={size=1x3x3x1}, to_apply=max
  s = f32[2,32,64,48] select-and-scatter(y, g, zero), window={size=1x3x3x1}, select=ge, scatter=sum
  v = f32[32,64,48,2] transpose(x), dimensions={2,1,3,0}
  n = f32[30,62,46,2] reduce-window(v, low), window={size=3x3x3x1}, to_apply=max
  ROOT r = (f32[2,30,62,48], f32[2,32,64,48], f32[30,62,46,2]) tuple(m, s, n)
})"),
                              0);
  EXPECT_EQ(CountWindows(run), 2);
}

TEST_F(MemoryOrderTest, PoolsOfNegativeZerosAndNaN) {
  for (const bool features_minor : {false, true}) {
    const FastRun run = RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 2, 69, 17, 40),
                                       Image("g", 1, features_minor, 2, 69, 15, 38), R"(
  high = f32[] constant(0.75)
  highs = f32[2,69,17,40] broadcast(high), dimensions={}
  nan = f32[] constant(nan)
  nans = f32[2,69,17,40] broadcast(nan), dimensions={}
  is_high = pred[2,69,17,40] compare(x, highs), direction=GT
  y = f32[2,69,17,40] select(is_high, nans, x)
  a = f32[2,69,17,40] abs(x)
  n = f32[2,69,17,40] negate(a)
  minus_zero = f32[] constant(-0.0)
  zeros = f32[2,69,17,40] broadcast(minus_zero), dimensions={}
  m = f32[2,69,15,38] reduce-window(n, minus_zero), window={size=1x1x3x3}, to_apply=max
  l = f32[2,69,15,38] reduce-window(a, minus_zero), window={size=1x1x3x3}, to_apply=min
  s = f32[2,69,15,38] reduce-window(zeros, minus_zero), window={size=1x1x3x3}, to_apply=sum
  ym = f32[2,69,15,38] reduce-window(y, minus_zero), window={size=1x1x3x3}, to_apply=max
  yl = f32[2,69,15,38] reduce-window(y, minus_zero), window={size=1x1x3x3}, to_apply=min
  ys = f32[2,69,15,38] reduce-window(y, minus_zero), window={size=1x1x3x3}, to_apply=sum
  yg = f32[2,69,17,40] select-and-scatter(y, g, minus_zero), window={size=1x1x3x3}, select=ge, scatter=sum
  p = (f32[2,69,15,38], f32[2,69,15,38], f32[2,69,15,38]) tuple(m, l, s)
  q = (f32[2,69,15,38], f32[2,69,15,38], f32[2,69,15,38], f32[2,69,17,40]) tuple(ym, yl, ys, yg)
  ROOT r = ((f32[2,69,15,38], f32[2,69,15,38], f32[2,69,15,38]), (f32[2,69,15,38], f32[2,69,15,38], f32[2,69,15,38], f32[2,69,17,40])) tuple(p, q)
})"),
                                0);
    EXPECT_EQ(CountWindows(run), 7);
  }
}

TEST_F(MemoryOrderTest, PoolsWithNegativePadding) {
  for (const bool features_minor : {false, true}) {
    const FastRun run = RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, features_minor, 2, 33, 17, 40),
                                       Image("g", 1, features_minor, 2, 33, 12, 20), R"(
  zero = f32[] constant(0)
  high = f32[] constant(0.25)
  m = f32[2,33,12,20] reduce-window(x, high), window={size=1x1x3x3 stride=1x1x1x2 pad=0_0x0_0x-1_-2x-2_3}, to_apply=max
  l = f32[2,33,12,20] reduce-window(x, high), window={size=1x1x3x3 stride=1x1x1x2 pad=0_0x0_0x-1_-2x-2_3}, to_apply=min
  s = f32[2,33,17,40] select-and-scatter(x, g, zero), window={size=1x1x3x3 stride=1x1x1x2 pad=0_0x0_0x-1_-2x-2_3}, select=ge, scatter=sum
  ROOT r = (f32[2,33,12,20], f32[2,33,12,20], f32[2,33,17,40]) tuple(m, l, s)
})"),
                                0);
    EXPECT_EQ(CountWindows(run), 3);
  }
}

TEST_F(MemoryOrderTest, WindowsInLargeArrays) {
  // Only the positions of a line with features have a table, up to a limit.
  const FastRun run = RunBoth(StrCat(kFunctions, R"(ENTRY e {
  low = f32[] constant(-inf)
  x = f32[1050000] parameter(0)
  y = f32[1050000,2] broadcast(x), dimensions={0}
  m = f32[1050000,1] reduce-window(y, low), window={size=1x2}, to_apply=max
  z = f32[66000,8] broadcast(low), dimensions={}
  o = f32[65999,8] reduce-window(z, low), window={size=2x1}, to_apply=max
  p = f32[65997,8] reduce-window(z, low), window={size=4x1}, to_apply=max
  i = f32[1050000] reshape(m)
  j = pred[1050000] compare(i, x), direction=EQ
  ROOT r = (pred[1050000], f32[65999,8], f32[65997,8]) tuple(j, o, p)
})"),
                              0);
  EXPECT_EQ(CountWindows(run), 2);
}

TEST_F(MemoryOrderTest, RowsWithoutAWindow) {
  // The window lies outside of the operand for some positions.
  RunBoth(StrCat(kFunctions, "ENTRY e {\n", Image("x", 0, true, 2, 32, 12, 12), Image("g", 1, true, 2, 32, 14, 16), R"(
  low = f32[] constant(-inf)
  m = f32[2,32,14,16] reduce-window(x, low), window={size=1x1x1x2 pad=0_0x0_0x2_0x3_2}, to_apply=max
  zero = f32[] constant(0)
  s = f32[2,32,12,12] select-and-scatter(x, g, zero), window={size=1x1x1x2 pad=0_0x0_0x2_0x3_2}, select=ge, scatter=sum
  ROOT r = (f32[2,32,14,16], f32[2,32,12,12]) tuple(m, s)
})"),
          0);
}

}  // namespace
}  // namespace hlokit::interp::compiled
