// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/module_diff.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ir/core/source_buffer.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/diff/diff_text.h"
#include "passes/diff/module_patch.h"

namespace hlokit {
namespace {

class ModuleDiffTest : public testing::Test {
 protected:
  // Parses both into one context.
  void Parse(const std::string& a, const std::string& b) {
    a_ = ParseOne(a, nullptr);
    ASSERT_NE(a_, nullptr);
    b_ = ParseOne(b, a_->shared_context());
    ASSERT_NE(b_, nullptr);
  }
  static std::unique_ptr<Module> ParseOne(const std::string& text, std::shared_ptr<Context> context) {
    DiagnosticSink sink;
    return ParseModule(std::make_shared<const SourceBuffer>("test", text), {}, &sink, std::move(context));
  }
  static DiffOptions Ignoring(std::initializer_list<Aspect> aspects) {
    DiffOptions options;
    for (Aspect a : aspects) options.ignored.Add(a);
    return options;
  }

  std::unique_ptr<Module> a_, b_;
};

TEST_F(ModuleDiffTest, NamesAndOrderAloneAreNoDifferenceIfIgnored) {
  Parse("ENTRY e { x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n ROOT s = f32[2] subtract(x, y) }",
        "ENTRY e { b = f32[2] parameter(1)\n a = f32[2] parameter(0)\n ROOT d = f32[2] subtract(a, b) }");
  const ModuleDiff diff = CompareModules(*a_, *b_, Ignoring({Aspect::kName}));
  EXPECT_TRUE(diff.same());
  EXPECT_EQ(diff.unchanged, 3);
  EXPECT_EQ(diff.count_by_aspect[static_cast<size_t>(Aspect::kName)], 3);
  EXPECT_FALSE(CompareModules(*a_, *b_).same());
}

TEST_F(ModuleDiffTest, LayoutsShardingsAndMetadataAreAspectsOfTheirOwn) {
  Parse("ENTRY e { ROOT x = f32[2,2]{1,0} parameter(0), sharding={replicated}, metadata={op_name=\"a\"} }",
        "ENTRY e { ROOT x = f32[2,2]{0,1} parameter(0), sharding={maximal device=0}, metadata={op_name=\"b\"} }");
  const ModuleDiff diff = CompareModules(*a_, *b_);
  ASSERT_EQ(diff.changed.size(), 1u);
  const Aspects aspects = diff.changed[0].aspects;
  EXPECT_TRUE(aspects.Contains(Aspect::kLayout));
  EXPECT_TRUE(aspects.Contains(Aspect::kSharding));
  EXPECT_TRUE(aspects.Contains(Aspect::kMetadata));
  EXPECT_FALSE(aspects.Contains(Aspect::kShape));
  EXPECT_TRUE(
      CompareModules(*a_, *b_, Ignoring({Aspect::kLayout, Aspect::kSharding, Aspect::kMetadata})).changed.empty());
}

TEST_F(ModuleDiffTest, InstructionsThatMovedIntoAFusionAreFound) {
  Parse("ENTRY e { x = f32[8] parameter(0)\n n = f32[8] negate(x)\n ROOT t = f32[8] tanh(n) }",
        "f { p = f32[8] parameter(0)\n n = f32[8] negate(p)\n ROOT t = f32[8] tanh(n) }\n"
        "ENTRY e { x = f32[8] parameter(0)\n ROOT y = f32[8] fusion(x), kind=kLoop, calls=f }");
  const ModuleDiff diff = CompareModules(*a_, *b_, Ignoring({Aspect::kName}));
  EXPECT_EQ(diff.removed.size(), 0u);
  EXPECT_EQ(diff.added.size(), 2u);  // the fusion and its parameter
  EXPECT_EQ(diff.count_by_aspect[static_cast<size_t>(Aspect::kMoved)], 2);
  ASSERT_EQ(diff.added_computations.size(), 1u);
  EXPECT_EQ(diff.added_computations[0].name(), "f");
}

TEST_F(ModuleDiffTest, APatchIsOfItsModuleOnly) {
  Parse("ENTRY e { x = f32[8] parameter(0)\n ROOT n = f32[8] negate(x) }",
        "ENTRY g { y = f32[8] parameter(0)\n m = f32[8] tanh(y)\n ROOT n = f32[8] negate(m) }");
  const ModulePatch patch = MakePatch(*a_, *b_, MatchModules(*a_, *b_));
  const absl::StatusOr<std::string> text = ApplyPatch(*a_, patch);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, ToString(*b_, PrintOptions::Lossless()));
  EXPECT_FALSE(ApplyPatch(*b_, patch).ok());
}

TEST_F(ModuleDiffTest, TotalsBelowOneAndBeyondIntegersArePrinted) {
  Parse("ENTRY e { ROOT x = f32[8] parameter(0) }", "ENTRY e { ROOT x = f32[9] parameter(0) }");
  DiffSummary summary;
  summary.totals = {{"microseconds", 0.25, 0.5, false}, {"bytes", 1, 1e30, true}, {"flops", 12, 15, false}};
  std::string text;
  {
    TextWriter out(&text);
    PrintDiff(out, *a_, *b_, CompareModules(*a_, *b_), summary, {});
  }
  EXPECT_NE(text.find("0.25 -> 0.5 (+100.0 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("-> 1e+30"), std::string::npos) << text;
  EXPECT_NE(text.find("12 -> 15 (+25.0 %)"), std::string::npos) << text;
}

TEST_F(ModuleDiffTest, NamesInPatchesAreChecked) {
  Parse("ENTRY e { x = f32[8] parameter(0)\n ROOT n = f32[8] negate(x) }",
        "ENTRY g { y = f32[8] parameter(0)\n ROOT n = f32[8] tanh(y) }");
  const auto read = [](const std::string& from, const std::string& to) {
    return ReadPatch(R"({"patch": {"base": "", "rename_instructions": {)" + from + ": " + to +
                     R"(}, "rename_computations": {}, "text": []}})");
  };
  EXPECT_TRUE(read(R"("a.1")", R"("_b-2")").ok());
  EXPECT_EQ(read(R"("a")", R"("b c")").status().message(), "patch: rename_instructions: `b c` is not a name");
  EXPECT_EQ(read(R"("a")", R"("1b")").status().message(), "patch: rename_instructions: `1b` is not a name");
  EXPECT_EQ(read(R"("")", R"("b")").status().message(), "patch: rename_instructions: `` is not a name");
  EXPECT_EQ(read(R"("a")", R"("b\nc")").status().message(), "patch: rename_instructions: `b\\nc` is not a name");
  ModulePatch patch = MakePatch(*a_, *b_, MatchModules(*a_, *b_));
  patch.instructions.emplace_back("nothing", "b");
  EXPECT_EQ(ApplyPatch(*a_, patch).status().message(), "patch: the module has no instruction `nothing` to rename");
}

TEST_F(ModuleDiffTest, BrokenPatchesAreErrors) {
  Parse("ENTRY e { ROOT x = f32[8] parameter(0) }", "ENTRY e { ROOT x = f32[8] parameter(0) }");
  for (const char* text :
       {"", "[]", "{}", R"({"patch": 1})", R"({"patch": {"base": "0"}})",
        R"({"patch": {"base": "0", "rename_instructions": {}, "rename_computations": {}}})",
        R"({"patch": {"base": "0", "rename_instructions": {}, "rename_computations": {}, "text": [[1]]}})",
        R"({"patch": {"base": "0", "rename_instructions": {"a": 1}, "rename_computations": {}, "text": []}})"}) {
    EXPECT_FALSE(ReadPatch(text).ok()) << text;
  }
  ModulePatch patch = MakePatch(*a_, *b_, MatchModules(*a_, *b_));
  patch.text.assign(1, ModulePatch::Lines{size_t{1} << 40, 2});
  EXPECT_FALSE(ApplyPatch(*a_, patch).ok());
  patch.text.assign(100000, ModulePatch::Lines{0, 3});
  EXPECT_FALSE(ApplyPatch(*a_, patch).ok());
}

}  // namespace
}  // namespace hlokit
