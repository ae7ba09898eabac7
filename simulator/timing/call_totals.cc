// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/call_totals.h"

#include <numeric>
#include <utility>

namespace hlokit::tpu {

MeanTotals MeanOf(const RunTotals& totals, const std::vector<double>& free_at) {
  MeanTotals mean;
  mean.kinds = totals.kinds;
  const auto devices = static_cast<double>(free_at.size());
  mean.seconds = std::accumulate(free_at.begin(), free_at.end(), 0.0) / devices;
  for (double DeviceTimeBreakdown::*part : kDeviceTimeParts) {
    for (const DeviceTimeBreakdown& share : totals.shares) mean.share.*part += share.*part;
    mean.share.*part /= devices;
  }
  return mean;
}

void CallTotals::Remember(size_t plan, uint32_t step, const MeanTotals& before, MeanTotals after) {
  after.seconds -= before.seconds;
  for (double DeviceTimeBreakdown::*part : kDeviceTimeParts) after.share.*part -= before.share.*part;
  for (size_t k = 0; k < before.kinds.size(); ++k) {
    for (double CollectiveTotals::*part : kCollectiveParts) after.kinds[k].*part -= before.kinds[k].*part;
  }
  const auto size = [](const MeanTotals& totals) {
    return 1 + std::size(kDeviceTimeParts) + std::size(kCollectiveParts) * totals.kinds.size();
  };
  const auto [at, added] = added_.try_emplace(KeyOf(plan, step));
  if (!added) values_ -= size(at->second);
  values_ += size(after);
  at->second = std::move(after);
}

bool CallTotals::Repeat(size_t plan, uint32_t step, RunTotals* totals, std::vector<double>* free_at) const {
  const auto found = added_.find(KeyOf(plan, step));
  if (found == added_.end()) return false;
  const MeanTotals& added = found->second;
  const MeanTotals mean = MeanOf(*totals, *free_at);
  for (size_t d = 0; d < totals->shares.size(); ++d) {
    double all = 0, own = 0;  // of the parts that follow each other
    for (double DeviceTimeBreakdown::*part : kDeviceTimeParts) {
      const double relative = mean.share.*part > 0 ? totals->shares[d].*part / mean.share.*part : 1;
      totals->shares[d].*part += added.share.*part * relative;
      if (part == &DeviceTimeBreakdown::communication) continue;
      all += added.share.*part;
      own += added.share.*part * relative;
    }
    (*free_at)[d] += all > 0 ? added.seconds * (own / all) : added.seconds;
  }
  for (size_t k = 0; k < added.kinds.size(); ++k) {
    for (double CollectiveTotals::*part : kCollectiveParts) totals->kinds[k].*part += added.kinds[k].*part;
  }
  return true;
}

}  // namespace hlokit::tpu
