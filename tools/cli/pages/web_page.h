// SPDX-License-Identifier: Apache-2.0
// Pages that tools write: one HTML document with its script, style and data, without network access. Bundled from
// tools/web at build time.
#ifndef HLOKIT_TOOLS_CLI_PAGES_WEB_PAGE_H_
#define HLOKIT_TOOLS_CLI_PAGES_WEB_PAGE_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "tools/cli/cli.h"

namespace hlokit::cli {

// The document before and after the elements with its data; null if the build had no npm.
struct WebPage {
  const char* before;
  const char* after;
};
extern const WebPage kReportPage;  // hlo-run --report
extern const WebPage kViewPage;    // hlo-view
// The element with the program that lays out graphs, for pages with graphs.
extern const char* const kLayoutWorker;

// Writes report.json, which is `json`, and the report page with it, index.html. `graphs`: an array of graph documents
// (passes/view/graph_document.h), which the page shows beside the report; empty: none. The graphs are compressed, and
// not in report.json. Prints an error and returns false if that fails, or if this build has no page.
bool WriteReportPage(const std::filesystem::path& directory, std::string_view json, std::string_view graphs,
                     DiagnosticReporter* diagnostics);

// Writes the page of hlo-view with an array of graph documents, compressed. Prints an error and returns false if that
// fails, or if this build has no page.
bool WriteViewPage(const std::string& path, std::string_view graphs, DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_PAGES_WEB_PAGE_H_
