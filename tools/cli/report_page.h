// SPDX-License-Identifier: Apache-2.0
// The page of hlo-run --report: one HTML document with its script, style and data, without network access. Bundled from
// tools/web/report at build time.
#ifndef HLOKIT_TOOLS_CLI_REPORT_PAGE_H_
#define HLOKIT_TOOLS_CLI_REPORT_PAGE_H_

#include <filesystem>
#include <string_view>

#include "tools/cli/cli.h"

namespace hlokit::cli {

// The document before and after the data; null if the build had no npm.
extern const char* const kReportPageBefore;
extern const char* const kReportPageAfter;

// Writes report.json, which is `json`, and the page with it, index.html. Prints an error and returns false if that
// fails, or if this build has no page.
bool WriteReportPage(const std::filesystem::path& directory, std::string_view json, DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_REPORT_PAGE_H_
