// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/trace_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hlokit::runtime {

int64_t NanosecondOf(int64_t picoseconds) {
  const int64_t whole = picoseconds / 1000;
  return picoseconds % 1000 < 0 ? whole - 1 : whole;
}

double TraceMicroseconds(int64_t nanoseconds) {
  double microseconds = static_cast<double>(nanoseconds) / 1000;
  // Beyond 2^50 nanoseconds, 13 days, doubles do not tell nanoseconds apart.
  constexpr int64_t kMaxExact = int64_t{1} << 50;
  if (nanoseconds < 0 || nanoseconds > kMaxExact) return microseconds;
  while (static_cast<int64_t>(microseconds * 1000.0) < nanoseconds) {
    microseconds = std::nextafter(microseconds, std::numeric_limits<double>::infinity());
  }
  return microseconds;
}

namespace {

// More slices that overlap at the same time share the last lane, so that no file takes quadratic time.
constexpr size_t kMaxLanes = 1000;

}  // namespace

size_t AssignLanes(std::vector<TraceSlice>* slices) {
  std::stable_sort(slices->begin(), slices->end(), [](const TraceSlice& a, const TraceSlice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<std::vector<int64_t>> open;  // by lane: ends of the slices in progress, innermost last
  for (TraceSlice& slice : *slices) {
    slice.lane = 0;
    for (; slice.lane < open.size(); ++slice.lane) {
      std::vector<int64_t>& ends = open[slice.lane];
      while (!ends.empty() && ends.back() <= slice.start) ends.pop_back();
      if (ends.empty() || slice.end <= ends.back() || slice.lane + 1 == kMaxLanes) break;
    }
    if (slice.lane == open.size()) open.emplace_back();
    open[slice.lane].push_back(slice.end);
  }
  return std::max<size_t>(open.size(), 1);
}

}  // namespace hlokit::runtime
