// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/pages/report_comparison.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "simulator/export/report_comparison.h"
#include "tools/cli/pages/web_page.h"

namespace hlokit::cli {

namespace {

// Returns nullopt after an error, which is printed.
std::optional<nlohmann::ordered_json> ReadReport(const std::string& path, DiagnosticReporter* diagnostics) {
  std::error_code error;
  const std::string file =
      std::filesystem::is_directory(path, error) ? (std::filesystem::path(path) / "report.json").string() : path;
  const std::vector<InputPart> parts = diagnostics->Read(file);
  if (parts.empty()) return std::nullopt;
  absl::StatusOr<nlohmann::ordered_json> report = tpu::ParseReport(parts[0].source->text());
  if (report.ok()) return *std::move(report);
  diagnostics->ShowError(file, std::string(report.status().message()), kRejected);
  return std::nullopt;
}

}  // namespace

void CompareReports(const ReportComparisonOptions& options, DiagnosticReporter* diagnostics, TextWriter* out) {
  std::optional<nlohmann::ordered_json> before = ReadReport(options.before, diagnostics);
  std::optional<nlohmann::ordered_json> after = ReadReport(options.after, diagnostics);
  if (!before || !after) return;
  tpu::PrintReportComparison(*before, *after, options.top, out);
  if (options.page.empty()) return;
  WriteReportPage(options.page, tpu::ReportComparisonDocument(*std::move(before), *std::move(after)), "", diagnostics);
}

}  // namespace hlokit::cli
