// SPDX-License-Identifier: Apache-2.0
// The page of hlo-run --report: one HTML document with its script, style and data, without network access. Bundled from
// tools/web/report at build time.
#ifndef HLOKIT_TOOLS_CLI_REPORT_PAGE_H_
#define HLOKIT_TOOLS_CLI_REPORT_PAGE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hlokit::cli {

// The document before and after the data; null if the build had no npm.
extern const char* const kReportPageBefore;
extern const char* const kReportPageAfter;

// Writes the page with `json` in it. Returns Unavailable if this build has no page.
absl::Status WriteReportPage(const std::string& path, std::string_view json);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_REPORT_PAGE_H_
