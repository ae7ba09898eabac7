// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/type_conversion.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text/printer.h"
#include "ir/types/float_types.h"
#include "ir/types/literal.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

std::string Retyped(const std::string& text, ElementType from, ElementType to) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  ConvertFloatTypes(module->get(), {from}, to);
  DiagnosticSink sink;
  VerifyModule(**module, VerifierOptions(), &sink);
  for (const Diagnostic& d : sink.diagnostics()) ADD_FAILURE() << d.message;
  return ToString(**module);
}

TEST(Retype, ReachesShapesConstantsAttributesAndTheEntry) {
  const std::string text = R"(
HloModule m, entry_computation_layout={(f32[2]{0}, (f32[2]{0}, s32[]))->f32[2]{0}}

ENTRY main {
  x = f32[2]{0} parameter(0)
  pair = (f32[2]{0}, s32[]) parameter(1)
  y = f32[2]{0} get-tuple-element(pair), index=0
  c = f32[2]{0} constant({0.3, -1})
  k = f64[2]{0} constant({0.3, -1})
  sum = f32[2]{0} add(x, y)
  ROOT r = f32[2]{0} custom-call(sum, c), custom_call_target="f", operand_layout_constraints={f32[2]{0}, f32[2]{0}}
}
)";
  const std::string half = Retyped(text, ElementType::kF32, ElementType::kBF16);
  EXPECT_EQ(half.find("f32["), std::string::npos) << half;
  EXPECT_NE(half.find("entry_computation_layout={(bf16[2]{0}, (bf16[2]{0}, s32[]))->bf16[2]{0}}"), std::string::npos);
  EXPECT_NE(half.find("constant({0.3008, -1})"), std::string::npos) << half;
  EXPECT_NE(half.find("operand_layout_constraints={bf16[2]{0}, bf16[2]{0}}"), std::string::npos) << half;
  // Other types stay.
  EXPECT_NE(half.find("f64[2]{0} constant({0.3, -1})"), std::string::npos) << half;
}

TEST(Retype, ConstantsMayBeTuples) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(
HloModule m

ENTRY main {
  ROOT c = (f32[], (s32[], f32[2])) constant((0.3, (7, {1, 0.3})))
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  ConvertFloatTypes(module->get(), {ElementType::kF32}, ElementType::kBF16);
  const Instruction c = (*module)->entry().root();
  EXPECT_EQ(ToString(c.shape()), "(bf16[], (s32[], bf16[2]{0}))");
  const Literal value = (*module)->context().literals.ToLiteral(c.literal_id());
  EXPECT_EQ(value.elements()[0].values<BF16>()[0], BF16(0.3f));
  EXPECT_EQ(value.elements()[1].elements()[0].values<int32_t>()[0], 7);
  EXPECT_EQ(value.elements()[1].elements()[1].values<BF16>()[1], BF16(0.3f));
}

TEST(Retype, WhatIsWideEnoughComesBack) {
  const std::string text = R"(
HloModule m, entry_computation_layout={(f32[3]{0})->f32[3]{0}}

ENTRY main {
  x = f32[3]{0} parameter(0)
  c = f32[3]{0} constant({0.1, nan, -inf})
  ROOT r = f32[3]{0} multiply(x, c)
}
)";
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  ASSERT_TRUE(module.ok());
  const std::string before = ToString(**module);
  ConvertFloatTypes(module->get(), {ElementType::kF32}, ElementType::kF64);
  EXPECT_NE(ToString(**module), before);
  ConvertFloatTypes(module->get(), {ElementType::kF64}, ElementType::kF32);
  EXPECT_EQ(ToString(**module), before);
}

TEST(Resize, ReachesSlicesAndConstants) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(
HloModule m, entry_computation_layout={(f32[4,130]{1,0}, f32[130,8]{1,0})->f32[4,8]{1,0}}

ENTRY main {
  x = f32[4,130]{1,0} parameter(0)
  w = f32[130,8]{1,0} parameter(1)
  c = f32[130]{0} constant({...})
  b = f32[4,130]{1,0} broadcast(c), dimensions={1}
  s = f32[4,130]{1,0} slice(x), slice={[0:4], [0:130]}
  y = f32[4,130]{1,0} add(s, b)
  ROOT r = f32[4,8]{1,0} dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  ReplaceDimensionSizes(module->get(), 130, 128);
  DiagnosticSink sink;
  VerifyModule(**module, VerifierOptions(), &sink);
  for (const Diagnostic& d : sink.diagnostics()) ADD_FAILURE() << d.message;
  const std::string text = ToString(**module);
  EXPECT_EQ(text.find("130"), std::string::npos) << text;
  EXPECT_NE(text.find("slice={[0:4], [0:128]}"), std::string::npos) << text;
  EXPECT_NE(text.find("(f32[4,128]{1,0}, f32[128,8]{1,0})->f32[4,8]{1,0}"), std::string::npos) << text;
}

TEST(Resize, WhatDependsOnTheSizeDoesNotVerify) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(
HloModule m

ENTRY main {
  x = f32[4,130] parameter(0)
  ROOT r = f32[520] reshape(x)
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  ReplaceDimensionSizes(module->get(), 130, 128);
  DiagnosticSink sink;
  VerifyModule(**module, VerifierOptions(), &sink);
  EXPECT_TRUE(sink.has_errors());
}

}  // namespace
}  // namespace hlokit
