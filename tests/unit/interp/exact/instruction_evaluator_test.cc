// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/instruction_evaluator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "parser/formats/parser.h"

namespace hlokit::interp {
namespace {

constexpr char kText[] = R"(HloModule m
plus {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
sum_of_squares {
  v = s32[3] parameter(0)
  zero = s32[] constant(0)
  w = s32[3] multiply(v, v)
  ROOT s = s32[] reduce(w, zero), dimensions={0}, to_apply=plus
}
always {
  n = s32[] parameter(0)
  ROOT yes = pred[] constant(true)
}
same {
  n = s32[] parameter(0)
  ROOT copied = s32[] copy(n)
}
ENTRY e {
  x = s32[3] parameter(0)
  v = s32[3] constant({1, 2, 3})
  known = s32[] call(v), to_apply=sum_of_squares
  unknown = s32[] call(x), to_apply=sum_of_squares
  endless = s32[] while(known), condition=always, body=same
  pair = (s32[], s32[]) tuple(known, known)
  ROOT r = (s32[], s32[], (s32[], s32[])) tuple(unknown, endless, pair)
})";

class InstructionEvaluatorTest : public testing::Test {
 protected:
  InstructionEvaluatorTest() {
    DiagnosticSink sink;
    module_ = ParseModule(std::make_shared<const SourceBuffer>("test.hlo", kText), {}, &sink);
  }
  Instruction Named(std::string_view name) const {
    for (Instruction i : module_->entry().instructions()) {
      if (i.name() == name) return i;
    }
    return {};
  }

  std::unique_ptr<Module> module_;
};

TEST_F(InstructionEvaluatorTest, CallsOnConstants) {
  const absl::StatusOr<Literal> value = EvaluateInstruction(Named("known"), {});
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(value->values<int32_t>()[0], 14);
}

TEST_F(InstructionEvaluatorTest, WhatIsNotKnownIsAnError) {
  EXPECT_FALSE(EvaluateInstruction(Named("unknown"), {}).ok());
  EXPECT_FALSE(EvaluateInstruction(Named("pair"), {}).ok());
}

TEST_F(InstructionEvaluatorTest, LimitsOfTheEnvironmentEndLoops) {
  const absl::StatusOr<Literal> value = EvaluatingContext().evaluate(Named("endless"));
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.status().message().find("limit"), absl::string_view::npos);
}

}  // namespace
}  // namespace hlokit::interp
