// SPDX-License-Identifier: Apache-2.0
// Values that the reference evaluator defines, on the smallest programs. RunText holds the exact engine to them too.
#include "interp/reference/evaluator.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::reference {
namespace {

using interp::RunText;

// Returns the value of an entry of these lines, the last of which is the root.
std::string ValueOf(std::string_view lines, std::string_view computations = "") {
  const interp::TextRun run = RunText(StrCat("HloModule m\n", computations, "\nENTRY e {\n", lines, "\n}\n"));
  EXPECT_EQ(run.error, "");
  return run.results.empty() ? run.error : run.results[0];
}

TEST(PlainEvaluatorTest, IntegersWrapAndDivideByZero) {
  EXPECT_EQ(ValueOf("a = s8[3] constant({127, -128, 7})\n b = s8[3] constant({1, -1, 0})\n ROOT r = s8[3] add(a, b)"),
            "s8[3] {-128, 127, 7}");
  EXPECT_EQ(ValueOf("a = s8[3] constant({7, -128, 7})\n b = s8[3] constant({0, -1, 2})\n ROOT r = s8[3] divide(a, b)"),
            "s8[3] {-1, -128, 3}");
  EXPECT_EQ(ValueOf("a = u8[2] constant({7, 7})\n b = u8[2] constant({0, 4})\n ROOT r = u8[2] remainder(a, b)"),
            "u8[2] {7, 3}");
}

TEST(PlainEvaluatorTest, ShiftsAndHalvesOfTypesNarrowerThanAByte) {
  EXPECT_EQ(ValueOf("a = u4[3] constant({8, 8, 4})\n b = u4[3] constant({1, 9, 1})\n"
                    "ROOT r = u4[3] shift-right-arithmetic(a, b)"),
            "u4[3] {12, 15, 2}");
  EXPECT_EQ(ValueOf("a = u4[2] constant({15, 3})\n b = u4[2] constant({15, 3})\n ROOT r = u4[2] mulhi(a, b)"),
            "u4[2] {14, 0}");
}

TEST(PlainEvaluatorTest, ConversionsSaturateAndRoundOnce) {
  EXPECT_EQ(ValueOf("a = f32[4] constant({300, -300, nan, 1.9})\n ROOT r = s8[4] convert(a)"),
            "s8[4] {127, -128, 0, 1}");
  // A tie in f32, which would round to the even 1.
  EXPECT_EQ(ValueOf("a = f64[] constant(1.00390625000001)\n ROOT r = bf16[] convert(a)"), "bf16[] 1.008");
}

constexpr std::string_view kAdd =
    "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n";

TEST(PlainEvaluatorTest, SumsOfAReduceAreRoundedAtTheEnd) {
  EXPECT_EQ(ValueOf("a = f32[3] constant({16777216, 1, 1})\n z = f32[] constant(0)\n"
                    "ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add",
                    kAdd),
            "f32[] 16777218");
}

TEST(PlainEvaluatorTest, OutOfBoundsMovesAGatherAndLeavesOutAScatter) {
  EXPECT_EQ(ValueOf("a = f32[3] constant({1, 2, 3})\n i = s32[2,1] constant({{-5}, {9}})\n"
                    "ROOT r = f32[2] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
                    "index_vector_dim=1, slice_sizes={1}"),
            "f32[2] {1, 3}");
  EXPECT_EQ(
      ValueOf("a = f32[3] constant({1, 2, 3})\n i = s32[2,1] constant({{-5}, {1}})\n u = f32[2] constant({10, 20})\n"
              "ROOT r = f32[3] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, "
              "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
              kAdd),
      "f32[3] {1, 22, 3}");
}

TEST(PlainEvaluatorTest, NanComesLastInASortByValue) {
  constexpr std::string_view kLess =
      "less {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT l = pred[] compare(a, b), direction=LT\n}\n";
  EXPECT_EQ(
      ValueOf("a = f32[4] constant({3, nan, 1, 2})\n ROOT r = f32[4] sort(a), dimensions={0}, to_apply=less", kLess),
      "f32[4] {1, 2, 3, nan}");
}

// Chains of calls deeper than a C++ stack.
TEST(PlainEvaluatorTest, CallsNestInMemory) {
  std::string text = "HloModule m\nf0 {\n ROOT p = s32[] parameter(0)\n}\n";
  constexpr int kDepth = 20000;
  for (int i = 1; i <= kDepth; ++i) {
    StrAppend(&text, "f", i, " {\n p", i, " = s32[] parameter(0)\n ROOT c", i, " = s32[] call(p", i, "), to_apply=f",
              i - 1, "\n}\n");
  }
  StrAppend(&text, "ENTRY e {\n x = s32[] constant(7)\n ROOT r = s32[] call(x), to_apply=f", kDepth, "\n}\n");
  const interp::TextRun run = RunText(text);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.results, std::vector<std::string>{"s32[] 7"});
}

}  // namespace
}  // namespace hlokit::reference
