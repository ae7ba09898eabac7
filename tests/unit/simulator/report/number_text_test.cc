// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/number_text.h"

#include <gtest/gtest.h>

namespace hlokit::tpu {
namespace {

TEST(NumberTextTest, TimesHaveFourDigitsAndAUnit) {
  EXPECT_EQ(FormatSeconds(177.518219), "177.5 s");
  EXPECT_EQ(FormatSeconds(0.99999), "1.000 s");
  EXPECT_EQ(FormatSeconds(4.92739e-3), "4.927 ms");
  EXPECT_EQ(FormatSeconds(3.3e-5), "33.00 us");
  EXPECT_EQ(FormatSeconds(20.8e-9), "20.80 ns");
  EXPECT_EQ(FormatSeconds(0), "0 us");
}

}  // namespace
}  // namespace hlokit::tpu
