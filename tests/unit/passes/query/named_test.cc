// SPDX-License-Identifier: Apache-2.0
#include "passes/query/named.h"

#include <gtest/gtest.h>

#include "tests/unit/parsed_module.h"

namespace hlokit::query {
namespace {

TEST(NamedTest, FindsInstructionsByNameAndComputation) {
  const auto module = Parse(R"(HloModule m
    f {
      p.1 = f32[] parameter(0)
      ROOT n.1 = f32[] negate(p.1)
    }
    ENTRY e {
      x = f32[] parameter(0)
      ROOT c = f32[] call(x), to_apply=f
    })");
  EXPECT_EQ(FindNamed(*module, "n.1")->parent().name(), "f");
  EXPECT_EQ(FindNamed(*module, "%f/%n.1")->name(), "n.1");
  const auto wrong = FindNamed(*module, "e/n.1");
  ASSERT_FALSE(wrong.ok());
  const auto missing = FindNamed(*module, "n.2");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("no instruction `n.2`; did you mean `n.1`?"), std::string::npos)
      << missing.status();
}

}  // namespace
}  // namespace hlokit::query
