// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/reports.h"

#include <algorithm>

#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"

namespace hlokit {
namespace {

std::string Milliseconds(double ms) { return FormatFixed(ms, 3); }

std::string Padded(std::string_view text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + std::string(text);
}

}  // namespace

absl::Status TimePasses::RunBeforePass(const PassRun&, const Module&) {
  start_ = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

absl::Status TimePasses::RunAfterPass(const PassRun& run, const Module&, bool changed) {
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
  table_.CountRun(run, changed).ms += elapsed.count();
  return absl::OkStatus();
}

std::string TimePasses::Text() const {
  std::vector<Row> rows = table_.rows();
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ms > b.ms; });
  double total = 0;
  for (const Row& row : rows) total += row.ms;
  std::string text = "        ms      %  runs  changed  pass\n";
  for (const Row& row : rows) {
    const std::string share = FormatFixed(total > 0 ? 100 * row.ms / total : 0, 1);
    StrAppend(&text, Padded(Milliseconds(row.ms), 10), Padded(share, 7), Padded(StrCat(row.runs), 6),
              Padded(StrCat(row.changed), 9), "  ", row.name, "\n");
  }
  StrAppend(&text, Padded(Milliseconds(total), 10), "                        total\n");
  return text;
}

std::string TimePasses::Json() const {
  double total = 0;
  for (const Row& row : table_.rows()) total += row.ms;
  std::string text;
  TextWriter out(&text);
  JsonWriter json(&out, JsonLayout::kSpaced);
  json.BeginObject().Key("total_us").Raw() << Milliseconds(1000 * total);
  json.Key("passes").BeginArray();
  for (const Row& row : table_.rows()) {
    json.Line("\n  ").BeginObject().Member("pass", row.name).Member("runs", row.runs).Member("changed", row.changed);
    json.Key("time_us").Raw() << Milliseconds(1000 * row.ms);
    json.EndObject();
  }
  json.EndArray("\n").EndObject();
  out << '\n';
  out.Flush();
  return text;
}

absl::Status PassStatistics::RunBeforePass(const PassRun& run, const Module& module) {
  instructions_before_ = static_cast<int64_t>(module.instruction_count());
  counts_before_ = run.pass.statistics();
  return absl::OkStatus();
}

absl::Status PassStatistics::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  Row& row = table_.CountRun(run, changed);
  row.instructions += static_cast<int64_t>(module.instruction_count()) - instructions_before_;
  for (size_t i = 0; i < run.pass.statistics().size(); ++i) {
    const Pass::Statistic& now = run.pass.statistics()[i];
    const int64_t before = i < counts_before_.size() ? counts_before_[i].count : 0;
    if (now.count == before) continue;
    const auto found = std::find_if(row.counts.begin(), row.counts.end(),
                                    [&](const Pass::Statistic& s) { return s.what == now.what; });
    if (found == row.counts.end()) {
      row.counts.push_back({now.what, now.count - before});
    } else {
      found->count += now.count - before;
    }
  }
  return absl::OkStatus();
}

std::string PassStatistics::Text() const {
  std::string text;
  for (const Row& row : table_.rows()) {
    StrAppend(&text, row.name, ": ", Counted(row.runs, "run, ", "runs, "), row.changed, " changed, ",
              row.instructions > 0 ? "+" : "", row.instructions, " instructions\n");
    for (const Pass::Statistic& count : row.counts) {
      StrAppend(&text, Padded(StrCat(count.count), 10), "  ", count.what, "\n");
    }
  }
  return text;
}

std::string PassStatistics::Json() const {
  std::string text;
  TextWriter out(&text);
  JsonWriter json(&out, JsonLayout::kSpaced);
  json.BeginArray();
  for (const Row& row : table_.rows()) {
    json.Line("\n  ").BeginObject().Member("pass", row.name).Member("runs", row.runs).Member("changed", row.changed);
    json.Member("instructions", row.instructions).Key("counts").BeginObject();
    for (const Pass::Statistic& count : row.counts) json.Member(count.what, count.count);
    json.EndObject().EndObject();
  }
  json.EndArray("\n");
  out << '\n';
  out.Flush();
  return text;
}

bool OptBisect::ShouldRun(const PassRun& run) {
  const bool runs = ++passes_seen_ <= limit_;
  rewrite_limit_ = {};
  if (passes_seen_ == limit_) rewrite_limit_.limit = rewrites_;
  write_(StrCat("BISECT: ", runs ? "running" : "NOT running", " pass (", passes_seen_, ") ", run.info.name, "\n"));
  return runs;
}

}  // namespace hlokit
