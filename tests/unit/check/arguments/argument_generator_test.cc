// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/argument_generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "check/arguments/argument_constraints.h"
#include "ir/types/float_types.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {
namespace {

std::unique_ptr<Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  const auto source = std::make_shared<const SourceBuffer>("test.hlo", text);
  std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
  EXPECT_NE(module, nullptr) << RenderText(sink, *source);
  return module;
}

std::vector<int64_t> IndexBounds(const Module& module) {
  std::vector<int64_t> bounds;
  for (const ArgumentConstraints& use : InferArgumentConstraints(module)) bounds.push_back(use.index_bound);
  return bounds;
}

std::vector<bool> Positive(const Module& module) {
  std::vector<bool> positive;
  for (const ArgumentConstraints& use : InferArgumentConstraints(module)) positive.push_back(use.positive);
  return positive;
}

TEST(ArgumentGeneratorTest, StartsOfSlicesAndUpdates) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  x = f32[10,20] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  k = s32[] parameter(3)
  n = s32[] parameter(4)
  w = f32[4,5] dynamic-slice(x, i, j), dynamic_slice_sizes={4,5}
  m = s32[] add(n, n)
  ROOT r = f32[10,20] dynamic-update-slice(x, w, k, m)
})");
  EXPECT_EQ(IndexBounds(*module), (std::vector<int64_t>{0, 7, 16, 7, 0}));
}

TEST(ArgumentGeneratorTest, TheSmallestBoundHolds) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  x = f32[10] parameter(0)
  i = s32[] parameter(1)
  a = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}
  b = f32[8] dynamic-slice(x, i), dynamic_slice_sizes={8}
  ROOT t = (f32[2], f32[8]) tuple(a, b)
})");
  EXPECT_EQ(IndexBounds(*module), (std::vector<int64_t>{0, 3}));
}

TEST(ArgumentGeneratorTest, ThroughCallsLoopsTuplesAndConversions) {
  const auto module = Parse(R"(HloModule m
look {
  table = f32[7,3] parameter(0)
  rows = s64[5,1] parameter(1)
  ROOT g = f32[5,3] gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
}
more {
  s = (f32[7,3], s8[5], f32[5,3], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  ROOT r = pred[] compare(n, one), direction=LT
}
step {
  s = (f32[7,3], s8[5], f32[5,3], s32[]) parameter(0)
  table = f32[7,3] get-tuple-element(s), index=0
  rows = s8[5] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=3
  wide = s64[5] convert(rows)
  column = s64[5,1] reshape(wide)
  g = f32[5,3] call(table, column), to_apply=look
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (f32[7,3], s8[5], f32[5,3], s32[]) tuple(table, rows, g, m)
}
ENTRY e {
  p = (s8[5], f32[7,3]) parameter(0)
  n = s32[] parameter(1)
  rows = s8[5] get-tuple-element(p), index=0
  table = f32[7,3] get-tuple-element(p), index=1
  zero = f32[] constant(0)
  zeros = f32[5,3] broadcast(zero), dimensions={}
  start = (f32[7,3], s8[5], f32[5,3], s32[]) tuple(table, rows, zeros, n)
  ROOT w = (f32[7,3], s8[5], f32[5,3], s32[]) while(start), condition=more, body=step
})");
  EXPECT_EQ(IndexBounds(*module), (std::vector<int64_t>{7, 0, 0}));
  for (int seed = 0; seed < 20; ++seed) {
    const std::vector<Literal> arguments = MakeFakeArguments(*module, static_cast<uint64_t>(seed));
    for (const int8_t row : arguments[0].values<int8_t>()) {
      EXPECT_GE(row, 0);
      EXPECT_LT(row, 7);
    }
  }
}

TEST(ArgumentGeneratorTest, ScatterWindowsAndBranches) {
  const auto module = Parse(R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
same {
  a = f32[9,8] parameter(0)
  ROOT c = f32[9,8] copy(a)
}
minus {
  a = f32[9,8] parameter(0)
  ROOT c = f32[9,8] negate(a)
}
ENTRY e {
  x = f32[9,8] parameter(0)
  rows = s32[4,1] parameter(1)
  u = f32[4,3,8] parameter(2)
  which = s32[] parameter(3)
  s = f32[9,8] scatter(x, rows, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  ROOT c = f32[9,8] conditional(which, s, s, s), branch_computations={same, minus, same}
})");
  EXPECT_EQ(IndexBounds(*module), (std::vector<int64_t>{0, 7, 0, 3}));
}

// A step of Adam and a normalization: the second moment and the variance are positive; the gradient, of which only the
// square reaches the root, need not be, and neither need an operand of a subtraction.
TEST(ArgumentGeneratorTest, WhatRootsAreTakenOf) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  moment = f32[4] parameter(0)
  gradient = f32[4] parameter(1)
  variance = bf16[4] parameter(2)
  x = f32[4] parameter(3)
  mean = f32[4] parameter(4)
  decay = f32[] constant(0.9)
  decays = f32[4] broadcast(decay), dimensions={}
  kept = f32[4] multiply(moment, decays)
  square = f32[4] multiply(gradient, gradient)
  second = f32[4] add(kept, square)
  root = f32[4] sqrt(second)
  wide = f32[4] convert(variance)
  scale = f32[4] rsqrt(wide)
  centered = f32[4] subtract(x, mean)
  entropy = f32[4] log(centered)
  sum = f32[4] add(root, scale)
  ROOT r = f32[4] add(sum, entropy)
})");
  EXPECT_EQ(Positive(*module), (std::vector<bool>{true, false, true, false, false}));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<Literal> arguments = MakeFakeArguments(*module, seed);
    for (const float v : arguments[0].values<float>()) EXPECT_TRUE(v > 0 && v <= 1) << v;
    for (const BF16 v : arguments[2].values<BF16>()) {
      EXPECT_TRUE(static_cast<float>(v) > 0 && static_cast<float>(v) <= 1) << static_cast<float>(v);
    }
  }
}

