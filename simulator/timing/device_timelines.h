// SPDX-License-Identifier: Apache-2.0
// Timelines of the devices of a run: how they differ and how each spends its time.
#ifndef HLOKIT_SIMULATOR_TIMING_DEVICE_TIMELINES_H_
#define HLOKIT_SIMULATOR_TIMING_DEVICE_TIMELINES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace hlokit::tpu {

struct Straggler {
  int64_t device = 0;  // negative: chosen at random
  double factor = 1;   // multiplies the time of its kernels
};

// Performance differences between devices.
struct PerformanceVariation {
  double jitter = 0;  // standard deviation of a kernel's time as a fraction of it; sampled per run and device
  std::vector<Straggler> stragglers;
  uint64_t seed = 1;
  bool empty() const { return jitter == 0 && stragglers.empty(); }
};

// Seconds of one execution. The first five add up to the time at which the last device finishes.
struct DeviceTimeBreakdown {
  double compute = 0;
  double exposed = 0;                  // stalled on bytes in transit
  double sync = 0;                     // stalled until other devices enter a collective
  double other = 0;                    // stalled on copies and the host
  double idle = 0;                     // finished before the last device
  double communication = 0;            // duration of its collectives, overlapped with compute or not
  std::map<int64_t, double> sync_for;  // `sync` by the device that entered last; empty for runs of many devices
  double hidden() const { return communication > exposed ? communication - exposed : 0; }
};

// Totals of all collectives of one kind. Times are means over the devices.
struct CollectiveTotals {
  std::string_view kind;  // "all-gather", synchronous or asynchronous
  double runs = 0;        // per device
  double bytes = 0;       // of the full arrays, summed over runs
  double seconds = 0;     // on the links
  double ideal = 0;       // at nominal link rates, without hops
  double exposed = 0;
  double sync = 0;
};

struct DeviceTimelines {
  double seconds = 0;                         // until the last device finishes
  int64_t devices = 1;                        // number of devices that run the program
  std::vector<DeviceTimeBreakdown> shares;    // by device; one entry if the devices are homogeneous
  std::vector<CollectiveTotals> collectives;  // longest first
  double events = 0;                          // simulated steps, over all devices
  bool scaled = false;                        // some loops were extrapolated from their first iterations
  size_t peak_values = 0;                     // most numbers of calls, loops and transfers kept at one time
  const DeviceTimeBreakdown& ShareOf(int64_t device) const {
    return shares[shares.size() == 1 ? 0 : static_cast<size_t>(device)];
  }
};

// The parts of both that add up.
inline constexpr double DeviceTimeBreakdown::*kDeviceTimeParts[] = {
    &DeviceTimeBreakdown::compute, &DeviceTimeBreakdown::exposed, &DeviceTimeBreakdown::sync,
    &DeviceTimeBreakdown::other, &DeviceTimeBreakdown::communication};
inline constexpr double CollectiveTotals::*kCollectiveParts[] = {&CollectiveTotals::runs,    &CollectiveTotals::bytes,
                                                                 &CollectiveTotals::seconds, &CollectiveTotals::ideal,
                                                                 &CollectiveTotals::exposed, &CollectiveTotals::sync};

// What a run, or a part of one, adds up, but for the waits by device.
struct RunTotals {
  std::vector<DeviceTimeBreakdown> shares;  // by device
  std::vector<CollectiveTotals> kinds;
};

// Adds `more` times the increase from `before` to `*now`.
void Extrapolate(const DeviceTimeBreakdown& before, double more, DeviceTimeBreakdown* now);
void Extrapolate(const CollectiveTotals& before, double more, CollectiveTotals* now);

// Returns the devices whose compute time delays the others, slowest first: modified z-score above 3.5, as in XProf, and
// at least 5 % above the median.
std::vector<int64_t> StragglersOf(const DeviceTimelines& timelines);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_DEVICE_TIMELINES_H_
