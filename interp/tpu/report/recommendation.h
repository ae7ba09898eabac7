// SPDX-License-Identifier: Apache-2.0
// What would make a step shorter or make it fit, each with its evidence and with the gain that simulating the changed
// program, machine or host gives. Nothing is listed on a guess: what changes less than one part in a hundred is left
// out.
#ifndef HLOKIT_INTERP_TPU_REPORT_RECOMMENDATION_H_
#define HLOKIT_INTERP_TPU_REPORT_RECOMMENDATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interp/tpu/report/report.h"
#include "interp/tpu/timing/host.h"

namespace hlokit::tpu {

struct Recommendation {
  std::string title;
  std::string evidence;  // what was seen
  std::string action;    // what to change
  std::string changed;   // what the second simulation had
  double before = 0;     // seconds a step
  double after = 0;
  int64_t bytes_before = 0;  // peak of HBM; 0 where it is not about memory
  int64_t bytes_after = 0;
};
// Largest gain first; what makes a program fit goes before all others.
std::vector<Recommendation> Recommend(const ReportInput& input, const HostModel& host);

// The step with one resource twice as fast: what bounds now, and what bounds then.
struct Sensitivity {
  std::string resource;
  double seconds = 0;
  Resource bound = Resource::kOverhead;
};
std::vector<Sensitivity> SensitivityAnalysis(const ReportInput& input, const HostModel& host);

// The same program on the installed machines, with as many devices.
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

#endif  // HLOKIT_INTERP_TPU_REPORT_RECOMMENDATION_H_
