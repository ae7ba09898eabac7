// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/pattern_rewriter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/annotations/annotations.h"
#include "passes/core/registry.h"
#include "passes/instrumentation/printing.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/instruction_key.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

bool NegateToAbs(PatternRewriter& rewriter, Instruction i) {
  return rewriter.ReplaceWithNew(i, Opcode::kAbs, {i.operand(0).id()});
}
bool AbsToNegate(PatternRewriter& rewriter, Instruction i) {
  return rewriter.ReplaceWithNew(i, Opcode::kNegate, {i.operand(0).id()});
}
// Creates an instruction and then declines.
bool Hesitate(PatternRewriter& rewriter, Instruction i) {
  rewriter.MakeLike(Opcode::kAbs, {i.operand(0).id()});
  rewriter.module().CloneComputation(i.parent().id());
  return false;
}
bool SkipAbs(PatternRewriter& rewriter, Instruction i) {
  const Instruction inner = i.operand(0);
  return inner.opcode() == Opcode::kAbs && rewriter.Replace(i, inner.id(), {inner});
}

TEST(PatternRewriterTest, RulesThatUndoEachOtherEnd) {
  const auto module = Parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }");
  RewritePatternSet rules;
  rules.Add({Opcode::kNegate}, "there", NegateToAbs);
  rules.Add({Opcode::kAbs}, "back", AbsToNegate);
  const PassOptions options;
  EXPECT_TRUE(PatternRewriter(module.get(), &rules, &options).Run());
}

TEST(PatternRewriterTest, WhatARuleMakesInVainGoes) {
  const auto module = Parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }");
  RewritePatternSet rules;
  rules.Add({Opcode::kNegate}, "hesitations", Hesitate);
  const PassOptions options;
  PatternRewriter rewriter(module.get(), &rules, &options);
  EXPECT_FALSE(rewriter.Run());
  EXPECT_EQ(module->instruction_count(), 2u);
  EXPECT_EQ(module->computations().size(), 1u);
  EXPECT_EQ(rewriter.applied()[0], 0);
}

TEST(PatternRewriterTest, ControlEdgesAndOtherShapesKeepAnInstruction) {
  const auto module = Parse(R"(ENTRY e {
    p = f32[2] parameter(0)
    a = f32[2] abs(p)
    n = f32[2] negate(a), control-predecessors={a}
    ROOT c = bf16[2] negate(a)
  })");
  RewritePatternSet rules;
  rules.Add({Opcode::kNegate}, "negations skipped", SkipAbs);
  const PassOptions options;
  EXPECT_FALSE(PatternRewriter(module.get(), &rules, &options).Run());
}

TEST(PatternRewriterTest, AbsorbedInstructionsAreStoodFor) {
  const auto module = Parse(R"(ENTRY e {
    p = f32[2] parameter(0)
    a = f32[2] abs(p), metadata={op_name="a"}
    ROOT n = f32[2] negate(a), metadata={op_name="n"}
  })");
  RewritePatternSet rules;
  rules.Add({Opcode::kNegate}, "negations skipped", SkipAbs);
  const PassOptions options;
  EXPECT_TRUE(PatternRewriter(module.get(), &rules, &options).Run());
  EXPECT_EQ(MetadataSources(module->entry().root()).size(), 2u);
}

TEST(SplatTest, LooksThroughWhatMovesElements) {
  const auto module = Parse(R"(ENTRY e {
    c = s8[] constant(-1)
    b = s8[2,3] broadcast(c), dimensions={}
    t = s8[3,2] transpose(b), dimensions={1,0}
    u = f32[4] constant({1, 1, 1, 2})
    v = f32[2] constant({...})
    z = f32[] constant(-0)
    i = u64[] constant(18446744073709551615)
    ROOT r = (s8[3,2], f32[4], f32[2], f32[], u64[]) tuple(t, u, v, z, i)
  })");
  const Instruction root = module->entry().root();
  const auto t = SplatOf(root.operand(0));
  ASSERT_TRUE(t);
  EXPECT_TRUE(t->IsMinusOne() && t->IsAllOnes() && !t->IsZero() && !t->IsLowest());
  EXPECT_EQ(t->AsInt(), -1);
  EXPECT_FALSE(SplatOf(root.operand(1)));
  EXPECT_FALSE(SplatOf(root.operand(2)));
  EXPECT_TRUE(SplatOf(root.operand(3))->IsZero() && SplatOf(root.operand(3))->IsNegativeZero());
  EXPECT_TRUE(SplatOf(root.operand(4))->IsHighest());
  EXPECT_FALSE(SplatOf(root.operand(4))->AsInt());
}

TEST(KeySetTest, TellsKeysApartByAllTheirWords) {
  KeySet keys;
  const auto find = [&](std::initializer_list<uint32_t> words, uint32_t value) {
    for (uint32_t word : words) keys.Add(word);
    return keys.Find(value);
  };
  EXPECT_EQ(find({1, 2, 3}, 10), 10u);
  EXPECT_EQ(find({1, 2}, 11), 11u);
  EXPECT_EQ(find({1, 2, 3}, 12), 10u);
  EXPECT_EQ(find({}, 13), 13u);
  EXPECT_EQ(find({1, 2}, 14), 11u);
  keys.Clear();
  EXPECT_EQ(find({1, 2}, 15), 15u);
}

TEST(LineDiffTest, ShowsWhatChanged) {
  EXPECT_EQ(LineDiff("a\nb\nc\n", "a\nb\nc\n"), "");
  EXPECT_EQ(LineDiff("a\nb\nc\n", "a\nx\nc\n"), "@@ -1 +1 @@\n a\n-b\n+x\n c\n");
  EXPECT_EQ(LineDiff("", "a\n"), "@@ -1 +1 @@\n+a\n");
  EXPECT_EQ(LineDiff("a\n", ""), "@@ -1 +1 @@\n-a\n");
  EXPECT_EQ(LineDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n6\n7\n8\n9\n"),
            "@@ -2 +2 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n");
}

// Each pass of these categories has a golden test.
TEST(GoldenTest, EveryPassHasOne) {
  std::string texts;
  for (const auto& entry : std::filesystem::directory_iterator(HLOKIT_SOURCE_DIR "/tests/golden/passes")) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    texts += text.str();
  }
  for (const PassInfo* info : PassRegistry::Get().passes()) {
    if (info->category != "simplify" && info->category != "expand" && info->category != "annotations") continue;
    EXPECT_NE(texts.find("--passes=" + std::string(info->name)), std::string::npos) << info->name;
  }
}

}  // namespace
}  // namespace hlokit
