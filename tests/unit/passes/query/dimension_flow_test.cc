// SPDX-License-Identifier: Apache-2.0
#include "passes/query/dimension_flow.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/query/resize_dimension.h"

namespace hlokit::query {
namespace {

Instruction InstructionNamed(const Module& module, std::string_view name) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.name() == name) return i;
    }
  }
  ADD_FAILURE() << "no instruction " << name;
  return Instruction();
}

// Resizes a dimension of an instruction of a program whose values do not matter.
Module Shrunk(const Module& module, std::string_view name, int64_t dimension, int64_t to) {
  const Instruction i = InstructionNamed(module, name);
  const SizeChange change = {i.shape().dim(dimension), to, /*rounds=*/true};
  DimensionFlow flow(module, DimensionFlow::Obstacle::kEnd);
  flow.Mark(i, 0, dimension);
  EXPECT_TRUE(flow.Follow(change).ok());
  Module changed = module.Clone();
  EXPECT_TRUE(ResizeDimensions(flow, change, &changed).ok());
  DiagnosticSink sink;
  VerifyModule(changed, {}, &sink);
  EXPECT_FALSE(sink.has_errors()) << sink.diagnostics()[0].message << "\n" << ToString(changed);
  return changed;
}

std::string ShapeOf(const Module& module, std::string_view name) {
  return ToString(InstructionNamed(module, name).shape(), /*with_layout=*/false);
}

TEST(SizeChangeTest, OtherSizesChangeInTheRatio) {
  const SizeChange exact = {6, 4};
  EXPECT_EQ(exact.New(6), 4);
  EXPECT_EQ(exact.New(12), 8);
  EXPECT_EQ(exact.New(7), -1);
  EXPECT_EQ(exact.New(int64_t{1} << 62), -1);
  const SizeChange rounded = {6, 1, /*rounds=*/true};
  EXPECT_EQ(rounded.New(7), 1);
  EXPECT_EQ(rounded.New(3), 1);
  EXPECT_EQ(rounded.New(0), 0);
}

// Two dimensions of one size are two, unless they follow from each other.
TEST(IndependentDimensionsTest, EqualSizesAreToldApart) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(HloModule m
ENTRY e {
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  one = f32[1] parameter(2)
  d = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[8,8] transpose(d), dimensions={1,0}
  ROOT flat = f32[64] reshape(t)
})");
  ASSERT_TRUE(module.ok());
  std::vector<std::string> found;
  for (const ValueDimension& at : IndependentDimensions(**module)) {
    found.push_back(StrCat(at.instruction.name(), " ", at.dimension));
  }
  // The rows of x, what is contracted, and the columns of w.
  EXPECT_EQ(found, (std::vector<std::string>{"x 0", "x 1", "w 1"}));
}

TEST(ResizeDimensionsTest, FollowsOneDimensionAndLeavesOthersOfItsSize) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(HloModule m
body {
  s = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8,8] get-tuple-element(s), index=1
  n = f32[8,8] negate(v)
  ROOT t = (s32[], f32[8,8]) tuple(i, n)
}
condition {
  s.1 = (s32[], f32[8,8]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  k = s32[] constant(3)
  ROOT l = pred[] compare(i.1, k), direction=LT
}
ENTRY e {
  x = f32[8,8] parameter(0)
  z = s32[] constant(0)
  init = (s32[], f32[8,8]) tuple(z, x)
  loop = (s32[], f32[8,8]) while(init), condition=condition, body=body
  y = f32[8,8] get-tuple-element(loop), index=1
  ROOT flat = f32[64] reshape(y)
})");
  ASSERT_TRUE(module.ok());
  const Module rows = Shrunk(**module, "x", 0, 1);
  EXPECT_EQ(ShapeOf(rows, "n"), "f32[1,8]");
  EXPECT_EQ(ShapeOf(rows, "loop"), "(s32[], f32[1,8])");
  EXPECT_EQ(ShapeOf(rows, "flat"), "f32[8]");
  const Module columns = Shrunk(**module, "n", 1, 3);
  EXPECT_EQ(ShapeOf(columns, "x"), "f32[8,3]");
  EXPECT_EQ(ShapeOf(columns, "flat"), "f32[24]");
}

TEST(ResizeDimensionsTest, SlicesPaddingAndConstantsAreFitted) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(HloModule m
ENTRY e {
  c = f32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})
  x = f32[10] parameter(0)
  start = s32[] parameter(1)
  zero = f32[] constant(0)
  part = f32[4] slice(x), slice={[5:9]}
  strided = f32[3] slice(x), slice={[1:10:4]}
  window = f32[1] dynamic-slice(x, start), dynamic_slice_sizes={1}
  padded = f32[15] pad(x, zero), padding=2_3
  ROOT t = (f32[4], f32[3], f32[1], f32[15], f32[3,2]) tuple(part, strided, window, padded, c)
})");
  ASSERT_TRUE(module.ok());
  for (const int64_t to : {1, 2, 5, 9}) Shrunk(**module, "x", 0, to);
  const Module rows = Shrunk(**module, "c", 0, 2);
  EXPECT_NE(ToString(rows).find("constant({ { 1, 2 }, { 3, 4 } })"), std::string::npos) << ToString(rows);
  const Module columns = Shrunk(**module, "c", 1, 1);
  EXPECT_NE(ToString(columns).find("constant({ {1}, {3}, {5} })"), std::string::npos) << ToString(columns);
}

// Where values matter, what cannot follow is an error.
TEST(ResizeDimensionsTest, ObstaclesAreErrorsUnlessTheFlowEndsThere) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  u = f32[8] custom-call(x), custom_call_target="unknown"
  ROOT n = f32[8] negate(u)
})");
  ASSERT_TRUE(module.ok());
  DimensionFlow strict(**module, DimensionFlow::Obstacle::kError);
  strict.Mark(InstructionNamed(**module, "x"), 0, 0);
  const absl::Status status = strict.Follow({8, 4});
  EXPECT_NE(status.message().find("`u`, custom-call"), std::string::npos) << status.message();
  const Module before = Shrunk(**module, "x", 0, 1), after = Shrunk(**module, "n", 0, 1);
  EXPECT_EQ(ShapeOf(before, "x") + ShapeOf(before, "u") + ShapeOf(before, "n"), "f32[1]f32[8]f32[8]");
  EXPECT_EQ(ShapeOf(after, "x") + ShapeOf(after, "u") + ShapeOf(after, "n"), "f32[8]f32[1]f32[1]");
}

}  // namespace
}  // namespace hlokit::query
