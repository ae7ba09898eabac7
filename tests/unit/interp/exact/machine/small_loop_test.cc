// SPDX-License-Identifier: Apache-2.0
// Loops over little data run as one list of operations, with the results, counts and errors of the virtual machine,
// which runs them if there is an observer.
#include "interp/exact/machine/small_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interp/exact/evaluator.h"
#include "interp/exact/program/view.h"
#include "ir/core/str_cat.h"
#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

struct LoopRun {
  std::string results;  // or the error and its hint
  int64_t steps = 0;
  int64_t iterations = 0;
};

LoopRun RunLoop(std::string_view text, const Limits& limits, bool observed) {
  LoopRun run;
  DiagnosticSink sink;
  ExecutionObserver observer;
  EvaluatorOptions options;
  options.limits = limits;
  if (observed) options.observer = &observer;
  const auto module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", std::string(text)), ParseOptions(), &sink);
  if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
  EXPECT_FALSE(sink.has_errors()) << sink.diagnostics()[0].message;
  if (sink.has_errors()) return run;
  const auto evaluator = Evaluator::Prepare(*module, options, &sink);
  EXPECT_NE(evaluator, nullptr);
  if (evaluator == nullptr) return run;
  const std::vector<Literal> arguments = MakeFakeArguments(evaluator->argument_shapes(), 1);
  // The second run has the memory of the first.
  for (int i = 0; i < 2; ++i) {
    const auto results = evaluator->Run(arguments, &sink);
    run.results.clear();
    TextWriter writer(&run.results);
    if (results) PrintLeaves(writer, *results);
  }
  if (sink.has_errors()) run.results = StrCat(sink.diagnostics()[0].message, " / ", sink.diagnostics()[0].hint);
  run.steps = evaluator->statistics().steps;
  run.iterations = evaluator->statistics().loop_iterations;
  return run;
}

// Returns what the program returns either way.
std::string RunBothWays(std::string_view text, const Limits& limits = {}) {
  const LoopRun list = RunLoop(text, limits, false), machine = RunLoop(text, limits, true);
  EXPECT_EQ(list.results, machine.results);
  EXPECT_EQ(list.steps, machine.steps);
  EXPECT_EQ(list.iterations, machine.iterations);
  return list.results;
}

// A module with a loop of `trips` iterations over (s32[], `state`), whose body has these lines and `root`, and further
// computations.
std::string Loop(std::string_view state, std::string_view body, std::string_view root, int trips,
                 std::string_view others = "") {
  std::string elements;
  const std::string tuple = StrCat("(s32[], ", state, ")");
  return StrCat("HloModule m\n", others, "more {\n  s = ", tuple, " parameter(0)\n",
                "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(", trips, ")\n",
                "  ROOT go = pred[] compare(i, n), direction=LT\n}\nstep {\n  s = ", tuple, " parameter(0)\n",
                "  i = s32[] get-tuple-element(s), index=0\n  one = s32[] constant(1)\n  next = s32[] add(i, one)\n",
                body, "  ROOT r = ", tuple, " tuple(next, ", root, ")\n}\n");
}

TEST(SmallLoopTest, ElementsOfTheStateMayChangePlaces) {
  const std::string text =
      StrCat(Loop("f32[], f32[], f32[3]",
                  "  a = f32[] get-tuple-element(s), index=1\n  b = f32[] get-tuple-element(s), index=2\n"
                  "  v = f32[3] get-tuple-element(s), index=3\n  w = f32[3] negate(v)\n",
                  "b, a, w", 3),
             "ENTRY e {\n  zero = s32[] constant(0)\n  x = f32[] constant(1)\n  y = f32[] constant(2)\n"
             "  z = f32[3] constant({1, 2, 3})\n  t = (s32[], f32[], f32[], f32[3]) tuple(zero, x, y, z)\n"
             "  ROOT l = (s32[], f32[], f32[], f32[3]) while(t), condition=more, body=step\n}\n");
  EXPECT_EQ(RunBothWays(text), "s32[] 3\nf32[] 2\nf32[] 1\nf32[3] {-1, -2, -3}\n");
}

TEST(SmallLoopTest, AResultMayBeAViewOfTheState) {
  const std::string text = StrCat(
      Loop("f32[4], f32[2]",
           "  v = f32[4] get-tuple-element(s), index=1\n  w = f32[2] get-tuple-element(s), index=2\n"
           "  low = f32[2] slice(v), slice={[2:4]}\n  sum = f32[2] add(w, low)\n"
           "  all = f32[4] concatenate(w, sum), dimensions={0}\n",
           "all, low", 4),
      "ENTRY e {\n  zero = s32[] constant(0)\n  x = f32[4] constant({1, 2, 3, 4})\n  y = f32[2] constant({5, 6})\n"
      "  t = (s32[], f32[4], f32[2]) tuple(zero, x, y)\n"
      "  ROOT l = (s32[], f32[4], f32[2]) while(t), condition=more, body=step\n}\n");
  EXPECT_EQ(RunBothWays(text), "s32[] 4\nf32[4] {11, 14, 30, 38}\nf32[2] {19, 24}\n");
}

