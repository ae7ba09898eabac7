// SPDX-License-Identifier: Apache-2.0
// Names the instruction that was running when a fatal signal ends a tool.
#ifndef HLOKIT_TOOLS_CLI_CRASH_CRASH_REPORT_H_
#define HLOKIT_TOOLS_CLI_CRASH_CRASH_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit::cli {

// Handles fatal signals until it is destroyed: writes a line with the instruction whose step began last to standard
// error, and lets the signal end the program. At most one instance.
class CrashReport {
 public:
  CrashReport(std::string_view tool, const Module& module);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

 private:
  std::vector<std::string> lines_;       // by instruction id
  std::vector<std::string_view> views_;  // of them, for the handler
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_CRASH_CRASH_REPORT_H_
