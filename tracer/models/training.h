// SPDX-License-Identifier: Apache-2.0
// Runs a few training steps of a model and records metrics: logits, losses, norms of gradients and of changes.
#ifndef HLOKIT_TRACER_MODELS_TRAINING_H_
#define HLOKIT_TRACER_MODELS_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tracer/models/model.h"
#include "tracer/nn/optimizer.h"

namespace hlokit::lazy::models {

struct TrainingOptions {
  int64_t steps = 1;
  std::string optimizer = "sgd";  // sgd, adam, adamw
  double lr = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
  double eps = 1e-8;
  std::string lr_schedule;  // in the form of ParseLrSchedule; empty: constant
  double clip_norm = 0;     // norm of all gradients together; 0: not clipped
  double clip_value = 0;    // per element of a gradient; 0: not clipped
  bool metrics = true;      // false: no value is fetched, and metrics are 0
  // Files of the whole state of the training, to start from and to write at the end; empty: none.
  std::string load_checkpoint, save_checkpoint;
};

struct TrainingMetric {
  std::string key;  // "logit 3", "grad_l2 0 fc1.weight", "loss_step 2", ...
  double value = 0;
};

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainingOptions& options, const nn::ParameterRegistry& registry);

// A model on one device.
struct Replica {
  DeviceState* device = nullptr;
  const Model* model = nullptr;
  const nn::ParameterRegistry* registry = nullptr;
};

// Runs forward, backward and update `steps` times on one batch, each followed by a step marker.
absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, const Model& model,
                                                  const nn::ParameterRegistry& registry,
                                                  const TrainingOptions& options);
// Trains on all devices of the tracer, a replica on each, with gradients summed over them before each update. Metrics
// are those of the first replica, losses the means over all.
absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, absl::Span<const Replica> replicas,
                                                  const TrainingOptions& options);

// Runs the forward pass `steps` times. Returns metrics of the logits, zeros unless `fetch`.
absl::StatusOr<std::vector<TrainingMetric>> Infer(Tracer& tracer, const Model& model, int64_t steps, bool fetch = true);

struct Comparison {
  int64_t checked = 0;
  int64_t failed = 0;
  std::string first_failure;
};
// Compares metrics with lines `KEY VALUE REFERENCE TOLERANCE`: each must be within the tolerance of the reference. An
// unknown key is a failure; # begins a comment.
Comparison CompareMetrics(const std::vector<TrainingMetric>& metrics, std::string_view expected);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_TRAINING_H_
