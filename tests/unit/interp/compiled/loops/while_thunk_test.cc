// SPDX-License-Identifier: Apache-2.0
// While loops of scalars are one function, with the values, limits and errors of the exact engine.
#include "interp/compiled/loops/while_thunk.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "interp/compiled/code/engine_modules.h"
#include "ir/core/str_cat.h"
#include "tests/unit/interp/compiled/both_engines.h"

namespace hlokit::interp::compiled {
namespace {

class WhileThunkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Generator().ok()) GTEST_SKIP() << "the code generator is not built";
  }
};

int CountWhiles(const FastRun& run) {
  int count = 0;
  for (const CompiledLoop& loop : run.loops) count += loop.program.form == LoopForm::kWhile;
  return count;
}

// `n`: trips; the state is (counter, two floats that swap, a pred, a bf16, an s64).
std::string Swapping(int n) {
  return StrCat(R"(HloModule m
condition {
  s = (s32[], f32[], f32[], pred[], bf16[], s64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant()",
                n, R"()
  ROOT again = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[], f32[], pred[], bf16[], s64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[] get-tuple-element(s), index=1
  b = f32[] get-tuple-element(s), index=2
  p = pred[] get-tuple-element(s), index=3
  q = pred[] not(p)
  h = bf16[] get-tuple-element(s), index=4
  w = bf16[] convert(a)
  k = bf16[] add(h, w)
  c = f32[] sine(b)
  d = f32[] select(p, c, b)
  x = s64[] get-tuple-element(s), index=5
  e = s64[] convert(j)
  y = s64[] multiply(x, e)
  z = s64[] divide(y, e)
  ROOT next = (s32[], f32[], f32[], pred[], bf16[], s64[]) tuple(j, d, a, q, k, z)
}
ENTRY e {
  i = s32[] constant(0)
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  p = pred[] parameter(2)
  h = bf16[] parameter(3)
  x = s64[] parameter(4)
  t = (s32[], f32[], f32[], pred[], bf16[], s64[]) tuple(i, a, b, p, h, x)
  ROOT r = (s32[], f32[], f32[], pred[], bf16[], s64[]) while(t), condition=condition, body=body
})");
}

TEST_F(WhileThunkTest, ScalarsSwapCountAndCallFunctions) {
  for (int n : {0, 1, 2, 7, 20'000}) EXPECT_EQ(CountWhiles(RunBoth(Swapping(n), 0)), 1) << n;
}

TEST_F(WhileThunkTest, ALoopInTheBodyOfAnotherIsCompiledAlone) {
  const FastRun run = RunBoth(R"(HloModule m
inner_condition {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT again = pred[] compare(i, n), direction=LT
}
inner_body {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[] get-tuple-element(s), index=1
  f = f32[] constant(0.75)
  y = f32[] multiply(x, f)
  ROOT next = (s32[], f32[]) tuple(j, y)
}
condition {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT again = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[]) parameter(0)
  zero = s32[] constant(0)
  x = f32[] get-tuple-element(s), index=1
  t = (s32[], f32[]) tuple(zero, x)
  w = (s32[], f32[]) while(t), condition=inner_condition, body=inner_body
  y = f32[] get-tuple-element(w), index=1
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT next = (s32[], f32[]) tuple(j, y)
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[] parameter(0)
  t = (s32[], f32[]) tuple(i, x)
  ROOT r = (s32[], f32[]) while(t), condition=condition, body=body
})",
                              0);
  EXPECT_EQ(CountWhiles(run), 1);
}

TEST_F(WhileThunkTest, TheLimitOfIterationsIsThatOfTheExactEngine) {
  DiagnosticSink ignored;
  const auto module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", Swapping(20'000)), ParseOptions(), &ignored);
  ASSERT_NE(module, nullptr);
  for (int64_t limit : {0, 1, 8192, 19'999, 20'000}) {
    EvaluatorOptions options;
    options.limits.max_loop_iterations = limit;
    std::string messages[2];
    for (int fast = 0; fast < 2; ++fast) {
      const auto kernels = fast == 0 ? nullptr : std::make_shared<CompiledKernels>(ObservationRequest());
      DiagnosticSink sink;
      const auto evaluator = Evaluator::Prepare(*module, options, &sink, kernels);
      ASSERT_NE(evaluator, nullptr);
      const bool ran = evaluator->Run(MakeFakeArguments(evaluator->argument_shapes(), 1), &sink).has_value();
      EXPECT_EQ(ran, limit >= 20'000) << limit;
      for (const Diagnostic& d : sink.diagnostics()) messages[fast] += d.message + '\n';
    }
    EXPECT_EQ(messages[0], messages[1]) << limit;
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
