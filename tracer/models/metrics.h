// SPDX-License-Identifier: Apache-2.0
// Numbers that a model's training or inference is compared by.
#ifndef HLOKIT_TRACER_MODELS_METRICS_H_
#define HLOKIT_TRACER_MODELS_METRICS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/types/literal.h"
#include "tracer/graph/tensor.h"

namespace hlokit::lazy::models {

struct TrainingMetric {
  std::string key;  // "logit 3", "grad_l2 0 fc1.weight", "loss_step 2", ...
  double value = 0;
};

// Reads a value for the metrics, not for the training.
absl::StatusOr<Literal> ReadForMetrics(const Tensor& t);
double ElementOf(const Literal& literal, size_t i);
// Returns the elements. Without `fetch` computes the tensor without waiting and returns one 0.
absl::StatusOr<std::vector<double>> Values(const Tensor& t, bool fetch);
double SumOf(const std::vector<double>& v);
double SumOfSquares(const std::vector<double>& v);
// Adds the first ten logits, their sum and norm.
absl::Status AddLogits(const Tensor& logits, bool fetch, std::vector<TrainingMetric>* metrics);

struct Comparison {
  int64_t checked = 0;
  int64_t failed = 0;
  std::string first_failure;
};
// Compares metrics with lines `KEY VALUE REFERENCE TOLERANCE`: each must be within the tolerance of the reference. An
// unknown key is a failure; # begins a comment.
Comparison CompareMetrics(const std::vector<TrainingMetric>& metrics, std::string_view expected);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_METRICS_H_
