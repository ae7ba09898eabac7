#include "interp/runtime/metrics.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "ir/str_cat.h"

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
      return Format("%.2f", value);
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

// Six significant digits, as an output stream writes a double.
std::string FormatRate(double rate) { return Format("%g", rate); }

const std::vector<double>& DefaultPercentiles() {
  static const std::vector<double> percentiles = {0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99};
  return percentiles;
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
  return Format("%.2f%s", bytes, kUnits[unit]);
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

void Metrics::AddSampleAt(std::string_view metric, MetricKind kind, int64_t time_ns, double value) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = metrics_.find(metric);
  if (it == metrics_.end()) it = metrics_.emplace(metric, MetricData{kind, 0, 0, {}}).first;
  MetricData& m = it->second;
  ++m.total_samples;
  m.accumulator += value;
  m.samples.push_back({time_ns, value});
  if (m.samples.size() > max_samples_) m.samples.pop_front();
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

std::vector<std::string> Metrics::metric_names() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& entry : metrics_) names.push_back(entry.first);
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

std::string Metrics::Report() const { return Report(DefaultPercentiles()); }

std::string Metrics::Report(const std::vector<double>& percentiles) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string out;
  for (const auto& [name, m] : metrics_) {
    if (m.samples.empty()) continue;
    StrAppend(&out, "Metric: ", name, "\n  TotalSamples: ", m.total_samples,
              "\n  Accumulator: ", FormatSample(m.kind, m.accumulator), "\n");
    const int64_t passed = m.samples.back().time_ns - m.samples.front().time_ns;
    if (passed > 0) {
      double sum = 0;
      for (const MetricSample& s : m.samples) sum += s.value;
      const double seconds = static_cast<double>(passed) * 1e-9;
      StrAppend(&out, "  ValueRate: ", FormatSample(m.kind, sum / seconds),
                " / second\n  Rate: ", FormatRate(static_cast<double>(m.samples.size()) / seconds), " / second\n");
    }
    out += "  Percentiles: ";
    const std::vector<double> sorted = Sorted(m);
    for (size_t i = 0; i < percentiles.size(); ++i) {
      StrAppend(&out, i == 0 ? "" : "; ", FormatRate(percentiles[i] * 100),
                "%=", FormatSample(m.kind, AtPercentile(sorted, percentiles[i])));
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
  std::string out = "{\n  \"metrics\": {";
  const char* separator = "\n";
  for (const auto& [name, m] : metrics_) {
    if (m.samples.empty()) continue;
    const std::vector<double> sorted = Sorted(m);
    StrAppend(&out, separator, "    \"", name, "\": {\"kind\": \"",
              m.kind == MetricKind::kTime    ? "time_ns"
              : m.kind == MetricKind::kBytes ? "bytes"
                                             : "value",
              "\", \"total_samples\": ", m.total_samples, ", \"accumulator\": ", Format("%.17g", m.accumulator),
              ", \"percentiles\": {");
    const char* comma = "";
    for (double p : DefaultPercentiles()) {
      StrAppend(&out, comma, "\"", FormatRate(p * 100), "\": ", Format("%.17g", AtPercentile(sorted, p)));
      comma = ", ";
    }
    out += "}}";
    separator = ",\n";
  }
  out += "\n  },\n  \"counters\": {";
  separator = "\n";
  for (const auto& [name, value] : counters_) {
    if (value == 0) continue;
    StrAppend(&out, separator, "    \"", name, "\": ", value);
    separator = ",\n";
  }
  return out + "\n  }\n}\n";
}

}  // namespace hlokit::runtime
