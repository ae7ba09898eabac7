// SPDX-License-Identifier: Apache-2.0
#include "passes/view/graph_groups.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

class GraphGroupsTest : public testing::Test {
 protected:
  void Group(const std::string& text) {
    DiagnosticSink sink;
    module_ = ParseModule(std::make_shared<const SourceBuffer>("test", text), {}, &sink);
    ASSERT_NE(module_, nullptr);
    groups_ = GroupInstructions(*module_);
  }

  std::string NameOf(int32_t node) const {
    if (node < 0) return "";
    const size_t n = groups_.instructions.size();
    if (static_cast<size_t>(node) >= n) return groups_.groups[node - n].label;
    return std::string(module_->instruction(groups_.instructions[node]).name());
  }
  // Returns the names of the nodes around an instruction, the innermost first, without the module.
  std::vector<std::string> Around(const std::string& name) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < groups_.instructions.size(); ++i) {
      if (NameOf(static_cast<int32_t>(i)) != name) continue;
      for (int32_t node = groups_.parent[i]; node != groups_.NodeOfGroup(0); node = groups_.parent[node]) {
        names.push_back(NameOf(node));
      }
    }
    return names;
  }
  size_t MaxChildren() const {
    std::vector<size_t> children(groups_.parent.size(), 0);
    for (const int32_t parent : groups_.parent) {
      if (parent >= 0) ++children[parent];
    }
    return *std::max_element(children.begin(), children.end());
  }

  std::unique_ptr<Module> module_;
  GraphGroups groups_;
};

using Names = std::vector<std::string>;

TEST_F(GraphGroupsTest, ScopesNestAndSharedOnesAreLeftOut) {
  Group(R"(ENTRY e {
    p = f32[] parameter(0)
    a = f32[] add(p, p), metadata={op_name="jit(f)/main/layer/attention/add"}
    b = f32[] multiply(a, a), metadata={op_name="jit(f)/main/layer/attention/mul"}
    c = f32[] add(b, b), metadata={op_name="jit(f)/main/layer/mlp/add"}
    d = f32[] add(c, c), metadata={op_name="jit(f)/main/layer/mlp/add"}
    ROOT r = f32[] add(d, d), metadata={op_name="jit(f)/main/add"} })");
  EXPECT_EQ(Around("a"), (Names{"attention", "layer"}));
  EXPECT_EQ(Around("d"), (Names{"mlp", "layer"}));
  EXPECT_EQ(Around("r"), Names{});
  EXPECT_EQ(Around("p"), Names{});
}

TEST_F(GraphGroupsTest, ScopesWithOneChildGiveItTheirPlace) {
  Group(R"(ENTRY e {
    p = f32[] parameter(0)
    a = f32[] add(p, p), metadata={op_name="outer/inner/add"}
    b = f32[] add(a, a), metadata={op_name="outer/inner/add"}
    c = f32[] add(b, b), metadata={op_name="alone/add"}
    ROOT r = f32[] add(c, c), metadata={op_name="add"} })");
  EXPECT_EQ(Around("a"), Names{"outer/inner"});
  EXPECT_EQ(Around("c"), Names{});
}

TEST_F(GraphGroupsTest, InstructionsWithoutOpNameAreWithTheirUsers) {
  Group(R"(ENTRY e {
    p = f32[] parameter(0)
    one = f32[] constant(1)
    two = f32[] constant(2)
    a = f32[] add(p, one), metadata={op_name="s/x/add"}
    b = f32[] add(a, two), metadata={op_name="s/x/add"}
    c = f32[] add(b, two), metadata={op_name="s/y/add"}
    d = f32[] add(c, c), metadata={op_name="s/y/add"}
    ROOT r = f32[] add(d, d), metadata={op_name="add"} })");
  EXPECT_EQ(Around("one"), (Names{"x", "s"}));
  EXPECT_EQ(Around("two"), Names{"s"});
}

TEST_F(GraphGroupsTest, ComputationsAreInTheirOnlyCaller) {
  Group(R"(
    add { x = f32[] parameter(0)
          y = f32[] parameter(1)
          ROOT s = f32[] add(x, y) }
    double { v = f32[2] parameter(0)
             ROOT w = f32[2] add(v, v) }
    body { bs = (f32[2]) parameter(0)
           be = f32[2] get-tuple-element(bs), index=0
           ROOT bt = (f32[2]) tuple(be) }
    condition { cs = (f32[2]) parameter(0)
                ROOT never = pred[] constant(false) }
    left { ROOT unused = f32[] parameter(0) }
    ENTRY e {
      p = f32[2] parameter(0)
      zero = f32[] constant(0)
      f = f32[2] fusion(p), kind=kLoop, calls=double
      t = (f32[2]) tuple(f)
      loop = (f32[2]) while(t), condition=condition, body=body
      r1 = f32[] reduce(p, zero), dimensions={0}, to_apply=add
      ROOT r2 = f32[] reduce(f, zero), dimensions={0}, to_apply=add })");
  EXPECT_EQ(Around("w"), Names{"f"});
  EXPECT_EQ(Around("bt"), (Names{"body: body", "loop"}));
  EXPECT_EQ(Around("never"), (Names{"condition: condition", "loop"}));
  EXPECT_EQ(Around("s"), (Names{"add", "shared computations"}));
  EXPECT_EQ(Around("unused"), (Names{"left", "computations without a caller"}));
}