TEST(ArgumentGeneratorTest, VariancesOfBatchNormalization) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  x = f32[8,3] parameter(0)
  p = (f32[3], f32[3], f32[3], f32[3]) parameter(1)
  scale = f32[3] get-tuple-element(p), index=0
  offset = f32[3] get-tuple-element(p), index=1
  mean = f32[3] get-tuple-element(p), index=2
  variance = f32[3] get-tuple-element(p), index=3
  ROOT r = f32[8,3] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0, feature_index=1
})");
  EXPECT_EQ(Positive(*module), (std::vector<bool>{false, false, false, false, true}));
}

TEST(ArgumentGeneratorTest, FactorsOfLongSumsAreSmall) {
  const auto module = Parse(R"(HloModule m
ENTRY e {
  x = f32[2,3,20] parameter(0)
  kernel = bf16[20,3,8] parameter(1)
  weight = f32[8,5] parameter(2)
  wide = f32[20,3,8] convert(kernel)
  c = f32[2,3,8] convolution(x, wide), window={size=3 pad=1_1}, dim_labels=b0f_i0o->b0f
  ROOT d = f32[2,3,5] dot(c, weight), lhs_contracting_dims={2}, rhs_contracting_dims={0}
})");
  std::vector<int64_t> products;
  for (const ArgumentConstraints& use : InferArgumentConstraints(*module)) products.push_back(use.contraction_size);
  EXPECT_EQ(products, (std::vector<int64_t>{0, 60, 8}));
  const std::vector<Literal> arguments = MakeFakeArguments(*module, 1);
  for (const BF16 v : arguments[1].values<BF16>()) EXPECT_LE(std::fabs(static_cast<float>(v)), 0.125f);
  for (const float v : arguments[2].values<float>()) EXPECT_LE(std::fabs(v), 0.25f);
}

TEST(ArgumentGeneratorTest, FloatsAreSmall) {
  const auto module = Parse("HloModule m\nENTRY e {\n  ROOT x = f32[1000] parameter(0)\n}\n");
  const std::vector<Literal> arguments = MakeFakeArguments(*module, 1);
  for (const float v : arguments[0].values<float>()) {
    EXPECT_GE(v, -1);
    EXPECT_LT(v, 1);
  }
}

}  // namespace
}  // namespace hlokit::interp
