// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/loop_schedule_linearizer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ir/core/str_cat.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

// Returns a loop with `elements` arrays in its state, of which each iteration computes new values, and `readers`
// instructions that read the whole state.
std::string LoopText(int elements, int readers) {
  std::string state = "(", reads, values;
  for (int k = 0; k < elements; ++k) {
    StrAppend(&state, k == 0 ? "" : ", ", "f32[]");
    StrAppend(&reads, "x", k, " = f32[] get-tuple-element(s), index=", k, "\n");
    StrAppend(&reads, "w", k, " = f32[] negate(x", k, ")\n");
    StrAppend(&values, k == 0 ? "w" : ", w", k);
  }
  state += ")";
  for (int k = 0; k < readers; ++k) {
    StrAppend(&reads, "r", k, " = f32[] custom-call(s), custom_call_target=\"f\", custom_call_has_side_effect=true\n");
  }
  return StrCat("HloModule m\ncondition {\ns = ", state,
                " parameter(0)\nROOT c = pred[] constant(false)\n}\nbody {\ns = ", state, " parameter(0)\n", reads,
                "ROOT t = ", state, " tuple(", values, ")\n}\nENTRY e {\np = ", state,
                " parameter(0)\nROOT w = ", state, " while(p), condition=condition, body=body\n}\n");
}

TEST(LoopScheduleLinearizerTest, EachReaderComesBeforeEachUpdate) {
  const std::unique_ptr<Module> module = Parse(LoopText(20, 5));
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(*LinearizeLoops(*module), 20 * 5);
  EXPECT_EQ(*LinearizeLoops(*module), 0);
}

TEST(LoopScheduleLinearizerTest, BodiesWithTooManyPairsStay) {
  const std::unique_ptr<Module> module = Parse(LoopText(300, 300));
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(*LinearizeLoops(*module), 0);
}

}  // namespace
}  // namespace hlokit