TEST_F(GraphGroupsTest, ManyChildrenAreInSectionsOfASize) {
  std::string text = "ENTRY e {\n  x0 = f32[] parameter(0)\n";
  for (int k = 1; k < 5000; ++k)
    text += StrCat("  ", k == 4999 ? "ROOT " : "", "x", k, " = f32[] negate(x", k - 1, ")\n");
  Group(text + "}");
  EXPECT_LE(MaxChildren(), GraphGroups::kMaxChildren);
  EXPECT_EQ(Around("x1").size(), 2u);
  // Every group but the module has a parent that comes before it.
  for (size_t g = 1; g < groups_.groups.size(); ++g) {
    EXPECT_LT(groups_.parent[groups_.NodeOfGroup(g)], groups_.NodeOfGroup(g));
  }
}

TEST_F(GraphGroupsTest, SectionsEndWhereFewValuesAreLive) {
  // Blocks of 20 instructions, of which 19 are live in the block only.
  std::string text = "ENTRY e {\n  y0 = f32[] parameter(0)\n";
  for (int b = 0; b < 4; ++b) {
    for (int k = 0; k < 19; ++k) text += StrCat("  b", b, "k", k, " = f32[] negate(y", b, ")\n");
    std::string operands;
    for (int k = 0; k < 19; ++k) operands += StrCat(k ? ", " : "", "b", b, "k", k);
    text += StrCat("  t", b, " = (f32[]", "", ") custom-call(", operands, "), custom_call_target=\"join\"\n");
    text += StrCat("  ", b == 3 ? "ROOT " : "", "y", b + 1, " = f32[] get-tuple-element(t", b, "), index=0\n");
  }
  Group(text + "}");
  ASSERT_LE(MaxChildren(), GraphGroups::kMaxChildren);
  for (int b = 0; b < 4; ++b) EXPECT_EQ(Around(StrCat("b", b, "k0")), Around(StrCat("b", b, "k18"))) << b;
}

// Returns a chain of scopes of a size, each with an instruction of another opcode at its begin, then instructions
// without.
std::string ScopesThenOthers(int scopes, int size, int others) {
  std::string text = "ENTRY e {\n  x0 = f32[] parameter(0)\n";
  int last = 0;
  const auto add = [&](std::string_view opcode, std::string_view op_name) {
    StrAppend(&text, "  x", last + 1, " = f32[] ", opcode, "(x", last, "), metadata={op_name=\"jit(f)/", op_name,
              "\"}\n");
    ++last;
  };
  for (int scope = 0; scope < scopes; ++scope) {
    for (int k = 0; k < size; ++k) add(k == 0 ? "cosine" : "sine", StrCat("s", scope, "/sin"));
  }
  for (int k = 0; k < others; ++k) add(k % 3 ? "negate" : "abs", "neg");
  return StrCat(text, "  ROOT r = f32[] negate(x", last, ") }");
}

TEST_F(GraphGroupsTest, LargeScopesStayOutsideOfSections) {
  // Two scopes of a step's model, and many instructions of its optimizer without one.
  Group(ScopesThenOthers(2, 100, 2000));
  EXPECT_EQ(Around("x1").back(), "s0");
  EXPECT_EQ(Around("x150").back(), "s1");
  EXPECT_LE(MaxChildren(), GraphGroups::kMaxChildren);
  // The most frequent operations, then the first and the last instruction.
  const std::string section = Around("x1500").back();
  EXPECT_EQ(section.rfind("negate, abs: x", 0), 0u) << section;
  EXPECT_NE(section.find(" ... x"), std::string::npos) << section;
}

TEST_F(GraphGroupsTest, SmallScopesAreInSections) {
  Group(ScopesThenOthers(2, 10, 2000));
  const Names around = Around("x1");
  EXPECT_EQ(around.front(), "s0");
  EXPECT_EQ(around.back().rfind("negate, abs, parameter: x0 ... x", 0), 0u) << around.back();
}

TEST_F(GraphGroupsTest, NoLevelHasMoreThanAScreenful) {
  // Around each bound: scopes that are just large enough to be outside of sections, and few or many beside them.
  for (const int scopes : {0, 12, 38, 39, 40, 49, 90}) {
    for (const int size : {1, 2, 33, 40}) {
      for (const int others : {0, 5, 9, 12, 40, 60, 700}) {
        Group(ScopesThenOthers(scopes, size, others));
        EXPECT_LE(MaxChildren(), GraphGroups::kMaxChildren) << scopes << " of " << size << ", " << others;
      }
    }
  }
}

TEST_F(GraphGroupsTest, TupleElementsDoNotNameASection) {
  std::string text = "ENTRY e {\n  p = (f32[], f32[]) parameter(0)\n";
  for (int k = 0; k < 90; ++k) StrAppend(&text, "  e", k, " = f32[] get-tuple-element(p), index=", k % 2, "\n");
  for (int k = 0; k < 30; ++k) StrAppend(&text, "  n", k, " = f32[] negate(e", k, ")\n");
  Group(text + "  ROOT r = f32[] abs(n0) }");
  EXPECT_EQ(Around("e45").back().rfind("e", 0), 0u) << Around("e45").back();  // a section of nothing else
  EXPECT_EQ(Around("n1").back().find("get-tuple-element"), std::string::npos) << Around("n1").back();
  EXPECT_EQ(Around("r").back().rfind("negate, abs: ", 0), 0u) << Around("r").back();
}

TEST(SplitScopesTest, SlashesInParenthesesDoNotDivide) {
  EXPECT_EQ(SplitScopes("jit(f)/transpose(jvp(a/b))/dot", 24),
            (std::vector<std::string_view>{"jit(f)", "transpose(jvp(a/b))", "dot"}));
  EXPECT_EQ(SplitScopes("a//b/", 24), (std::vector<std::string_view>{"a", "b", ""}));
  EXPECT_EQ(SplitScopes("a/b/c/d", 2), (std::vector<std::string_view>{"a", "b/c/d"}));
  EXPECT_EQ(SplitScopes("", 24), (std::vector<std::string_view>{""}));
}

}  // namespace
}  // namespace hlokit
