// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report_page.h"

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {

absl::Status WriteReportPage(const std::string& path, std::string_view json) {
  if (kReportPageBefore == nullptr) {
    return absl::UnavailableError(
        "this program was built without the report page: node and npm were not there, or could not fetch its "
        "libraries; install them (tools/install-deps page), remove generated/report_page_text.cc from the build folder "
        "and build again");
  }
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path);
  if (!file.ok()) return file.status();
  TextWriter& out = (*file)->writer();
  out << kReportPageBefore;
  // The data must not contain text that ends its element.
  while (!json.empty()) {
    const size_t angle = std::min(json.find('<'), json.size());
    out << json.substr(0, angle);
    if (angle < json.size()) out << "\\u003c";
    json.remove_prefix(std::min(angle + 1, json.size()));
  }
  out << kReportPageAfter;
  return (*file)->Commit();
}

}  // namespace hlokit::cli
