// SPDX-License-Identifier: Apache-2.0
// Runs a model without training it.
#ifndef HLOKIT_TRACER_MODELS_INFERENCE_H_
#define HLOKIT_TRACER_MODELS_INFERENCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tracer/models/batch_feed.h"
#include "tracer/models/metrics.h"
#include "tracer/models/model.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::models {

// Runs the forward pass `steps` times, on one batch unless the feed advances. Returns metrics of the last logits, zeros
// unless `fetch`.
absl::StatusOr<std::vector<TrainingMetric>> Infer(Tracer& tracer, const Model& model, int64_t steps, bool fetch = true,
                                                  const FeedOptions& feed = {});

// Runs the forward pass on `steps` batches. Returns the loss and, of models that predict classes, the accuracy, or of
// those that predict tokens, the perplexity too; zeros unless `fetch`.
absl::StatusOr<std::vector<TrainingMetric>> Evaluate(Tracer& tracer, const Model& model, int64_t steps,
                                                     bool fetch = true, const FeedOptions& feed = {});

// Returns the first half of a batch of tokens, which generation continues.
Tensor PromptOf(const Batch& batch);
// Generates `steps` tokens after the prompt, that of the first batch, each the most probable one. Returns them, and
// metrics of the last logits.
absl::StatusOr<std::vector<TrainingMetric>> Generate(Tracer& tracer, const Model& model, int64_t steps,
                                                     bool fetch = true, const FeedOptions& feed = {});

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_INFERENCE_H_
