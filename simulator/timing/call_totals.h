// SPDX-License-Identifier: Apache-2.0
// What the calls and loops of a simulated run added when they ran last, for when they run again. Of each the mean over
// the devices is kept: memory is bounded by the size of the program, not by its product with the number of devices.
#ifndef HLOKIT_SIMULATOR_TIMING_CALL_TOTALS_H_
#define HLOKIT_SIMULATOR_TIMING_CALL_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "simulator/timing/device_timelines.h"

namespace hlokit::tpu {

// RunTotals with the mean of all devices.
struct MeanTotals {
  DeviceTimeBreakdown share;
  double seconds = 0;  // at which a device is free
  std::vector<CollectiveTotals> kinds;
};

// `free_at`: the seconds at which each device is free.
MeanTotals MeanOf(const RunTotals& totals, const std::vector<double>& free_at);

class CallTotals {
 public:
  // Returns true if the step of the computation, a call or loop, has run.
  bool Contains(size_t plan, uint32_t step) const { return added_.contains(KeyOf(plan, step)); }
  // Keeps what the step added: the increase from `before` to `after`.
  void Remember(size_t plan, uint32_t step, const MeanTotals& before, MeanTotals after);
  // Adds what the step added when it ran last. A device gets the mean, multiplied by what it did in the run so far
  // relative to the mean of all: a straggler computes longer, and others wait for it. Returns false if it has not run.
  bool Repeat(size_t plan, uint32_t step, RunTotals* totals, std::vector<double>* free_at) const;
  // Returns how many numbers are kept.
  size_t values() const { return values_; }

 private:
  static uint64_t KeyOf(size_t plan, uint32_t step) { return uint64_t{plan} << 32 | step; }

  absl::flat_hash_map<uint64_t, MeanTotals> added_;
  size_t values_ = 0;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_CALL_TOTALS_H_
