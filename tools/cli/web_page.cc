// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/web_page.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {
namespace {

void PrintPage(std::string_view json, TextWriter& out) {
  out << kReportPage.before;
  // The data must not contain text that ends its element.
  while (!json.empty()) {
    const size_t angle = std::min(json.find('<'), json.size());
    out << json.substr(0, angle);
    if (angle < json.size()) out << "\\u003c";
    json.remove_prefix(std::min(angle + 1, json.size()));
  }
  out << kReportPage.after;
}

// Prints an error and returns false if the build has no page.
bool HasPage(const WebPage& page, const std::string& path, DiagnosticReporter* diagnostics) {
  if (page.before != nullptr) return true;
  diagnostics->ShowError(path,
                         "this program was built without its pages: node and npm were not there, or could not fetch "
                         "their libraries; install them (tools/install-deps page), remove "
                         "generated/report_page_text.cc from the build directory and build again",
                         kRejected);
  return false;
}

// Returns the text in the zlib format; empty if the library fails.
std::string Deflated(std::string_view text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                               reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_DEFAULT_COMPRESSION);
  bytes.resize(status == Z_OK ? size : 0);
  return bytes;
}

}  // namespace

bool WriteReportPage(const std::filesystem::path& directory, std::string_view json, DiagnosticReporter* diagnostics) {
  if (!CreateDirectories(directory, diagnostics)) return false;
  if (!WriteOutputFile(directory / "report.json", diagnostics, [json](TextWriter& out) { out << json; })) return false;
  const std::string page = directory / "index.html";
  if (!HasPage(kReportPage, page, diagnostics)) return false;
  return WriteOutputFile(page, diagnostics, [json](TextWriter& out) { PrintPage(json, out); });
}

bool WriteViewPage(const std::string& path, std::string_view json, DiagnosticReporter* diagnostics) {
  if (!HasPage(kViewPage, path, diagnostics)) return false;
  const std::string bytes = Deflated(json);
  if (bytes.empty()) {
    diagnostics->ShowError(path, "the data of the page cannot be compressed", kInternal);
    return false;
  }
  std::string text;
  absl::Base64Escape(bytes, &text);
  return WriteOutputFile(path, diagnostics,
                         [&text](TextWriter& out) { out << kViewPage.before << text << kViewPage.after; });
}

}  // namespace hlokit::cli
