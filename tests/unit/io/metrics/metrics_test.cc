// SPDX-License-Identifier: Apache-2.0
#include "io/metrics/metrics.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hlokit::runtime {
namespace {

TEST(MetricsTest, TimesAreFlooredPartByPart) {
  EXPECT_EQ(FormatTime(712389), "712.389us");
  EXPECT_EQ(FormatTime(1032778), "001ms032.778us");
  EXPECT_EQ(FormatTime(1.5e9), "01s500ms000.000us");
  EXPECT_EQ(FormatTime(375.595691023e9), "06m15s595ms691.023us");
  EXPECT_EQ(FormatTime(2879.8e9), "47m59s800ms000.000us");
  EXPECT_EQ(FormatTime(3), "000.003us");
}

TEST(MetricsTest, BytesHaveTheLargestUnitThatFits) {
  EXPECT_EQ(FormatBytes(12), "12.00B");
  EXPECT_EQ(FormatBytes(468.0 * 1024 * 1024), "468.00MB");
}

TEST(MetricsTest, ReportIsSortedAndHasRatesFromTwoSamplesOn) {
  Metrics m(MetricsOptions{.percentiles = {0.5}});
  m.AddSampleAt("TensorsGraphSize", MetricKind::kValue, 0, 8);
  m.AddSampleAt("TensorsGraphSize", MetricKind::kValue, 1000000000, 4);
  m.AddSampleAt("CompileTime", MetricKind::kTime, 5, 1032778);
  m.Add("MarkStep", 3);
  m.Add("CachedCompile");
  m.Set("Nothing", 0);
  EXPECT_EQ(m.Report(),
            "Metric: CompileTime\n  TotalSamples: 1\n  Accumulator: 001ms032.778us\n  Percentiles: 50%=001ms032.778us\n"
            "Metric: TensorsGraphSize\n  TotalSamples: 2\n  Accumulator: 12.00\n  ValueRate: 12.00 / second\n"
            "  Rate: 2 / second\n  Percentiles: 50%=8.00\n"
            "Counter: CachedCompile\n  Value: 1\nCounter: MarkStep\n  Value: 3\n");
  m.ClearCounters();
  EXPECT_EQ(m.counter("MarkStep"), std::nullopt);
}

TEST(MetricsTest, KeepsTheLastSamplesAndAllSums) {
  Metrics m(MetricsOptions{.max_samples = 2});
  for (int i = 1; i <= 4; ++i) m.AddSampleAt("x", MetricKind::kValue, i, i);
  const std::optional<MetricData> x = m.metric("x");
  EXPECT_EQ(x->total_samples, 4);
  EXPECT_EQ(x->accumulator, 10);
  EXPECT_EQ(x->samples.size(), 2u);
}

TEST(MetricsTest, JsonHasWhatTheReportHas) {
  Metrics m(MetricsOptions{.percentiles = {0.5, 0.999}});
  m.AddSampleAt("CompileTime", MetricKind::kTime, 0, 1032778);
  m.AddSampleAt("CompileTime", MetricKind::kTime, 500000000, 1000);
  m.AddSampleAt("OutboundData", MetricKind::kBytes, 0, 12);
  m.Add("MarkStep", 3);
  m.Set("Nothing", 0);
  const nlohmann::json report = nlohmann::json::parse(m.JsonReport());
  EXPECT_EQ(report, nlohmann::json::parse(R"({
    "metrics": {
      "CompileTime": {"kind": "time", "total_samples": 2, "accumulator": 1033778.0, "value_rate": 2067556.0,
                      "rate": 4.0, "percentiles": {"50": 1032778.0, "99.9": 1032778.0}},
      "OutboundData": {"kind": "bytes", "total_samples": 1, "accumulator": 12.0,
                       "percentiles": {"50": 12.0, "99.9": 12.0}}},
    "counters": {"MarkStep": 3}})"));
}

}  // namespace
}  // namespace hlokit::runtime
