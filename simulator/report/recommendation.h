// SPDX-License-Identifier: Apache-2.0
// Recommendations that shorten a step or make it fit, each with its evidence and with the gain found by simulating the
// changed program, target or host. Gains below 1 % are omitted.
#ifndef HLOKIT_SIMULATOR_REPORT_RECOMMENDATION_H_
#define HLOKIT_SIMULATOR_REPORT_RECOMMENDATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/report/report.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

struct Recommendation {
  std::string title;
  std::string evidence;  // the observation
  std::string action;    // the change to make
  std::string flag;      // a flag of ir-dump that shows more about it; "": none
  std::string changed;   // the difference in the second simulation
  double before = 0;     // seconds per step
  double after = 0;
  int64_t bytes_before = 0;  // HBM peak; 0 for recommendations without a memory effect
  int64_t bytes_after = 0;
  bool fits_after = true;  // the changed program fits, on its target
};
// Returns the recommendations, largest gain first; those for memory come first, in the order of MemoryAdvices.
std::vector<Recommendation> Recommend(const ReportInput& input, const HostModel& host);

// Step time with one resource twice as fast: the bounds before and after.
struct Sensitivity {
  std::string resource;
  double seconds = 0;
  Resource bound = Resource::kOverhead;
};
std::vector<Sensitivity> SensitivityAnalysis(const ReportInput& input, const HostModel& host);

// The same program on the builtin targets with the same number of devices.
struct TargetComparison {
  std::string machine;
  std::string topology;
  double seconds = 0;
  Resource bound = Resource::kOverhead;
  int64_t peak_bytes = 0;
  double limit_bytes = 0;
};
std::vector<TargetComparison> CompareTargets(const ReportInput& input, const HostModel& host);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_RECOMMENDATION_H_
