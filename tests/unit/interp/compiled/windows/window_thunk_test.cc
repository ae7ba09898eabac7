// SPDX-License-Identifier: Apache-2.0
// Steps of windows in the types and forms of pooling and its gradients, with features minor and with lines minor. Their
// values are those of the exact engine, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "interp/processor/instruction_set.h"
#include "ir/core/str_cat.h"
#include "tests/unit/interp/compiled/both_engines.h"

namespace hlokit::interp::compiled {
namespace {

constexpr std::string_view kProgramStart = R"(HloModule m
sum {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT s = TYPE[] add(a, b)
}
max {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT m = TYPE[] maximum(a, b)
}
ge {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}
ENTRY e {
  zero = TYPE[] constant(0)
  low = TYPE[] constant(-inf)
  three = TYPE[] constant(3)
  part = TYPE[] constant(0.3)
)";

std::string WithWord(std::string text, std::string_view word, std::string_view with) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size())) {
    text.replace(at, word.size(), with);
  }
  return text;
}

std::vector<std::string_view> WindowTypes() {
  std::vector<std::string_view> types = {"f32", "bf16"};
  if (HostInstructionSet() != InstructionSet::kSse4) types.push_back("f16");
  return types;
}

// Runs the instructions for each type. Expects that `windows` instructions are parts of steps of windows.
void RunTypes(std::string_view body, int windows) {
  for (const std::string_view type : WindowTypes()) {
    const FastRun run = RunBoth(WithWord(StrCat(kProgramStart, body), "TYPE", type), 0);
    const auto is_window = [](const KernelChoice& choice) { return choice.kind == KernelChoice::Kind::kWindow; };
    EXPECT_EQ(std::count_if(run.choices.begin(), run.choices.end(), is_window), windows) << type;
  }
}

TEST(WindowThunkTest, AveragePoolingIsOneThunkWithItsFactor) {
  RunTypes(R"(
  x = TYPE[3,20,26,40] parameter(0)
  s = TYPE[3,10,13,40] reduce-window(x, zero), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=sum
  p = TYPE[3,10,13,40] broadcast(part), dimensions={}
  ROOT y = TYPE[3,10,13,40] multiply(s, p)
})",
           2);
  RunTypes(R"(
  x = TYPE[3,5,20,37] parameter(0)
  s = TYPE[3,5,10,19] reduce-window(x, zero), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_0x1_1}, to_apply=sum
  p = TYPE[3,5,10,19] broadcast(three), dimensions={}
  ROOT y = TYPE[3,5,10,19] divide(s, p)
})",
           2);
}

TEST(WindowThunkTest, TheGradientOfAveragePoolingIsOneThunk) {
  RunTypes(R"(
  g = TYPE[3,10,13,40] parameter(0)
  p = TYPE[3,10,13,40] broadcast(part), dimensions={}
  e = TYPE[3,10,13,40] multiply(g, p)
  s = TYPE[3,21,27,40] pad(e, zero), padding=0_0_0x1_1_1x1_1_1x0_0_0
  ROOT y = TYPE[3,20,26,40] reduce-window(s, zero), window={size=1x2x2x1}, to_apply=sum
})",
           3);
  RunTypes(R"(
  g = TYPE[3,5,10,19] parameter(0)
  p = TYPE[3,5,10,19] broadcast(three), dimensions={}
  e = TYPE[3,5,10,19] divide(g, p)
  s = TYPE[3,5,23,41] pad(e, zero), padding=0_0_0x0_0_0x2_2_1x2_2_1
  ROOT y = TYPE[3,5,21,39] reduce-window(s, zero), window={size=1x1x3x3}, to_apply=sum
})",
           3);
}

