// SPDX-License-Identifier: Apache-2.0
#include "io/metrics/metrics.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::runtime {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

template <typename... A>
std::string Format(const char* format, A... args) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, args...);
  return buffer;
}

std::string FormatSample(MetricKind kind, double value) {
  switch (kind) {
    case MetricKind::kValue:
      return FormatFixed(value, 2);
    case MetricKind::kBytes:
      return FormatBytes(value);
    case MetricKind::kTime:
      return FormatTime(value);
  }
  return "";
}

std::vector<double> Sorted(const MetricData& m) {
  std::vector<double> values;
  values.reserve(m.samples.size());
  for (const MetricSample& s : m.samples) values.push_back(s.value);
  std::sort(values.begin(), values.end());
  return values;
}

double AtPercentile(const std::vector<double>& sorted, double p) {
  const size_t i = static_cast<size_t>(p * static_cast<double>(sorted.size()));
  return sorted[std::min(i, sorted.size() - 1)];
}

// Returns six significant digits, like an output stream.
std::string FormatRate(double rate) { return FormatDouble(rate, 6); }

// Rates per second of the samples kept: of their sum and of their number. Nullopt if no time passed.
struct Rates {
  double value;
  double samples;
};
std::optional<Rates> RatesOf(const MetricData& m) {
  const int64_t passed = m.samples.back().time_ns - m.samples.front().time_ns;
  if (passed <= 0) return std::nullopt;
  double sum = 0;
  for (const MetricSample& s : m.samples) sum += s.value;
  const double seconds = static_cast<double>(passed) * 1e-9;
  return Rates{sum / seconds, static_cast<double>(m.samples.size()) / seconds};
}

const char* KindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kValue:
      return "value";
    case MetricKind::kBytes:
      return "bytes";
    case MetricKind::kTime:
      return "time";
  }
  return "";
}

}  // namespace

std::string FormatTime(double nanoseconds) {
  struct Part {
    const char* suffix;
    int64_t in_ns;
    int width;
  };
  static constexpr Part kParts[] = {{"d", 86400000000000, 2},
                                    {"h", 3600000000000, 2},
                                    {"m", 60000000000, 2},
                                    {"s", 1000000000, 2},
                                    {"ms", 1000000, 3}};
  int64_t rest = static_cast<int64_t>(std::max(0.0, nanoseconds));
  std::string out;
  for (const Part& part : kParts) {
    const int64_t count = rest / part.in_ns;
    rest %= part.in_ns;
    if (count == 0 && out.empty()) continue;
    out += Format("%0*" PRId64 "%s", part.width, count, part.suffix);
  }
  return out + Format("%03" PRId64 ".%03" PRId64 "us", rest / 1000, rest % 1000);
}

std::string FormatBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return StrCat(FormatFixed(bytes, 2), kUnits[unit]);
}

void Metrics::Add(std::string_view counter, int64_t n) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = counters_.find(counter);
  if (it != counters_.end()) {
    it->second += n;
  } else {
    counters_.emplace(counter, n);
  }
}

void Metrics::Set(std::string_view counter, int64_t value) {
  std::lock_guard<std::mutex> lock(mutex_);
  counters_.insert_or_assign(std::string(counter), value);
}

void Metrics::AddSample(std::string_view metric, MetricKind kind, double value) {
  AddSampleAt(metric, kind, Now(), value);
}

// Called by destructors, which may run because there is no memory: a sample for which there is none is left out.
void Metrics::AddSampleAt(std::string_view metric, MetricKind kind, int64_t time_ns, double value) {
  std::lock_guard<std::mutex> lock(mutex_);
  try {
    auto it = metrics_.find(metric);
    if (it == metrics_.end()) it = metrics_.emplace(metric, MetricData{kind, 0, 0, {}}).first;
    MetricData& m = it->second;
    m.samples.push_back({time_ns, value});
    ++m.total_samples;
    m.accumulator += value;
    if (m.samples.size() > options_.max_samples) m.samples.pop_front();
  } catch (const std::bad_alloc&) {
  }
}

std::optional<int64_t> Metrics::counter(std::string_view name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = counters_.find(name);
  if (it == counters_.end() || it->second == 0) return std::nullopt;
  return it->second;
}

std::optional<MetricData> Metrics::metric(std::string_view name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = metrics_.find(name);
  if (it == metrics_.end()) return std::nullopt;
  return it->second;
}

std::vector<std::string> Metrics::counter_names() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, value] : counters_) {
    if (value != 0) names.push_back(name);
  }
  return names;
}

void Metrics::ClearCounters() {
  std::lock_guard<std::mutex> lock(mutex_);
  counters_.clear();
}

void Metrics::ClearMetrics() {
  std::lock_guard<std::mutex> lock(mutex_);
  metrics_.clear();
}

std::string Metrics::Report() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string out;
  for (const auto& [name, m] : metrics_) {
    if (m.samples.empty()) continue;
    StrAppend(&out, "Metric: ", name, "\n  TotalSamples: ", m.total_samples,
              "\n  Accumulator: ", FormatSample(m.kind, m.accumulator), "\n");
    if (const std::optional<Rates> rates = RatesOf(m)) {
      StrAppend(&out, "  ValueRate: ", FormatSample(m.kind, rates->value),
                " / second\n  Rate: ", FormatRate(rates->samples), " / second\n");
    }
    out += "  Percentiles: ";
    const std::vector<double> sorted = Sorted(m);
    const char* separator = "";
    for (double p : options_.percentiles) {
      StrAppend(&out, separator, FormatRate(p * 100), "%=", FormatSample(m.kind, AtPercentile(sorted, p)));
      separator = "; ";
    }
    out += "\n";
  }
  for (const auto& [name, value] : counters_) {
    if (value != 0) StrAppend(&out, "Counter: ", name, "\n  Value: ", value, "\n");
  }
  return out;
}

std::string Metrics::JsonReport() const {
  std::lock_guard<std::mutex> lock(mutex_);
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const auto& [name, m] : metrics_) {
    if (m.samples.empty()) continue;
    nlohmann::ordered_json& entry = metrics[name];
    entry["kind"] = KindName(m.kind);
    entry["total_samples"] = m.total_samples;
    entry["accumulator"] = m.accumulator;
    if (const std::optional<Rates> rates = RatesOf(m)) {
      entry["value_rate"] = rates->value;
      entry["rate"] = rates->samples;
    }
    const std::vector<double> sorted = Sorted(m);
    nlohmann::ordered_json& percentiles = entry["percentiles"] = nlohmann::ordered_json::object();
    for (double p : options_.percentiles) percentiles[FormatRate(p * 100)] = AtPercentile(sorted, p);
  }
  nlohmann::ordered_json counters = nlohmann::ordered_json::object();
  for (const auto& [name, value] : counters_) {
    if (value != 0) counters[name] = value;
  }
  const nlohmann::ordered_json report = {{"metrics", std::move(metrics)}, {"counters", std::move(counters)}};
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hlokit::runtime
