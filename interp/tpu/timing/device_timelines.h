// SPDX-License-Identifier: Apache-2.0
// The devices of a run side by side: what makes them differ, and how each spends its time.
#ifndef HLOKIT_INTERP_TPU_TIMING_DEVICE_TIMELINES_H_
#define HLOKIT_INTERP_TPU_TIMING_DEVICE_TIMELINES_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace hlokit::tpu {

struct Straggler {
  int64_t device = 0;  // negative: drawn
  double factor = 1;   // its kernels take so many times as long
};

// How devices differ.
struct PerformanceVariation {
  double jitter = 0;  // standard deviation of a kernel's time, as a part of it; drawn for each run of it on each device
  std::vector<Straggler> stragglers;
  uint64_t seed = 1;
  bool empty() const { return jitter == 0 && stragglers.empty(); }
};

// Seconds of one execution. The first five add up to the time until the last device is done.
struct DeviceTimeBreakdown {
  double compute = 0;
  double exposed = 0;        // waited for bytes on the links
  double sync = 0;           // waited for other devices to reach a collective
  double other = 0;          // waited for copies and the host
  double idle = 0;           // done, others not
  double communication = 0;  // of its collectives, hidden behind compute or not
  double hidden() const { return communication > exposed ? communication - exposed : 0; }
};

// Of all collectives of one kind; a device's mean where times are concerned.
struct CollectiveTotals {
  std::string_view kind;  // "all-gather", whether asynchronous or not
  double runs = 0;        // by each device
  double bytes = 0;       // of the full arrays, all runs together
  double seconds = 0;     // on the links
  double ideal = 0;       // at their nominal rates, without hops
  double exposed = 0;
  double sync = 0;
};

struct DeviceTimelines {
  double seconds = 0;                         // until the last device is done
  int64_t devices = 1;                        // that run the program
  std::vector<DeviceTimeBreakdown> shares;    // by device; of one if all are alike
  std::vector<CollectiveTotals> collectives;  // longest first
  double events = 0;                          // steps that were timed, over all devices
  bool scaled = false;                        // long loops: some trips stand for the rest
  const DeviceTimeBreakdown& ShareOf(int64_t device) const {
    return shares[shares.size() == 1 ? 0 : static_cast<size_t>(device)];
  }
};

// Adds `more` times what `now` has gained since `before`.
void Extrapolate(const DeviceTimeBreakdown& before, double more, DeviceTimeBreakdown* now);
void Extrapolate(const CollectiveTotals& before, double more, CollectiveTotals* now);

// Devices that compute so much longer than the others that they hold them up: modified z-score above 3.5, as XProf has
// it, and at least 5 % over the median. Slowest first.
std::vector<int64_t> StragglersOf(const DeviceTimelines& timelines);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_DEVICE_TIMELINES_H_
