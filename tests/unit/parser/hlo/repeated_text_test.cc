// SPDX-License-Identifier: Apache-2.0
// Cached texts are not parsed again, but their values depend on the context.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "parser/formats/parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/text/text_cache.h"

namespace hlokit {
namespace {

std::unique_ptr<Module> Parsed(std::string_view body) {
  absl::StatusOr<std::unique_ptr<Module>> module =
      ParseModuleText("HloModule m\n\nENTRY main {\n" + std::string(body) + "}\n");
  EXPECT_TRUE(module.ok()) << std::string(module.status().message());
  return module.ok() ? *std::move(module) : nullptr;
}

TEST(TextCacheTest, HoldsWhatWasSetUnderTextAndKind) {
  TextCache<int, 4> cache;
  const std::string text = "f32[2,3]{1,0}", again = text;
  EXPECT_EQ(cache.Find(text, 7), nullptr);
  cache.Set(text, 7, 42);
  ASSERT_NE(cache.Find(again, 7), nullptr);
  EXPECT_EQ(*cache.Find(again, 7), 42);
  EXPECT_EQ(cache.Find(again, 8), nullptr);
  EXPECT_EQ(cache.Find("f32[2,4]{1,0}", 7), nullptr);
  EXPECT_EQ(cache.Find("f32[2,3]", 7), nullptr);
  EXPECT_EQ(cache.Find("", 0), nullptr);
}

TEST(TextCacheTest, LongTextsAreComparedAsAWhole) {
  TextCache<int, 4> cache;
  const std::string text = "a" + std::string(200, 'x'), other = "b" + std::string(200, 'x');
  cache.Set(text, 0, 1);
  EXPECT_EQ(cache.Find(other, 0), nullptr);
  cache.Set(other, 0, 2);  // same index as the first: both end alike
  EXPECT_EQ(*cache.Find(text, 0), 1);
  EXPECT_EQ(*cache.Find(other, 0), 2);
}

TEST(TextCacheTest, ATextThatIsFoundIsRight) {
  TextCache<int, 8> cache;
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("{" + std::to_string(i % 37) + "}");
  int found = 0;
  for (const std::string& text : texts) {
    const int expected = std::stoi(text.substr(1));
    if (const int* known = cache.Find(text, 0)) {
      EXPECT_EQ(*known, expected);
      ++found;
    } else {
      cache.Set(text, 0, expected);
    }
  }
  EXPECT_LT(found, 63);  // fewer slots than texts
}

TEST(RepeatedTextTest, OnlyTheTextOfTheParserIsRemembered) {
  Context context;
  DiagnosticSink sink;
  const std::string text = "f32[2]{0}";
  TextCursor in(text, &sink);
  ShapeParser shapes(&in, &context, /*max_nesting=*/4);
  Shape shape;
  ASSERT_TRUE(shapes.Parse(&shape));
  // A buffer whose text changes, as for strings with resolved escapes.
  std::string other;
  for (const char* now : {"f32[3]{0}", "f32[4]{0}", "f32[2]{0}"}) {
    other = now;
    in = TextCursor(other, &sink);
    ASSERT_TRUE(shapes.Parse(&shape));
    EXPECT_EQ(ToString(shape), now);
  }
}

TEST(RepeatedTextTest, ALayoutMayComeAfterABlank) {
  const std::unique_ptr<Module> module = Parsed(
      "  a = f32[2,3] parameter(0)\n"
      "  b = f32[2,3] {0,1} parameter(1)\n"
      "  c = f32[2,3] /* and here */ {0,1} parameter(2)\n"
      "  d = f32[2,3] parameter(3)\n"
      "  ROOT t = (f32[2,3], f32[2,3] {0,1}, f32[2,3], f32[2,3]) tuple(a, b, c, d)\n");
  ASSERT_NE(module, nullptr);
  const Shape row = module->entry().parameter(0).shape();
  const Shape column = module->entry().parameter(1).shape();
  EXPECT_NE(row, column);
  EXPECT_EQ(module->entry().parameter(2).shape(), column);
  EXPECT_EQ(module->entry().parameter(3).shape(), row);
  EXPECT_EQ(module->entry().root().shape().element(0), row);
  EXPECT_EQ(module->entry().root().shape().element(1), column);
}

TEST(RepeatedTextTest, TheSameTextIsAnotherValueForAnotherAttribute) {
  const std::unique_ptr<Module> module = Parsed(
      "  a = f32[2,2] parameter(0), frontend_attributes={x={0,1}}\n"
      "  b = f32[2,2] transpose(a), dimensions={0,1}\n"
      "  c = f32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
      "  d = f32[2,2] transpose(c), dimensions={1,0}\n"
      "  ROOT e = f32[2,2] transpose(d), dimensions={0,1}\n");
  ASSERT_NE(module, nullptr);
  const Instruction e = module->entry().root(), d = e.operand(0), b = d.operand(0).operand(1);
  EXPECT_EQ(e.list_attr(Attr::kDimensions), absl::Span<const int64_t>({0, 1}));
  EXPECT_EQ(d.list_attr(Attr::kDimensions), absl::Span<const int64_t>({1, 0}));
  EXPECT_EQ(b.payload(Attr::kDimensions), e.payload(Attr::kDimensions));
}

TEST(RepeatedTextTest, AnInstructionListMeansInstructionsOfItsComputation) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(
      "HloModule m\n\nf {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x), control-predecessors={x}\n}\n\n"
      "ENTRY main {\n  p = f32[] parameter(0)\n  x = f32[] abs(p)\n  z = f32[] call(x), to_apply=f\n"
      "  ROOT w = f32[] negate(z), control-predecessors={x}\n}\n");
  ASSERT_TRUE(module.ok()) << std::string(module.status().message());
  const Instruction w = (*module)->entry().root();
  ASSERT_EQ(w.control_predecessors().size(), 1u);
  EXPECT_EQ(w.control_predecessors()[0].opcode(), Opcode::kAbs);
}

TEST(RepeatedTextTest, AWrongValueIsReportedEachTime) {
  const SourceBuffer source("t",
                            "HloModule m\nENTRY main {\n  a = f32[2] parameter(0), sharding={nothing}\n"
                            "  b = f32[2] parameter(1), sharding={nothing}\n  ROOT c = f32[2] add(a, b)\n}\n");
  DiagnosticSink sink;
  EXPECT_EQ(ParseModule(std::make_shared<const SourceBuffer>(source), {}, &sink), nullptr);
  EXPECT_EQ(sink.error_count(), 2u);
}

}  // namespace
}  // namespace hlokit
