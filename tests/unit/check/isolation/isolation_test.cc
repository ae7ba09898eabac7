// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/isolation.h"

#include <gtest/gtest.h>

#include "tests/unit/check/isolation/isolation_text.h"

namespace hlokit::interp {
namespace {

// Two equal layers and another instruction, in a loop of three iterations.
constexpr char kLayers[] = R"(HloModule layers
fused {
  p = f32[8] parameter(0)
  q = f32[8] exponential(p)
  ROOT u = f32[8] multiply(q, q)
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[8] get-tuple-element(s), index=1
  first = f32[8] tanh(v)
  second = f32[8] tanh(first)
  third = f32[8] cosine(second)
  ROOT t = (s32[], f32[8]) tuple(next, third)
}
condition {
  s.1 = (s32[], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i.1, n), direction=LT
}
ENTRY e {
  x = f32[8] parameter(0)
  z = s32[] constant(0)
  init = (s32[], f32[8]) tuple(z, x)
  loop = (s32[], f32[8]) while(init), condition=condition, body=body
  y = f32[8] get-tuple-element(loop), index=1
  ROOT f = f32[8] fusion(y), kind=kLoop, calls=fused
})";

int64_t OmittedFor(const IsolationResult& result, Omission why) { return result.omitted[static_cast<size_t>(why)]; }

struct Outcome {
  IsolationResult result;
  bool ran = false;
  bool out_of_time = false;
};

Outcome Isolate(const Module& module, const IsolationOptions& options, EngineKind engine = EngineKind::kExact) {
  Outcome outcome;
  EngineIsolation isolation(module, engine, options);
  outcome.ran = RunObserved(module, engine, isolation.Request(), &isolation);
  outcome.out_of_time = isolation.is_out_of_time();
  outcome.result = isolation.Finish();
  return outcome;
}

TEST(EngineIsolationTest, ComparesEachExecutionInTheOtherEngine) {
  const std::unique_ptr<Module> module = ParseForIsolation(kLayers);
  for (const EngineKind engine : {EngineKind::kExact, EngineKind::kReference}) {
    const Outcome all = Isolate(*module, {}, engine);
    ASSERT_TRUE(all.ran);
    EXPECT_TRUE(all.result.equal());
    // next, first, second, third; less; q, u.
    EXPECT_EQ(all.result.instructions, 7);
    EXPECT_EQ(all.result.executions, 4 * 3 + 4 + 2);
  }
  IsolationOptions options;
  options.whole_fusions = true;
  options.max_executions = 2;
  const Outcome some = Isolate(*module, options);
  EXPECT_EQ(some.result.instructions, 6);  // the fusion in place of q and u
  EXPECT_EQ(some.result.executions, 5 * 2 + 1);
}

TEST(EngineIsolationTest, LeavesOutWhatIsTooMuchWork) {
  const std::unique_ptr<Module> module = ParseForIsolation(kLayers);
  IsolationOptions options;
  options.max_work = 10;  // the scalars
  const Outcome outcome = Isolate(*module, options);
  EXPECT_EQ(outcome.result.instructions, 2);
  EXPECT_EQ(OmittedFor(outcome.result, Omission::kWork), 5);
}

TEST(EngineIsolationTest, TheFirstOfEqualInstructionsStandsForAll) {
  const std::unique_ptr<Module> module = ParseForIsolation(kLayers);
  IsolationOptions options;
  options.distinct = true;
  const Outcome outcome = Isolate(*module, options);
  EXPECT_EQ(OmittedFor(outcome.result, Omission::kRepeated), 1);  // second
  EXPECT_EQ(outcome.result.instructions, 6);
  EXPECT_EQ(outcome.result.executions, 3 * 3 + 4 + 2);
}

TEST(EngineIsolationTest, CountsWhatIsNotReachedInTime) {
  const std::unique_ptr<Module> module = ParseForIsolation(kLayers);
  IsolationOptions options;
  options.max_seconds = -1;
  const Outcome outcome = Isolate(*module, options);
  EXPECT_FALSE(outcome.ran);
  EXPECT_TRUE(outcome.out_of_time);
  EXPECT_EQ(outcome.result.instructions, 0);
  EXPECT_EQ(OmittedFor(outcome.result, Omission::kTime), 7);
}

// An engine that computes one instruction wrongly is played by what it would show.
TEST(EngineIsolationTest, NamesTheInstructionThatIsWrong) {
  const std::unique_ptr<Module> module = ParseForIsolation(R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  ROOT s = f32[4] add(n, x)
})");
  EngineIsolation isolation(*module, EngineKind::kExact, {});
  const std::vector<float> x = {1, 2, 3, 4}, wrong = {-1, -2, -3.5, -4}, sum = {0, 0, -0.5, 0};
  const auto bytes = [](const std::vector<float>& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  const auto show = [&](std::string_view name, const std::vector<float>& value,
                        const std::vector<const std::vector<float>*>& operands) {
    std::vector<const std::byte*> given;
    for (const std::vector<float>* operand : operands) given.push_back(bytes(*operand));
    const std::byte* const own = bytes(value);
    return isolation.OnValue(Named(*module, name).id(), {&own, 1}, given).ok();
  };
  ASSERT_TRUE(show("n", wrong, {&x}));
  ASSERT_TRUE(show("s", sum, {&wrong, &x}));
  const IsolationResult result = isolation.Finish();
  ASSERT_EQ(result.differences.size(), 1u);
  const IsolatedDifference& d = result.differences[0];
  EXPECT_EQ(d.instruction.name(), "n");
  EXPECT_EQ(d.worst.element, 2);
  EXPECT_EQ(d.worst.different, 1);
  EXPECT_EQ(d.worst.actual, "-3.5");
  EXPECT_EQ(d.worst.expected, "-3");
}

TEST(IsolationTallyTest, ErrorsComeFirstAndThenTheLargestDistance) {
  const std::unique_ptr<Module> module = ParseForIsolation(R"(HloModule m
ENTRY e {
  x = f32[1] parameter(0)
  a = f32[1] negate(x)
  b = f32[1] negate(a)
  c = f32[1] negate(b)
  d = f32[1] negate(c)
  ROOT g = f32[1] negate(d)
})");
  IsolationTally tally(*module);
  const auto exact = [](const Literal&) { return ErrorSpec(); };
  const auto value = [&](float v) { return std::vector<Literal>{Floats(module->context(), {1}, {v})}; };
  EXPECT_TRUE(tally.Compare(Named(*module, "x"), 1, value(1), value(1), exact));
  EXPECT_FALSE(tally.Compare(Named(*module, "a"), 1, value(1.5), value(1), exact));
  EXPECT_FALSE(tally.Compare(Named(*module, "b"), 1, value(1.25), value(1), exact));
  EXPECT_FALSE(tally.Compare(Named(*module, "b"), 2, value(9), value(1), exact));
  EXPECT_TRUE(tally.Compare(Named(*module, "b"), 3, value(1), value(1), exact));
  EXPECT_FALSE(tally.Compare(Named(*module, "c"), 1, {}, value(1), exact));  // no leaf
  EXPECT_FALSE(tally.Compare(Named(*module, "d"), 1, value(2), value(1), exact));
  tally.Absolve(Named(*module, "d"));
  tally.Omit(Named(*module, "g"), Omission::kWork);
  EXPECT_TRUE(tally.Has(Named(*module, "g")));
  const IsolationResult result = tally.Finish();
  EXPECT_EQ(result.instructions, 5);
  EXPECT_EQ(result.executions, 7);
  EXPECT_EQ(result.intermediate, 1);
  EXPECT_EQ(OmittedFor(result, Omission::kWork), 1);
  ASSERT_EQ(result.differences.size(), 3u);
  EXPECT_EQ(result.differences[0].instruction.name(), "c");
  EXPECT_EQ(result.differences[0].error, "it has 0 leaves, expected 1");
  EXPECT_EQ(result.differences[1].instruction.name(), "b");
  EXPECT_EQ(result.differences[1].worst_execution, 2);
  EXPECT_EQ(result.differences[1].executions, 3);
  EXPECT_EQ(result.differences[1].different, 2);
  EXPECT_EQ(result.differences[2].instruction.name(), "a");
}

}  // namespace
}  // namespace hlokit::interp
