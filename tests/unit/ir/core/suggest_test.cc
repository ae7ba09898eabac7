// SPDX-License-Identifier: Apache-2.0
#include "ir/core/suggest.h"

#include <gtest/gtest.h>

namespace hlokit {
namespace {

TEST(SuggestTest, ANearNameIsAskedFor) {
  EXPECT_EQ(FindNearest("brodcast", {"reshape", "broadcast"}), "broadcast");
  EXPECT_EQ(DidYouMean("brodcast", {"reshape", "broadcast"}), "did you mean `broadcast`?");
  EXPECT_EQ(DidYouMeanSuffix("gahter", {"gather"}), "; did you mean `gather`?");
}

TEST(SuggestTest, WithoutANearOneAFewAreListed) {
  EXPECT_EQ(FindNearest("quark", {"alpha", "beta"}), "");
  EXPECT_EQ(DidYouMean("quark", {"alpha", "beta"}), "expected one of `alpha`, `beta`");
  EXPECT_EQ(DidYouMean("quark", {"alpha"}), "expected `alpha`");
  EXPECT_EQ(DidYouMeanSuffix("quark", {"alpha", "beta"}), "; expected one of `alpha`, `beta`");
  EXPECT_EQ(DidYouMean("quark", {}), "");
  EXPECT_EQ(DidYouMean("quark", std::vector<std::string_view>(1000, "alpha")), "");
}

}  // namespace
}  // namespace hlokit
