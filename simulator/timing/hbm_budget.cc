// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/hbm_budget.h"

#include <algorithm>

namespace hlokit::tpu {

void HbmBudget::Restart(double available) {
  available_ = std::min(available, capacity_);
  now_ = 0;
}

void HbmBudget::AdvanceTo(double at, double prefetched) {
  if (at <= now_) return;
  available_ = std::min(capacity_ + prefetched, available_ + rate_ * (at - now_));
  now_ = at;
}

double HbmBudget::Take(double bytes) {
  if (!limited()) return 0;
  available_ -= bytes;
  return std::max(-available_ / rate_, 0.0);
}

HbmBudget BudgetOf(const TpuTarget& target, double busy, double* initial) {
  const DeviceDescription& machine = target.machine;
  const double burst = machine.hbm_burst_time;
  const double sustained = machine.HbmRate() * machine.hbm_sustained_efficiency;
  *initial = 0;
  if (busy <= burst || sustained >= target.HbmRate()) return {};
  const double capacity = burst * (target.HbmRate() - sustained);
  *initial = capacity * std::max(0.0, 2 - busy / burst);
  return HbmBudget(sustained, capacity);
}

}  // namespace hlokit::tpu
