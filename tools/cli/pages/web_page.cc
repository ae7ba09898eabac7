// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/pages/web_page.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "ir/core/str_cat.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {
namespace {

// Prints JSON as an element.
void PrintData(std::string_view json, TextWriter& out) {
  out << "<script type=\"application/json\" id=\"data\">";
  // The data must not contain text that ends its element.
  while (!json.empty()) {
    const size_t angle = std::min(json.find('<'), json.size());
    out << json.substr(0, angle);
    if (angle < json.size()) out << "\\u003c";
    json.remove_prefix(std::min(angle + 1, json.size()));
  }
  out << "</script>\n";
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

// Returns the elements of graphs: their data and the program that lays them out. Prints an error and returns an empty
// text if they cannot be compressed.
std::string GraphElements(const std::string& path, std::string_view graphs, DiagnosticReporter* diagnostics) {
  const std::string bytes = Deflated(graphs);
  if (bytes.empty()) {
    diagnostics->ShowError(path, "the data of the page cannot be compressed", kInternal);
    return "";
  }
  return StrCat("<script type=\"application/octet-stream\" id=\"graph-data\">", absl::Base64Escape(bytes),
                "</script>\n", kLayoutWorker);
}

}  // namespace

bool WriteReportPage(const std::filesystem::path& directory, std::string_view json, std::string_view graphs,
                     DiagnosticReporter* diagnostics) {
  if (!CreateDirectories(directory, diagnostics)) return false;
  if (!WriteOutputFile(directory / "report.json", diagnostics, [json](TextWriter& out) { out << json; })) return false;
  const std::string page = directory / "index.html";
  if (!HasPage(kReportPage, page, diagnostics)) return false;
  std::string elements;
  if (!graphs.empty()) {
    elements = GraphElements(page, graphs, diagnostics);
    if (elements.empty()) return false;
  }
  return WriteOutputFile(page, diagnostics, [json, &elements](TextWriter& out) {
    out << kReportPage.before;
    PrintData(json, out);
    out << elements << kReportPage.after;
  });
}

bool WriteViewPage(const std::string& path, std::string_view graphs, DiagnosticReporter* diagnostics) {
  if (!HasPage(kViewPage, path, diagnostics)) return false;
  const std::string elements = GraphElements(path, graphs, diagnostics);
  if (elements.empty()) return false;
  return WriteOutputFile(path, diagnostics,
                         [&elements](TextWriter& out) { out << kViewPage.before << elements << kViewPage.after; });
}

}  // namespace hlokit::cli