constexpr char kNested[] = R"(HloModule nested
twice { p = f32[] parameter(0) q = f32[] add(p, p) ROOT t = (f32[], f32[]) tuple(p, q) }
same { p = f32[] parameter(0) k = f32[] constant(3) h = f32[] multiply(k, k) ROOT r = f32[] add(p, h) }
half { p = f32[] parameter(0) k = f32[] constant(0.5) ROOT r = f32[] multiply(p, k) }
inner_more {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT go = pred[] compare(i, n), direction=LT
}
inner_step {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[] get-tuple-element(s), index=1
  c = (f32[], f32[]) call(v), to_apply=twice
  p = f32[] get-tuple-element(c), index=0
  q = f32[] get-tuple-element(c), index=1
  big = f32[] constant(40)
  is_big = pred[] compare(q, big), direction=GT
  chosen = f32[] conditional(is_big, q, q), true_computation=half, false_computation=same
  old = f32[] constant(0.125)
  kept = f32[] multiply(p, old)
  w = f32[] add(chosen, kept)
  ROOT r = (s32[], f32[]) tuple(next, w)
}
more {
  s = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT go = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  t = (s32[], f32[]) tuple(zero, v)
  l = (s32[], f32[]) while(t), condition=inner_more, body=inner_step
  w = f32[] get-tuple-element(l), index=1
  ROOT r = (s32[], f32[], f32[]) tuple(next, w, v)
}
ENTRY e {
  zero = s32[] constant(0)
  x = f32[] parameter(0)
  t = (s32[], f32[], f32[]) tuple(zero, x, x)
  ROOT l = (s32[], f32[], f32[]) while(t), condition=more, body=step
}
)";

TEST(SmallLoopTest, LoopsCallsAndConditionalsNest) { EXPECT_NE(RunBothWays(kNested), ""); }

TEST(SmallLoopTest, LimitsEndItAtTheSamePlace) {
  for (int64_t steps = 0; steps < 300; ++steps) {
    Limits limits;
    limits.max_steps = steps;
    const std::string at = RunBothWays(kNested, limits);
    if (steps > 10 && steps < 150) {
      EXPECT_NE(at.find("exceeded the limit of"), std::string::npos) << steps;
    }
  }
  for (int64_t iterations = 0; iterations < 6; ++iterations) {
    Limits limits;
    limits.max_loop_iterations = iterations;
    RunBothWays(kNested, limits);
  }
  for (int64_t depth = 0; depth < 6; ++depth) {
    Limits limits;
    limits.max_call_depth = depth;
    RunBothWays(kNested, limits);
  }
}

TEST(SmallLoopTest, UpdatesInPlaceKeepWhatIsReadLater) {
  const std::string text =
      StrCat(Loop("f32[8], f32[8]",
                  "  v = f32[8] get-tuple-element(s), index=1\n  k = f32[1] constant({7})\n"
                  "  u = f32[8] dynamic-update-slice(v, k, i)\n  w = f32[8] add(u, v)\n"
                  "  x = f32[8] get-tuple-element(s), index=2\n  y = f32[8] dynamic-update-slice(x, k, i)\n",
                  "y, w", 5),
             "ENTRY e {\n  zero = s32[] constant(0)\n  a = f32[8] parameter(0)\n"
             "  t = (s32[], f32[8], f32[8]) tuple(zero, a, a)\n"
             "  ROOT l = (s32[], f32[8], f32[8]) while(t), condition=more, body=step\n}\n");
  EXPECT_NE(RunBothWays(text), "");
}

TEST(SmallLoopTest, LargeStateIsLeftToTheMachine) {
  WhileParams params;
  CompiledComputation condition, body;
  condition.slots.resize(1);
  condition.results = {{0, 0}};
  params.condition = &condition;
  params.body = &body;
  EXPECT_NE(SmallLoop::Create(params, InstructionId(), {}), nullptr);
  const int64_t large[] = {int64_t{1} << 20};
  condition.parameters = {kNoSlot};
  body.parameters = {kNoSlot};
  body.slots.resize(1);
  body.slots[0].bytes = large[0];
  body.results = {{0, 0}};
  EXPECT_EQ(SmallLoop::Create(params, InstructionId(), large), nullptr);
}

}  // namespace
}  // namespace hlokit::interp
