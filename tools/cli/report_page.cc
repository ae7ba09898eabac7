// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report_page.h"

#include <algorithm>
#include <string>

#include "tools/cli/output_file.h"

namespace hlokit::cli {
namespace {

void WritePage(std::string_view json, TextWriter& out) {
  out << kReportPageBefore;
  // The data must not contain text that ends its element.
  while (!json.empty()) {
    const size_t angle = std::min(json.find('<'), json.size());
    out << json.substr(0, angle);
    if (angle < json.size()) out << "\\u003c";
    json.remove_prefix(std::min(angle + 1, json.size()));
  }
  out << kReportPageAfter;
}

}  // namespace

bool WriteReportPage(const std::filesystem::path& directory, std::string_view json, DiagnosticReporter* diagnostics) {
  if (!CreateDirectories(directory, diagnostics)) return false;
  if (!WriteOutputFile(directory / "report.json", diagnostics, [json](TextWriter& out) { out << json; })) return false;
  const std::string page = directory / "index.html";
  if (kReportPageBefore == nullptr) {
    diagnostics->ShowError(
        page,
        "this program was built without the report page: node and npm were not there, or could not fetch its "
        "libraries; install them (tools/install-deps page), remove generated/report_page_text.cc from the build folder "
        "and build again",
        kRejected);
    return false;
  }
  return WriteOutputFile(page, diagnostics, [json](TextWriter& out) { WritePage(json, out); });
}

}  // namespace hlokit::cli