TEST(WindowThunkTest, OperandsMayBeDilated) {
  RunTypes(R"(
  x = TYPE[2,9,11,40] parameter(0)
  a = TYPE[2,18,20,40] reduce-window(x, part), window={size=1x3x4x1 pad=0_0x2_1x1_1x0_0 lhs_dilate=1x2x2x1}, to_apply=sum
  b = TYPE[2,6,7,40] reduce-window(x, low), window={size=1x3x3x1 stride=1x3x3x1 pad=0_0x1_1x0_0x0_0 lhs_dilate=1x2x2x1}, to_apply=max
  y = TYPE[2,40,9,11] parameter(1)
  c = TYPE[2,40,18,31] reduce-window(y, part), window={size=1x1x3x3 pad=0_0x0_0x2_1x0_2 lhs_dilate=1x1x2x3}, to_apply=sum
  d = TYPE[2,40,18,31] reduce-window(y, low), window={size=1x1x3x3 pad=0_0x0_0x2_1x0_2 lhs_dilate=1x1x2x3}, to_apply=max
  ROOT r = (TYPE[2,18,20,40], TYPE[2,6,7,40], TYPE[2,40,18,31], TYPE[2,40,18,31]) tuple(a, b, c, d)
})",
           4);
}

TEST(WindowThunkTest, MaximumPoolingAndItsGradient) {
  RunTypes(R"(
  x = TYPE[3,20,26,40] parameter(0)
  g = TYPE[3,10,13,40] parameter(1)
  y = TYPE[3,10,13,40] reduce-window(x, low), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, to_apply=max
  d = TYPE[3,20,26,40] select-and-scatter(x, g, zero), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, select=ge, scatter=sum
  ROOT r = (TYPE[3,10,13,40], TYPE[3,20,26,40]) tuple(y, d)
})",
           2);
  for (const int width : {7, 26, 67}) {
    const std::string positions = StrCat((width - 2) / 2 + 1);
    RunTypes(WithWord(WithWord(R"(
  x = TYPE[3,5,20,WIDTH] parameter(0)
  g = TYPE[3,5,10,POSITIONS] parameter(1)
  y = TYPE[3,5,10,POSITIONS] reduce-window(x, low), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_0x1_0}, to_apply=max
  d = TYPE[3,5,20,WIDTH] select-and-scatter(x, g, zero), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_0x1_0}, select=ge, scatter=sum
  ROOT r = (TYPE[3,5,10,POSITIONS], TYPE[3,5,20,WIDTH]) tuple(y, d)
})",
                               "WIDTH", StrCat(width)),
                      "POSITIONS", positions),
             2);
  }
}

TEST(WindowThunkTest, StridesOfThreeAndMoreWithTheLineMinor) {
  for (const int stride : {3, 4, 5}) {
    for (const int width : {31, 64}) {
      std::string body = R"(
  x = TYPE[2,3,17,WIDTH] parameter(0)
  g = TYPE[2,3,LINES,POSITIONS] parameter(1)
  y = TYPE[2,3,LINES,POSITIONS] reduce-window(x, low), window={size=1x1x3x4 stride=1x1xSxS pad=0_0x0_0x1_0x2_0}, to_apply=max
  s = TYPE[2,3,LINES,POSITIONS] reduce-window(x, zero), window={size=1x1x3x4 stride=1x1xSxS pad=0_0x0_0x1_0x2_0}, to_apply=sum
  d = TYPE[2,3,17,WIDTH] select-and-scatter(x, g, zero), window={size=1x1x3x4 stride=1x1xSxS pad=0_0x0_0x1_0x2_0}, select=ge, scatter=sum
  ROOT r = (TYPE[2,3,LINES,POSITIONS], TYPE[2,3,LINES,POSITIONS], TYPE[2,3,17,WIDTH]) tuple(y, s, d)
})";
      body = WithWord(body, "WIDTH", StrCat(width));
      body = WithWord(body, "LINES", StrCat((18 - 3) / stride + 1));
      body = WithWord(body, "POSITIONS", StrCat((width + 2 - 4) / stride + 1));
      RunTypes(WithWord(body, "xSxS", StrCat("x", stride, "x", stride)), 3);
    }
  }
}

