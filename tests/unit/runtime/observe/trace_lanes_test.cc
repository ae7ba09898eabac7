// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/trace_lanes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace hlokit::runtime {
namespace {

// Returns the lane of each slice, by its number.
std::vector<size_t> LanesOf(std::vector<TraceSlice> slices) {
  for (size_t k = 0; k < slices.size(); ++k) slices[k].event = k;
  AssignLanes(&slices);
  std::vector<size_t> lanes(slices.size());
  for (const TraceSlice& slice : slices) lanes[slice.event] = slice.lane;
  return lanes;
}

TEST(TraceLanes, SlicesThatFollowOrContainEachOtherShareALane) {
  // A loop with two operations, the start of an asynchronous one, and an operation after it.
  EXPECT_EQ(LanesOf({{0, 100}, {0, 40}, {40, 100}, {100, 100}, {100, 120}}), std::vector<size_t>({0, 0, 0, 0, 0}));
}

TEST(TraceLanes, ASliceThatEndsAfterTheOneItBeginsInHasAnother) {
  EXPECT_EQ(LanesOf({{0, 10}, {5, 15}, {7, 9}, {12, 20}, {16, 18}}), std::vector<size_t>({0, 1, 0, 0, 0}));
  // The order in which they are given does not matter, nor whether an inner one comes first.
  EXPECT_EQ(LanesOf({{5, 15}, {0, 10}}), std::vector<size_t>({1, 0}));
  EXPECT_EQ(LanesOf({{0, 10}, {0, 100}}), std::vector<size_t>({0, 0}));
}

TEST(TraceLanes, NoSlicesHaveOneLane) {
  std::vector<TraceSlice> none;
  EXPECT_EQ(AssignLanes(&none), 1u);
}

TEST(TraceLanes, ManyThatOverlapEndInTheLastLane) {
  std::vector<TraceSlice> slices;
  for (int64_t k = 0; k < 1500; ++k) slices.push_back({k, 10000 + k, static_cast<size_t>(k)});
  EXPECT_EQ(AssignLanes(&slices), 1000u);
}

TEST(TraceTimes, NanosecondsRoundDown) {
  EXPECT_EQ(NanosecondOf(0), 0);
  EXPECT_EQ(NanosecondOf(999), 0);
  EXPECT_EQ(NanosecondOf(1000), 1);
  EXPECT_EQ(NanosecondOf(-1), -1);
  EXPECT_EQ(NanosecondOf(-1000), -1);
}

TEST(TraceTimes, ReadersThatRoundOrTruncateGetTheNanosecond) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 100000; ++k) {
    const int64_t ns = static_cast<int64_t>(random() >> (15 + k % 49));
    const double us = TraceMicroseconds(ns);
    ASSERT_EQ(static_cast<int64_t>(us * 1000.0), ns);
    ASSERT_EQ(std::llround(us * 1000.0), ns);
  }
}

}  // namespace
}  // namespace hlokit::runtime
