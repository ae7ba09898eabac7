// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/report_comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "simulator/report/number_text.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kComparedFormat = "hlokit report 3";
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

struct Member {
  const char* object;  // the object that it is in; null: the report
  const char* key;
  Json::value_t type;
};
// What reports have, and the comparison reads.
constexpr Member kMembers[] = {{nullptr, "title", Json::value_t::string},
                               {nullptr, "device", Json::value_t::string},
                               {nullptr, "topology", Json::value_t::string},
                               {nullptr, "step_time_us", Json::value_t::number_float},
                               {nullptr, "device_time_us", Json::value_t::number_float},
                               {nullptr, "hbm_bytes", Json::value_t::number_float},
                               {nullptr, "interconnect_bytes", Json::value_t::number_float},
                               {nullptr, "utilization", Json::value_t::object},
                               {"utilization", "duty_cycle", Json::value_t::number_float},
                               {"utilization", "flops_of_peak", Json::value_t::number_float},
                               {"utilization", "hbm_bandwidth_of_peak", Json::value_t::number_float},
                               {nullptr, "gaps", Json::value_t::object},
                               {"gaps", "time_us", Json::value_t::number_float},
                               {nullptr, "memory", Json::value_t::object},
                               {"memory", "peak_bytes", Json::value_t::number_float},
                               {"memory", "live_by_scope", Json::value_t::array},
                               {"memory", "live_by_source", Json::value_t::array},
                               {nullptr, "breakdown", Json::value_t::array},
                               {nullptr, "scopes", Json::value_t::array},
                               {nullptr, "sources", Json::value_t::array},
                               {nullptr, "ops", Json::value_t::array},
                               {nullptr, "host", Json::value_t::object},
                               {nullptr, "timeline", Json::value_t::object}};

std::string_view NameOf(Json::value_t type) {
  switch (type) {
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_float:
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "a number";
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "null";
}

// Returns what is wrong with a member of a report, or "".
std::string MistakeIn(const Json& report) {
  for (const Member& member : kMembers) {
    const std::string name = StrCat("`", member.object == nullptr ? "" : member.object,
                                    member.object == nullptr ? "" : ".", member.key, "`");
    const Json& object = member.object == nullptr ? report : report[member.object];
    const auto found = object.find(member.key);
    if (found == object.end()) return StrCat("a report has ", name, ", which is missing here");
    if (NameOf(found->type()) != NameOf(member.type)) {
      return StrCat(name, ": expected ", NameOf(member.type), ", found ", NameOf(found->type()));
    }
    if (member.type != Json::value_t::array) continue;
    for (const Json& entry : *found) {
      if (!entry.is_object())
        return StrCat(name, ": expected a list of objects, found ", NameOf(entry.type()), " in it");
    }
  }
  return "";
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
  PrintCell(format(row.before), kWidth, out);
  PrintCell(format(row.after), kWidth, out);
  PrintCell(Change(row), kWidth, out);
  *out << (row.name.empty() ? std::string_view("(none named)") : std::string_view(row.name)) << "\n";
}

void PrintHead(std::string_view what, TextWriter* out) {
  *out << "\n";
  for (std::string_view head : {"before", "after", "change"}) PrintCell(head, kWidth, out);
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

std::string Seconds(double us) { return FormatSeconds(us * 1e-6); }
std::string Bytes(double bytes) { return FormatBytes(bytes); }
std::string Fraction(double part) { return StrCat(FormatFixed(100 * part, 1), " %"); }

std::string Label(const Json& report) {
  return StrCat(TextIn(report, "title"), " on ", TextIn(report, "device"), ":", TextIn(report, "topology"));
}

}  // namespace

absl::StatusOr<Json> ParseReport(std::string_view text) {
  Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded() || !report.is_object()) {
    return absl::InvalidArgumentError("expected a report.json, as --report writes it: this is no JSON object");
  }
  if (const std::string format = TextIn(report, "format"); format != kComparedFormat) {
    return absl::InvalidArgumentError(StrCat("expected the format `", kComparedFormat, "`, found `", format, "`"));
  }
  if (const std::string mistake = MistakeIn(report); !mistake.empty()) return absl::InvalidArgumentError(mistake);
  return report;
}

void PrintReportComparison(const Json& before, const Json& after, size_t top, TextWriter* out) {
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

std::string ReportComparisonDocument(Json before, Json after) {
  Json both = Json::object();
  both["format"] = "hlokit comparison 1";
  both["before"] = std::move(before);
  both["after"] = std::move(after);
  return both.dump() + "\n";
}

}  // namespace hlokit::tpu
