// SPDX-License-Identifier: Apache-2.0
// Compares two reports (docs/report.md), as text and as a page.
#ifndef HLOKIT_TOOLS_CLI_PAGES_REPORT_COMPARISON_H_
#define HLOKIT_TOOLS_CLI_PAGES_REPORT_COMPARISON_H_

#include <cstddef>
#include <string>

#include "ir/core/text_writer.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

struct ReportComparisonOptions {
  std::string before, after;  // report.json, or the directory with it
  std::string page;           // directory of the page; "": none
  size_t top = 10;            // rows of operations and scopes
};

// Prints the differences, and writes the page if one is requested. Prints errors.
void CompareReports(const ReportComparisonOptions& options, DiagnosticReporter* diagnostics, TextWriter* out);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_PAGES_REPORT_COMPARISON_H_
