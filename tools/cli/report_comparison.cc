// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report_comparison.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/tpu/report/number_text.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tools/cli/web_page.h"

namespace hlokit::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "hlokit report 3";
constexpr size_t kWidth = 12;

// Members of other types count as absent.
double NumberIn(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string TextIn(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
const Json& MemberOf(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : none;
}

// Returns nullopt after an error, which is printed.
std::optional<Json> ReadReport(const std::string& path, DiagnosticReporter* diagnostics) {
  std::error_code error;
  const std::string file =
      std::filesystem::is_directory(path, error) ? (std::filesystem::path(path) / "report.json").string() : path;
  const std::vector<InputPart> parts = diagnostics->Read(file);
  if (parts.empty()) return std::nullopt;
  Json report = Json::parse(parts[0].source->text(), nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded() || !report.is_object()) {
    diagnostics->ShowError(file, "expected a report.json, as --report writes it: this is no JSON object", kRejected);
    return std::nullopt;
  }
  if (const std::string format = TextIn(report, "format"); format != kFormat) {
    diagnostics->ShowError(file, StrCat("expected the format `", kFormat, "`, found `", format, "`"), kRejected);
    return std::nullopt;
  }
  return report;
}

struct Row {
  std::string name;
  double before = 0;
  double after = 0;
};

std::string Change(const Row& row) {
  if (row.before == row.after) return "=";
  if (row.before == 0) return "new";
  if (row.after == 0) return "gone";
  const double change = 100 * (row.after / row.before - 1);
  return StrCat(change > 0 ? "+" : "", FormatFixed(change, 1), " %");
}

void PrintRow(const Row& row, const std::function<std::string(double)>& format, TextWriter* out) {
  tpu::PrintCell(format(row.before), kWidth, out);
  tpu::PrintCell(format(row.after), kWidth, out);
  tpu::PrintCell(Change(row), kWidth, out);
  *out << (row.name.empty() ? std::string_view("(none named)") : std::string_view(row.name)) << "\n";
}

void PrintHead(std::string_view what, TextWriter* out) {
  *out << "\n";
  for (std::string_view head : {"before", "after", "change"}) tpu::PrintCell(head, kWidth, out);
  *out << what << "\n";
}

// Sums of `value` over the objects of a list, by name; the largest differences first.
std::vector<Row> RowsOf(const Json& before, const Json& after, const std::function<std::string(const Json&)>& name,
                        const char* value) {
  std::map<std::string, Row> rows;
  for (const auto& [list, side] : {std::pair(&before, &Row::before), std::pair(&after, &Row::after)}) {
    if (!list->is_array()) continue;
    for (const Json& entry : *list) {
      std::string key = name(entry);
      Row& row = rows[key];
      row.*side += NumberIn(entry, value);
      row.name = std::move(key);
    }
  }
  std::vector<Row> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  std::stable_sort(result.begin(), result.end(), [](const Row& a, const Row& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  return result;
}

void PrintRows(std::string_view what, const std::vector<Row>& rows, size_t top,
               const std::function<std::string(double)>& format, TextWriter* out) {
  if (rows.empty()) return;
  PrintHead(what, out);
  for (size_t k = 0; k < std::min(rows.size(), top); ++k) PrintRow(rows[k], format, out);
  if (rows.size() > top) *out << "... " << static_cast<int64_t>(rows.size() - top) << " more\n";
}

std::string Seconds(double us) { return tpu::FormatSeconds(us * 1e-6); }
std::string Bytes(double bytes) { return tpu::FormatBytes(bytes); }
std::string Fraction(double part) { return StrCat(FormatFixed(100 * part, 1), " %"); }

std::string Label(const Json& report) {
  return StrCat(TextIn(report, "title"), " on ", TextIn(report, "device"), ":", TextIn(report, "topology"));
}

void PrintComparison(const Json& before, const Json& after, size_t top, TextWriter* out) {
  *out << "before  " << Label(before) << "\nafter   " << Label(after) << "\n";
  PrintHead("", out);
  const auto both = [&](std::string name, const char* object, const char* key,
                        const std::function<std::string(double)>& format) {
    const Json& b = object == nullptr ? before : MemberOf(before, object);
    const Json& a = object == nullptr ? after : MemberOf(after, object);
    PrintRow({std::move(name), NumberIn(b, key), NumberIn(a, key)}, format, out);
  };
  both("step time", nullptr, "step_time_us", Seconds);
  both("device time", nullptr, "device_time_us", Seconds);
  both("duty cycle", "utilization", "duty_cycle", Fraction);
  both("of the peak FLOP/s", "utilization", "flops_of_peak", Fraction);
  both("of the HBM bandwidth", "utilization", "hbm_bandwidth_of_peak", Fraction);
  both("gaps on the device, all steps", "gaps", "time_us", Seconds);
  both("HBM traffic", nullptr, "hbm_bytes", Bytes);
  both("bytes over links", nullptr, "interconnect_bytes", Bytes);
  both("HBM peak", "memory", "peak_bytes", Bytes);
  const auto name = [](const char* key) { return [key](const Json& entry) { return TextIn(entry, key); }; };
  const auto list = [&](const char* key) { return std::pair(MemberOf(before, key), MemberOf(after, key)); };
  const auto [parts_before, parts_after] = list("breakdown");
  PrintRows("part of the step", RowsOf(parts_before, parts_after, name("name"), "time_us"), top, Seconds, out);
  const auto [scopes_before, scopes_after] = list("scopes");
  PrintRows("scope", RowsOf(scopes_before, scopes_after, name("scope"), "time_us"), top, Seconds, out);
  const auto [sources_before, sources_after] = list("sources");
  PrintRows("source line", RowsOf(sources_before, sources_after, name("source"), "time_us"), top, Seconds, out);
  const auto [ops_before, ops_after] = list("ops");
  PrintRows("operation", RowsOf(ops_before, ops_after, name("name"), "time_us"), top, Seconds, out);
  const Json& memory_before = MemberOf(MemberOf(before, "memory"), "live_by_scope");
  const Json& memory_after = MemberOf(MemberOf(after, "memory"), "live_by_scope");
  PrintRows("scope, live bytes at the peak", RowsOf(memory_before, memory_after, name("name"), "bytes"), top, Bytes,
            out);
  const Json& lines_before = MemberOf(MemberOf(before, "memory"), "live_by_source");
  const Json& lines_after = MemberOf(MemberOf(after, "memory"), "live_by_source");
  PrintRows("source line, live bytes at the peak", RowsOf(lines_before, lines_after, name("name"), "bytes"), top, Bytes,
            out);
}

}  // namespace

void CompareReports(const ReportComparisonOptions& options, DiagnosticReporter* diagnostics, TextWriter* out) {
  std::optional<Json> before = ReadReport(options.before, diagnostics);
  std::optional<Json> after = ReadReport(options.after, diagnostics);
  if (!before || !after) return;
  PrintComparison(*before, *after, options.top, out);
  if (options.page.empty()) return;
  Json both = Json::object();
  both["format"] = "hlokit comparison 1";
  both["before"] = *std::move(before);
  both["after"] = *std::move(after);
  WriteReportPage(options.page, both.dump() + "\n", diagnostics);
}

}  // namespace hlokit::cli
