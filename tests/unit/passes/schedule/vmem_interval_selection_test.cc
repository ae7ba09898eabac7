// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/vmem_interval_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hlokit {
namespace {

using Indices = std::vector<size_t>;

// Returns slots that all run, bound by their transfers.
std::vector<ScheduleSlot> Running(size_t count, int64_t room) {
  return std::vector<ScheduleSlot>(count, {room, true, 0, 10});
}

VmemInterval Stay(int32_t from, int32_t to, int64_t bytes) {
  const double seconds = static_cast<double>(bytes) / 100;
  return {from, to, bytes, {{from, seconds}, {to, seconds}}};
}

TEST(StayChoiceTest, WhatFitsAllStays) {
  EXPECT_EQ(SelectVmemIntervals({Stay(0, 3, 40), Stay(1, 2, 60)}, Running(4, 100)), (Indices{1, 0}));
  EXPECT_EQ(SelectVmemIntervals({}, Running(4, 100)), Indices());
}

TEST(StayChoiceTest, TheShorterGoesFirst) {
  EXPECT_EQ(SelectVmemIntervals({Stay(0, 3, 60), Stay(1, 2, 60)}, Running(4, 100)), (Indices{1}));
}

TEST(StayChoiceTest, LengthsInWhatTakesTimeServeWhereTheySpareMore) {
  // The large array is live for one kernel, as the small one is, but aliases come between its definition and its use.
  std::vector<ScheduleSlot> places = Running(5, 100);
  places[1].runs = places[2].runs = false;
  const std::vector<VmemInterval> stays = {Stay(0, 3, 90), Stay(3, 4, 20)};
  EXPECT_EQ(SelectVmemIntervals(stays, places), (Indices{0}));
  // If the kernels that use the large array are bound by computation, it saves nothing.
  places[0].compute_seconds = places[3].compute_seconds = 10;
  EXPECT_EQ(SelectVmemIntervals(stays, places), (Indices{1}));
}

TEST(StayChoiceTest, WhatStaysFitsAtEachPlace) {
  std::mt19937 random(1);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
  for (int n = 0; n < 200; ++n) {
    std::vector<ScheduleSlot> places;
    const int count = 2 + draw(20);
    for (int k = 0; k < count; ++k) places.push_back({draw(200), draw(3) != 0, draw(10) * 0.1, draw(10) * 0.2});
    std::vector<VmemInterval> stays;
    for (int k = 0; k < 12; ++k) {
      const int from = draw(count - 1);
      stays.push_back(Stay(from, from + 1 + draw(count - from - 1), 1 + draw(90)));
    }
    Indices chosen = SelectVmemIntervals(stays, places);
    for (size_t k : chosen) {
      for (int32_t place = stays[k].from; place <= stays[k].to; ++place) places[place].capacity -= stays[k].bytes;
    }
    for (const ScheduleSlot& place : places) EXPECT_GE(place.capacity, 0);
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(std::unique(chosen.begin(), chosen.end()), chosen.end());
    // No further interval fits.
    for (size_t k = 0; k < stays.size(); ++k) {
      if (std::binary_search(chosen.begin(), chosen.end(), k)) continue;
      bool fits = true;
      for (int32_t place = stays[k].from; place <= stays[k].to; ++place)
        fits &= places[place].capacity >= stays[k].bytes;
      EXPECT_FALSE(fits);
    }
  }
}

}  // namespace
}  // namespace hlokit
