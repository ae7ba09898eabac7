// SPDX-License-Identifier: Apache-2.0
// HBM exceeds the rate that it sustains only for a while: streams of a few milliseconds run at `hbm_efficiency` of the
// nominal rate, longer ones fall to `hbm_sustained_efficiency` in the mean, and phases that need HBM little make up for
// it. Measured on v6e, where chains of kernels that move 4 GB in 3 ms need 8 ms for 8.6 GB, whatever they compute, and
// decoding steps of very different batches and lengths all move 1.07 TB/s.
#ifndef HLOKIT_SIMULATOR_TIMING_HBM_BUDGET_H_
#define HLOKIT_SIMULATOR_TIMING_HBM_BUDGET_H_

#include <algorithm>

#include "passes/target/tpu_target.h"

namespace hlokit::tpu {

// The bytes that one device may move beyond the sustained rate. They grow with time and shrink with each transfer.
class HbmBudget {
 public:
  // Without limit.
  HbmBudget() = default;
  // `rate`: bytes per second that grow again, up to `capacity` bytes.
  HbmBudget(double rate, double capacity) : rate_(rate), capacity_(capacity), available_(capacity) {}

  bool limited() const { return rate_ > 0; }
  double capacity() const { return capacity_; }
  double available() const { return available_; }
  // Begins at time 0 with so many bytes, at most the capacity.
  void Restart(double available);
  // Raises a debt to nothing.
  void Forgive() { available_ = std::max(available_, 0.0); }
  // Moves on to time `at` in seconds, unless that is in the past. `prefetched`: bytes of later transfers for which
  // there was time since, beyond the capacity.
  void AdvanceTo(double at, double prefetched = 0);
  // Takes bytes that are transferred from now on. Returns for how many seconds the transfer lasts at least.
  double Take(double bytes);

 private:
  double rate_ = 0;
  double capacity_ = 0;
  double available_ = 0;
  double now_ = 0;
};

// Returns the budget of a program that needs HBM for `busy` seconds at the rate of short streams, and in `*initial` the
// bytes in excess of the sustained rate that it has at its begin: all of a burst if it is not longer than one, less for
// longer ones, since executions follow each other. Programs within a burst are not limited.
HbmBudget BudgetOf(const TpuTarget& target, double busy, double* initial);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_HBM_BUDGET_H_
