// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/reducer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

std::unique_ptr<Module> ModuleOf(const std::string& root) {
  absl::StatusOr<std::unique_ptr<Module>> module =
      ParseModuleText(StrCat("ENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  n = f32[] negate(b)\n",
                             "  ROOT r = f32[] ", root, "\n}\n"));
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

TEST(CombinationOfTest, IsAnOperationOnBothParameters) {
  for (const char* root : {"add(a, b)", "subtract(b, a)"}) {
    const std::unique_ptr<Module> module = ModuleOf(root);
    EXPECT_EQ(CombinationOf(module->entry()), module->entry().root()) << root;
  }
  for (const char* root : {"add(a, a)", "add(a, n)", "negate(a)"}) {
    EXPECT_FALSE(CombinationOf(ModuleOf(root)->entry()).valid()) << root;
  }
  EXPECT_FALSE(CombinationOf(Computation()).valid());
}

TEST(IdentityElementTest, IsKnownOfReducers) {
  EXPECT_EQ(IdentityElementOf(Opcode::kAdd), IdentityElement::kNegativeZero);
  EXPECT_EQ(IdentityElementOf(Opcode::kXor), IdentityElement::kZero);
  EXPECT_EQ(IdentityElementOf(Opcode::kMinimum), IdentityElement::kHighest);
  EXPECT_EQ(IdentityElementOf(Opcode::kSubtract), IdentityElement::kNone);
  EXPECT_EQ(IdentityElementOf(Opcode::kUnknown), IdentityElement::kNone);
}

}  // namespace
}  // namespace hlokit
