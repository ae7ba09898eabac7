// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/plane_writer.h"

#include <gtest/gtest.h>

namespace hlokit::tpu {
namespace {

TEST(Nesting, RoundingIsTakenBackAndNothingElse) {
  Nesting nesting;
  const auto place = [&](int64_t start, int64_t end) {
    const Nesting::Span span = nesting.Place({start, end});
    return std::pair(span.start, span.end);
  };
  // A loop with two operations, of which the second begins a picosecond early and ends one late.
  EXPECT_EQ(place(100000, 500000), std::pair(int64_t{100000}, int64_t{500000}));
  EXPECT_EQ(place(100000, 300001), std::pair(int64_t{100000}, int64_t{300001}));
  EXPECT_EQ(place(300000, 500002), std::pair(int64_t{300001}, int64_t{500000}));
  // After it, also a picosecond early.
  EXPECT_EQ(place(499999, 600000), std::pair(int64_t{500000}, int64_t{600000}));
  EXPECT_EQ(place(700000, 700000), std::pair(int64_t{700000}, int64_t{700000}));
  EXPECT_EQ(place(900000, 950000), std::pair(int64_t{900000}, int64_t{950000}));
}

}  // namespace
}  // namespace hlokit::tpu
