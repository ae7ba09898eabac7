// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy::models {

double ElementOf(const Literal& literal, size_t i) {
  const ElementType type = literal.shape().element_type();
  return LoadScalar(type, literal.data() + i * static_cast<size_t>(BytesOf(type))).ToDouble();
}

absl::StatusOr<Literal> ReadForMetrics(const Tensor& t) {
  const ScopedSyncReason reason(SyncReason::kTool);
  return t.ToLiteral();
}

absl::StatusOr<std::vector<double>> Values(const Tensor& t, bool fetch) {
  const ScopedSyncReason reason(SyncReason::kTool);
  if (!fetch && t.defined()) {
    RefreshView(t);
    if (absl::Status s = ComputeTensor(t); !s.ok()) return s;
    return std::vector<double>(1);
  }
  absl::StatusOr<Literal> literal = ReadForMetrics(t);
  if (!literal.ok()) return literal.status();
  std::vector<double> out(static_cast<size_t>(literal->element_count()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = ElementOf(*literal, i);
  return out;
}

double SumOf(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum;
}
double SumOfSquares(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return sum;
}

absl::Status AddLogits(const Tensor& logits, bool fetch, std::vector<TrainingMetric>* metrics) {
  absl::StatusOr<std::vector<double>> shown = Values(logits, fetch);
  if (!shown.ok()) return shown.status();
  for (size_t i = 0; i < std::min<size_t>(10, shown->size()); ++i) {
    metrics->push_back({StrCat("logit ", i), (*shown)[i]});
  }
  metrics->push_back({"logits_sum", SumOf(*shown)});
  metrics->push_back({"logits_l2", std::sqrt(SumOfSquares(*shown))});
  return absl::OkStatus();
}

Comparison CompareMetrics(const std::vector<TrainingMetric>& metrics, std::string_view expected) {
  absl::flat_hash_map<std::string, double> known;
  for (const TrainingMetric& metric : metrics) known.emplace(metric.key, metric.value);
  Comparison result;
  while (!expected.empty()) {
    const size_t end = std::min(expected.find('\n'), expected.size());
    std::string line(expected.substr(0, end));
    expected.remove_prefix(std::min(end + 1, expected.size()));
    if (line.empty() || line[0] == '#') continue;
    // The last three words are numbers.
    double numbers[3] = {0, 0, 0};
    bool read = true;
    for (int i = 2; i >= 0; --i) {
      const size_t blank = line.rfind(' ');
      if (blank == std::string::npos) {
        read = false;
        break;
      }
      numbers[i] = std::strtod(line.c_str() + blank + 1, nullptr);
      line.resize(blank);
    }
    if (!read) continue;
    ++result.checked;
    const auto it = known.find(line);
    const bool right = it != known.end() && std::abs(it->second - numbers[1]) <= numbers[2];
    if (right) continue;
    ++result.failed;
    if (!result.first_failure.empty()) continue;
    result.first_failure = it == known.end()
                               ? StrCat(line, " is not there")
                               : StrCat(line, " is ", std::to_string(it->second), ", expected ",
                                        std::to_string(numbers[1]), " within ", std::to_string(numbers[2]));
  }
  return result;
}

}  // namespace hlokit::lazy::models