// Each eleventh element is NaN, and an infinity here and there.
TEST(WindowThunkTest, NansInLinesThatAreMinor) {
  RunTypes(R"(
  n = s32[2,3,17,31] iota(), iota_dimension=3
  l = s32[2,3,17,31] iota(), iota_dimension=2
  five = s32[] constant(5)
  fives = s32[2,3,17,31] broadcast(five), dimensions={}
  l5 = s32[2,3,17,31] multiply(l, fives)
  place = s32[2,3,17,31] add(n, l5)
  eleven = s32[] constant(11)
  elevens = s32[2,3,17,31] broadcast(eleven), dimensions={}
  rest = s32[2,3,17,31] remainder(place, elevens)
  none = s32[] constant(0)
  nones = s32[2,3,17,31] broadcast(none), dimensions={}
  is_nan = pred[2,3,17,31] compare(rest, nones), direction=EQ
  is_low = pred[2,3,17,31] compare(rest, fives), direction=EQ
  nan = TYPE[] constant(nan)
  nans = TYPE[2,3,17,31] broadcast(nan), dimensions={}
  lows = TYPE[2,3,17,31] broadcast(low), dimensions={}
  p = TYPE[2,3,17,31] parameter(0)
  q = TYPE[2,3,17,31] select(is_low, lows, p)
  x = TYPE[2,3,17,31] select(is_nan, nans, q)
  g = TYPE[2,3,8,15] parameter(1)
  y = TYPE[2,3,8,15] reduce-window(x, low), window={size=1x1x3x3 stride=1x1x2x2}, to_apply=max
  s = TYPE[2,3,8,15] reduce-window(x, zero), window={size=1x1x3x3 stride=1x1x2x2}, to_apply=sum
  d = TYPE[2,3,17,31] select-and-scatter(x, g, zero), window={size=1x1x3x3 stride=1x1x2x2}, select=ge, scatter=sum
  ROOT r = (TYPE[2,3,8,15], TYPE[2,3,8,15], TYPE[2,3,17,31]) tuple(y, s, d)
})",
           3);
}

TEST(WindowThunkTest, TwoOuterDimensionsMayBeDilated) {
  RunTypes(R"(
  x = TYPE[2,5,6,7,16] parameter(0)
  a = TYPE[2,9,11,6,16] reduce-window(x, part), window={size=1x3x3x2x1 pad=0_0x1_1x1_1x0_0x0_0 lhs_dilate=1x2x2x1x1}, to_apply=sum
  b = TYPE[2,3,2,6,16] reduce-window(x, low), window={size=1x2x3x2x1 rhs_dilate=1x2x2x1x1}, to_apply=max
  y = TYPE[2,3,5,6,14] parameter(1)
  c = TYPE[2,3,9,11,13] reduce-window(y, part), window={size=1x1x3x3x2 pad=0_0x0_0x1_1x1_1x0_0 lhs_dilate=1x1x2x2x1}, to_apply=sum
  d = TYPE[2,3,3,2,13] reduce-window(y, low), window={size=1x1x2x3x2 rhs_dilate=1x1x2x2x1}, to_apply=max
  ROOT r = (TYPE[2,9,11,6,16], TYPE[2,3,2,6,16], TYPE[2,3,9,11,13], TYPE[2,3,3,2,13]) tuple(a, b, c, d)
})",
           4);
}

TEST(WindowThunkTest, WindowsOfThreeDimensions) {
  RunTypes(R"(
  x = TYPE[2,8,10,12,16] parameter(0)
  g = TYPE[2,4,5,6,16] parameter(1)
  y = TYPE[2,4,5,6,16] reduce-window(x, low), window={size=1x3x3x3x1 stride=1x2x2x2x1 pad=0_0x1_0x1_0x1_0x0_0}, to_apply=max
  d = TYPE[2,8,10,12,16] select-and-scatter(x, g, zero), window={size=1x3x3x3x1 stride=1x2x2x2x1 pad=0_0x1_0x1_0x1_0x0_0}, select=ge, scatter=sum
  z = TYPE[2,3,8,10,12] parameter(2)
  h = TYPE[2,3,4,5,6] parameter(3)
  s = TYPE[2,3,4,5,6] reduce-window(z, zero), window={size=1x1x2x2x2 stride=1x1x2x2x2}, to_apply=sum
  e = TYPE[2,3,8,10,12] select-and-scatter(z, h, part), window={size=1x1x3x3x3 stride=1x1x2x2x2 pad=0_0x0_0x1_0x1_0x1_0}, select=ge, scatter=sum
  ROOT r = (TYPE[2,4,5,6,16], TYPE[2,8,10,12,16], TYPE[2,3,4,5,6], TYPE[2,3,8,10,12]) tuple(y, d, s, e)
})",
           4);
}

