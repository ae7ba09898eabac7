// SPDX-License-Identifier: Apache-2.0
// The page that hlo-run --report writes: one HTML document that holds its script, style and data and asks nothing of
// the network. The document is bundled from tools/web/report when the project is built.
#ifndef HLOKIT_TOOLS_CLI_REPORT_PAGE_H_
#define HLOKIT_TOOLS_CLI_REPORT_PAGE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hlokit::cli {

// What stands before and after the data; null where the build had no npm.
extern const char* const kReportPageBefore;
extern const char* const kReportPageAfter;

// The page with `json` in it. Unavailable: this build has no page.
absl::Status WriteReportPage(const std::string& path, std::string_view json);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_REPORT_PAGE_H_
