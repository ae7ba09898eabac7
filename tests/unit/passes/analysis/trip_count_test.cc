// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/trip_count.h"

#include <gtest/gtest.h>

#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

// Returns the trip count of a loop that starts at `start`, computes `next` of i, and continues while `test` of i and n
// holds.
std::optional<int64_t> ComputeTripCount(std::string_view element, std::string_view start, std::string_view next,
                                        std::string_view test, std::string_view limit = "constant(10)") {
  const std::string type = StrCat(element, "[]");
  const auto module = ParseModuleText(
      StrCat("HloModule m cond { p = (", type, ", f32[2], ", type, ") parameter(0) i = ", type,
             " get-tuple-element(p), index=0 n = ", type, " ", limit, " ROOT c = pred[] ", test, " } body { p = (",
             type, ", f32[2], ", type, ") parameter(0) i = ", type, " get-tuple-element(p), index=0 x = f32[2] ",
             "get-tuple-element(p), index=1 k = ", type, " get-tuple-element(p), index=2 step = ", type,
             " constant(3) next = ", type, " ", next, " ROOT t = (", type, ", f32[2], ", type,
             ") tuple(next, x, k) } ENTRY e { s = ", type, " constant(", start, ") x = f32[2] parameter(0) k = ", type,
             " constant(20) t = (", type, ", f32[2], ", type, ") tuple(s, x, k) ROOT w = (", type, ", f32[2], ", type,
             ") while(t), condition=cond, body=body }"));
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return -1;
  return TripCount((*module)->entry().root());
}

TEST(TripCountTest, CountsUp) {
  EXPECT_EQ(ComputeTripCount("s32", "0", "add(i, step)", "compare(i, n), direction=LT"), 4);
  EXPECT_EQ(ComputeTripCount("s32", "1", "add(step, i)", "compare(i, n), direction=LE"), 4);
  EXPECT_EQ(ComputeTripCount("s32", "1", "add(step, i)", "compare(n, i), direction=GT"), 3);
  EXPECT_EQ(ComputeTripCount("s32", "1", "add(step, i)", "compare(i, n), direction=NE"), 3);
  EXPECT_EQ(ComputeTripCount("u8", "0", "add(i, step)", "compare(i, n), direction=LT"), 4);
}

TEST(TripCountTest, CountsDown) {
  EXPECT_EQ(ComputeTripCount("s64", "20", "subtract(i, step)", "compare(i, n), direction=GT"), 4);
  EXPECT_EQ(ComputeTripCount("s64", "20", "subtract(i, step)", "compare(i, n), direction=GE"), 4);
}

TEST(TripCountTest, NoIterations) {
  EXPECT_EQ(ComputeTripCount("s32", "10", "add(i, step)", "compare(i, n), direction=LT"), 0);
}

TEST(TripCountTest, LimitInTheState) {
  EXPECT_EQ(
      ComputeTripCount("s32", "0", "add(i, step)", "compare(i, n), direction=LT", "get-tuple-element(p), index=2"), 7);
}

TEST(TripCountTest, NothingIsSaidOf) {
  EXPECT_EQ(ComputeTripCount("s32", "0", "multiply(i, step)", "compare(i, n), direction=LT"), std::nullopt);
  EXPECT_EQ(ComputeTripCount("s32", "0", "subtract(i, step)", "compare(i, n), direction=LT"),
            std::nullopt);  // overflows
  EXPECT_EQ(ComputeTripCount("s32", "0", "add(i, step)", "compare(i, n), direction=NE"),
            std::nullopt);  // steps over 10
  EXPECT_EQ(ComputeTripCount("u8", "0", "add(i, step)", "compare(i, n), direction=LE", "constant(255)"), std::nullopt);
}

TEST(TripCountTest, SeesThroughFusions) {
  const auto module = ParseModuleText(R"(HloModule m
    test { i = s32[] parameter(0) n = s32[] constant(126) ROOT c = pred[] compare(i, n), direction=LT }
    next { i = s32[] parameter(0) one = s32[] constant(1) ROOT a = s32[] add(i, one) }
    cond { p = (s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(p), index=0 ROOT f = pred[] fusion(i), kind=kLoop, calls=test }
    body {
      p = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      f = s32[] fusion(i), kind=kLoop, calls=next
      x = f32[8] get-tuple-element(p), index=1
      ROOT t = (s32[], f32[8]) tuple(f, x)
    }
    start {
      zero = s32[] constant(0)
      wide = f32[] constant(0)
      all = f32[8] broadcast(wide), dimensions={}
      ROOT t = (f32[8], s32[]) tuple(all, zero)
    }
    ENTRY e {
      f = (f32[8], s32[]) fusion(), kind=kLoop, calls=start
      x = f32[8] get-tuple-element(f), index=0
      i = s32[] get-tuple-element(f), index=1
      t = (s32[], f32[8]) tuple(i, x)
      ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body
    })");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(TripCount((*module)->entry().root()), 126);
}

TEST(TripCountTest, WhatTheBackendKnows) {
  const auto module = ParseModuleText(R"(HloModule m
    cond { p = (pred[]) parameter(0) ROOT g = pred[] get-tuple-element(p), index=0 }
    body { ROOT p = (pred[]) parameter(0) }
    ENTRY e {
      t = (pred[]) parameter(0)
      ROOT w = (pred[]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"12"}}
    })");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(TripCount((*module)->entry().root()), 12);
}

}  // namespace
}  // namespace hlokit
