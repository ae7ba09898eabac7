// SPDX-License-Identifier: Apache-2.0
// Metrics and counters of a session, and the report in PyTorch/XLA's form.
//
// A metric keeps its last 1024 samples and the sum and number of all; a counter is a number. The report sorts names,
// metrics before counters, so that equal contents print identically.
#ifndef HLOKIT_IO_METRICS_METRICS_H_
#define HLOKIT_IO_METRICS_METRICS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlokit::runtime {

enum class MetricKind : uint8_t { kValue, kBytes, kTime };  // times are nanoseconds

struct MetricSample {
  int64_t time_ns = 0;
  double value = 0;
};

struct MetricData {
  MetricKind kind = MetricKind::kValue;
  int64_t total_samples = 0;
  double accumulator = 0;
  std::deque<MetricSample> samples;  // the most recent ones, oldest first
};

struct MetricsOptions {
  size_t max_samples = 1024;  // samples kept per metric
  // Fractions, as the report lists them.
  std::vector<double> percentiles = {0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99};
};

class Metrics {
 public:
  explicit Metrics(MetricsOptions options = {}) : options_(std::move(options)) {}

  void Add(std::string_view counter, int64_t n = 1);
  void Set(std::string_view counter, int64_t value);
  void AddSample(std::string_view metric, MetricKind kind, double value);
  void AddSampleAt(std::string_view metric, MetricKind kind, int64_t time_ns, double value);

  std::optional<int64_t> counter(std::string_view name) const;
  std::optional<MetricData> metric(std::string_view name) const;
  std::vector<std::string> counter_names() const;
  void ClearCounters();
  void ClearMetrics();

  // Returns "Metric: ..." and "Counter: ..." blocks.
  std::string Report() const;
  // Returns {"metrics": {NAME: {"kind", "total_samples", "accumulator", "value_rate", "rate", "percentiles"}},
  // "counters": {}} without a newline at the end. Times are nanoseconds; rates are per second, absent where the report
  // has none.
  std::string JsonReport() const;

 private:
  mutable std::mutex mutex_;
  const MetricsOptions options_;
  std::map<std::string, MetricData, std::less<>> metrics_;
  std::map<std::string, int64_t, std::less<>> counters_;
};

// Returns "01m02s003ms004.005us": starts at the first unit that is at least 1; units are floored.
std::string FormatTime(double nanoseconds);
// Returns "468.00MB".
std::string FormatBytes(double bytes);

// Adds the duration of a block as a sample.
class TimedSection {
 public:
  TimedSection(Metrics* metrics, std::string_view name)
      : metrics_(metrics), name_(name), start_(std::chrono::steady_clock::now()) {}
  ~TimedSection() {
    const auto passed = std::chrono::steady_clock::now() - start_;
    metrics_->AddSample(name_, MetricKind::kTime,
                        static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count()));
  }
  TimedSection(const TimedSection&) = delete;
  TimedSection& operator=(const TimedSection&) = delete;

 private:
  Metrics* metrics_;
  std::string_view name_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_IO_METRICS_METRICS_H_
