// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/device_timelines.h"

#include <algorithm>
#include <cmath>

namespace hlokit::tpu {

namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  return values[middle];
}

}  // namespace

void Extrapolate(const DeviceTimeBreakdown& before, double more, DeviceTimeBreakdown* now) {
  for (double DeviceTimeBreakdown::*part : kDeviceTimeParts) now->*part += (now->*part - before.*part) * more;
}

void Extrapolate(const CollectiveTotals& before, double more, CollectiveTotals* now) {
  for (double CollectiveTotals::*part : kCollectiveParts) now->*part += (now->*part - before.*part) * more;
}

std::vector<int64_t> StragglersOf(const DeviceTimelines& timelines) {
  std::vector<double> computes;
  for (const DeviceTimeBreakdown& share : timelines.shares) computes.push_back(share.compute);
  const double median = Median(computes);
  std::vector<double> distances;
  for (double c : computes) distances.push_back(std::abs(c - median));
  const double spread = Median(distances);
  std::vector<int64_t> result;
  for (size_t d = 0; d < computes.size(); ++d) {
    if (computes[d] > 1.05 * median && 0.6745 * (computes[d] - median) > 3.5 * spread) {
      result.push_back(static_cast<int64_t>(d));
    }
  }
  std::stable_sort(result.begin(), result.end(), [&](int64_t a, int64_t b) {
    return computes[static_cast<size_t>(a)] > computes[static_cast<size_t>(b)];
  });
  return result;
}

}  // namespace hlokit::tpu
