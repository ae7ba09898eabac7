// SPDX-License-Identifier: Apache-2.0
// Changes that lower the peak of HBM, each compiled and simulated. Of a program that fits, only those that leave its
// results as they are; of one that does not, also those that make it fit.
#ifndef HLOKIT_SIMULATOR_REPORT_MEMORY_ADVICE_H_
#define HLOKIT_SIMULATOR_REPORT_MEMORY_ADVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/report/report.h"

namespace hlokit::tpu {

struct MemoryAdvice {
  std::string title;
  std::string evidence;  // the observation
  std::string action;    // the change to make
  std::string changed;   // the difference in the second simulation
  double device_seconds = 0;
  int64_t peak_bytes = 0;
  double limit_bytes = 0;  // of the target in the second simulation
  bool fits() const { return static_cast<double>(peak_bytes) <= limit_bytes; }
};

// Returns the changes: those after which the program fits first, then by peak. A change that lowers the peak by less
// than 1 %, or after which a program that is too large still is and which is no donation, is omitted.
std::vector<MemoryAdvice> MemoryAdvices(const ReportInput& input);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_MEMORY_ADVICE_H_
