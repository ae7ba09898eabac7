// SPDX-License-Identifier: Apache-2.0
#include "ir/core/suggest.h"

#include <gtest/gtest.h>

namespace hlokit {
namespace {

TEST(SuggestTest, ANearNameIsAskedFor) {
  EXPECT_EQ(Nearest("brodcast", {"reshape", "broadcast"}), "broadcast");
  EXPECT_EQ(Suggestion("brodcast", {"reshape", "broadcast"}), "did you mean `broadcast`?");
  EXPECT_EQ(Suggested("gahter", {"gather"}), "; did you mean `gather`?");
}

TEST(SuggestTest, WithoutANearOneAFewAreListed) {
  EXPECT_EQ(Nearest("quark", {"alpha", "beta"}), "");
  EXPECT_EQ(Suggestion("quark", {"alpha", "beta"}), "expected one of `alpha`, `beta`");
  EXPECT_EQ(Suggestion("quark", {"alpha"}), "expected `alpha`");
  EXPECT_EQ(Suggested("quark", {"alpha", "beta"}), "; expected one of `alpha`, `beta`");
  EXPECT_EQ(Suggestion("quark", {}), "");
  EXPECT_EQ(Suggestion("quark", std::vector<std::string_view>(1000, "alpha")), "");
}

}  // namespace
}  // namespace hlokit
