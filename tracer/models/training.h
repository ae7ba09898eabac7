// SPDX-License-Identifier: Apache-2.0
// Runs training steps of a model and records metrics: logits, losses, norms of gradients and of changes.
#ifndef HLOKIT_TRACER_MODELS_TRAINING_H_
#define HLOKIT_TRACER_MODELS_TRAINING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tracer/models/metrics.h"
#include "tracer/models/model.h"
#include "tracer/models/training_step.h"

namespace hlokit::lazy::models {

// Runs forward, backward and update `steps` times on one batch, each followed by a step marker.
absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, const Model& model,
                                                  const nn::ParameterRegistry& registry, const TrainingOptions& options,
                                                  std::string* captures = nullptr);
// Trains on all devices of the tracer, a replica on each, with gradients summed over them before each update. Metrics
// are those of the first replica, losses the means over all. `captures`: receives the first replica's CaptureReport.
absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, absl::Span<const Replica> replicas,
                                                  const TrainingOptions& options, std::string* captures = nullptr);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_TRAINING_H_
