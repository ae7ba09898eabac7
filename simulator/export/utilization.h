// SPDX-License-Identifier: Apache-2.0
// Utilization of a device over time, from the events of its timeline: counters of the matrix unit, HBM, the links, and
// the operations of the running kernel as a part of the peak.
#ifndef HLOKIT_SIMULATOR_EXPORT_UTILIZATION_H_
#define HLOKIT_SIMULATOR_EXPORT_UTILIZATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/export/timeline.h"

namespace hlokit::tpu {

enum class UtilizationCounter : uint8_t { kMatrixUnit, kHbm, kLinks, kOccupancy };
inline constexpr size_t kUtilizationCounters = 4;
// Returns "matrix unit busy", "HBM bandwidth of peak", "links of nominal rate", "operations of peak".
std::string_view ToString(UtilizationCounter counter);

class Utilization {
 public:
  using Values = std::array<double, kUtilizationCounters>;  // 0 to 1, by counter
  struct Change {
    double time;  // seconds
    UtilizationCounter counter;
    double value;  // from then on
  };

  explicit Utilization(const ReportInput& input) : input_(input) {}
  // Adds an event of the device; events without an operation, and loops and calls, whose bodies have events, are
  // ignored.
  void Add(const TimelineEvent& event);
  // Returns the values as steps, in order of time.
  std::vector<Change> Changes() const;
  // Returns the means over `count` equal parts of [0, seconds].
  std::vector<Values> Means(double seconds, size_t count) const;

 private:
  struct Interval {
    double start, end;
    UtilizationCounter counter;
    double value;
  };
  const ReportInput& input_;
  std::vector<Interval> intervals_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_UTILIZATION_H_
