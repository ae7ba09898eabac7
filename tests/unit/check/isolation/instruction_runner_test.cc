// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/instruction_runner.h"

#include <gtest/gtest.h>

#include "tests/unit/check/isolation/isolation_text.h"

namespace hlokit::interp {
namespace {

constexpr char kKinds[] = R"(HloModule kinds, replica_count=2
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
callee {
  p = f32[4] parameter(0)
  ROOT inner = f32[4] all-reduce(p), to_apply=sum, replica_groups={}
}
ENTRY e {
  x = f32[4] parameter(0)
  n = s32[] parameter(1)
  one = f32[4] constant({1, 1, 1, 1})
  add = f32[4] add(x, one)
  pair = (f32[4], f32[4]) tuple(x, add)
  first = f32[4] get-tuple-element(pair), index=0
  whole = f32[4] all-reduce(x), to_apply=sum, replica_groups={}
  id = u32[] replica-id()
  zero = f32[] constant(0)
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
  call = f32[4] call(x), to_apply=callee
  effect = f32[4] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true
  token = token[] after-all()
  fed = ((f32[4]), token[]) infeed(token)
  short = f32[<=4] set-dimension-size(x, n), dimensions={0}
  twice = f32[<=4] add(short, short)
  ROOT r = f32[4] negate(whole)
})";

TEST(InstructionRunnerTest, SaysWhatCanRunAlone) {
  const std::unique_ptr<Module> module = ParseForIsolation(kKinds);
  const InstructionRunner runner(*module, EngineKind::kExact, {});
  const auto kind = [&](std::string_view name) { return runner.Classify(Named(*module, name)); };
  for (std::string_view name : {"x", "one", "pair", "first", "call", "token"}) {
    EXPECT_EQ(kind(name), Runnable::kNothing) << name;
  }
  for (std::string_view name : {"add", "total", "r"}) EXPECT_EQ(kind(name), Runnable::kYes) << name;
  for (std::string_view name : {"whole", "id"}) EXPECT_EQ(kind(name), Runnable::kDevices) << name;
  for (std::string_view name : {"effect", "fed"}) EXPECT_EQ(kind(name), Runnable::kSideEffects) << name;
  for (std::string_view name : {"short", "twice"}) EXPECT_EQ(kind(name), Runnable::kDynamic) << name;
  // In a part a call runs, with what is in it.
  EXPECT_EQ(runner.ClassifyInPart(Named(*module, "call")), Runnable::kDevices);
}

TEST(InstructionRunnerTest, RunsOnTheValuesOfOperandsInBothEngines) {
  const std::unique_ptr<Module> module = ParseForIsolation(R"(HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  square = f32[3] multiply(x, x)
  difference = f32[3] subtract(y, square)
  ROOT sorted = (f32[3], f32[3]) sort(x, y), dimensions={0}, to_apply=less
})");
  const Literal x = Floats(module->context(), {3}, {3, 1, 2}), y = Floats(module->context(), {3}, {10, 20, 30});
  for (const EngineKind engine : {EngineKind::kExact, EngineKind::kReference}) {
    InstructionRunner runner(*module, engine, {});
    const auto run = [&](std::string_view name, const std::vector<Literal>& operands) {
      const absl::StatusOr<std::vector<Literal>> leaves = runner.Run(Named(*module, name), operands);
      EXPECT_TRUE(leaves.ok()) << leaves.status().message();
      std::vector<std::vector<float>> values;
      if (leaves.ok()) {
        for (const Literal& leaf : *leaves) {
          values.emplace_back(leaf.values<float>().begin(), leaf.values<float>().end());
        }
      }
      return values;
    };
    using Values = std::vector<std::vector<float>>;
    // An operand that occurs twice is given twice.
    EXPECT_EQ(run("square", {x, x}), (Values{{9, 1, 4}}));
    EXPECT_EQ(run("difference", {y, x}), (Values{{7, 19, 28}}));
    EXPECT_EQ(run("sorted", {x, y}), (Values{{1, 2, 3}, {20, 30, 10}}));
    // Once more, on other values.
    EXPECT_EQ(run("square", {y, y}), (Values{{100, 400, 900}}));
  }
}

TEST(InstructionRunnerTest, WorkGrowsWithContractionsAndCallees) {
  const std::unique_ptr<Module> module = ParseForIsolation(R"(HloModule m
body {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[64,64] get-tuple-element(s), index=1
  d = f32[64,64] dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[64,64]) tuple(i, d)
}
condition {
  s.1 = (s32[], f32[64,64]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  n = s32[] constant(1000000)
  ROOT l = pred[] compare(i.1, n), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  z = s32[] constant(0)
  sum = f32[64,64] add(x, x)
  init = (s32[], f32[64,64]) tuple(z, sum)
  ROOT loop = (s32[], f32[64,64]) while(init), condition=condition, body=body
})");
  const double add = WorkOf(Named(*module, "sum")), dot = WorkOf(Named(*module, "d"));
  EXPECT_GT(dot, 15 * add);
  // A loop counts as one iteration.
  EXPECT_GE(WorkOf(Named(*module, "loop")), dot);
  EXPECT_LT(WorkOf(Named(*module, "loop")), 2 * dot);
}

}  // namespace
}  // namespace hlokit::interp