TEST(WindowThunkTest, AFactorWithOtherUsersStaysByItself) {
  RunTypes(R"(
  x = TYPE[3,20,26,40] parameter(0)
  p = TYPE[3,20,26,40] broadcast(part), dimensions={}
  e = TYPE[3,20,26,40] multiply(x, p)
  s = TYPE[3,10,13,40] reduce-window(e, zero), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=sum
  ROOT r = (TYPE[3,20,26,40], TYPE[3,10,13,40]) tuple(e, s)
})",
           1);
}

// A NaN in a line that is the only one of some windows and shared by others, at edges of two dimensions. `batch` and
// `lines` set how many pieces there are.
void RunPoolingWithNan(int lines, int columns, int features, int results, std::string_view reducer) {
  std::string text = R"(HloModule m
best {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] REDUCER(a, b)
}
ENTRY e {
  d = s32[SHAPE] iota(), iota_dimension=0
  h = s32[SHAPE] iota(), iota_dimension=1
  z = s32[] constant(0)
  zero = s32[SHAPE] broadcast(z), dimensions={}
  h0 = pred[SHAPE] compare(h, zero), direction=EQ
  d0 = pred[SHAPE] compare(d, zero), direction=EQ
  both = pred[SHAPE] and(h0, d0)
  nan = f32[] constant(nan)
  one = f32[] constant(1)
  nans = f32[SHAPE] broadcast(nan), dimensions={}
  ones = f32[SHAPE] broadcast(one), dimensions={}
  x = f32[SHAPE] select(both, nans, ones)
  init = f32[] constant(-1)
  ROOT w = f32[RESULT] reduce-window(x, init), window={size=2x2x2x1 stride=1x2x1x1 pad=1_0x0_PADx0_0x0_0}, to_apply=best
})";
  text = WithWord(text, "SHAPE", StrCat("2,", lines, ",", columns, ",", features));
  text = WithWord(text, "RESULT", StrCat("2,", results, ",", columns - 1, ",", features));
  text = WithWord(text, "PAD", StrCat(results * 2 - lines));
  const FastRun run = RunBoth(WithWord(text, "REDUCER", reducer), 0);
  const auto is_window = [](const KernelChoice& choice) { return choice.kind == KernelChoice::Kind::kWindow; };
  EXPECT_TRUE(std::any_of(run.choices.begin(), run.choices.end(), is_window));
}

TEST(WindowThunkTest, LinesThatAreAloneInAWindowKeepTheirNan) {
  for (const std::string_view reducer : {"maximum", "minimum"}) {
    RunPoolingWithNan(3, 8, 32, 2, reducer);
    RunPoolingWithNan(3, 64, 1024, 8, reducer);  // several pieces
  }
}

TEST(WindowThunkTest, DilationsThatExceedTheOperandInManyDimensions) {
  RunBoth(R"(HloModule m
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[1,1,1,1,1,1,1024,2,16] parameter(0)
  init = f32[] constant(-inf)
  ROOT w = f32[1,1,1,1,1,1,1,1,16] reduce-window(x, init), window={size=2x2x2x2x2x2x2x2x1 pad=1023_0x1023_0x1023_0x1023_0x1023_0x1023_0x0_0x0_0x0_0 rhs_dilate=1023x1023x1023x1023x1023x1023x1023x1x1}, to_apply=max
})",
          0);
}

}  // namespace
}  // namespace hlokit::interp::compiled
