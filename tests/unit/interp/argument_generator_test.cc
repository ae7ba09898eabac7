#include "interp/reference/argument_generator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "parser/parser.h"

namespace hlokit::interp {
namespace {

std::unique_ptr<Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  const auto source = std::make_shared<const SourceBuffer>("test.hlo", text);
  std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
  EXPECT_NE(module, nullptr) << RenderText(sink, *source);
  return module;
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
    const std::vector<Literal> arguments = MakeArguments(*module, static_cast<uint64_t>(seed));
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

TEST(ArgumentGeneratorTest, FloatsAreSmall) {
  const auto module = Parse("HloModule m\nENTRY e {\n  ROOT x = f32[1000] parameter(0)\n}\n");
  const std::vector<Literal> arguments = MakeArguments(*module, 1);
  for (const float v : arguments[0].values<float>()) {
    EXPECT_GE(v, -1);
    EXPECT_LT(v, 1);
  }
}

}  // namespace
}  // namespace hlokit::interp
