// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/inference.h"

#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/observe/profiling.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {

namespace {

// Batches that follow each other on the current device.
std::unique_ptr<BatchFeed> FeedOf(Tracer& tracer, const Model& model, int64_t steps, const FeedOptions& options) {
  DeviceState* const device = CurrentDevice() != nullptr ? CurrentDevice() : tracer.device();
  const DeviceGuard guard(device);
  const int64_t each = model.BatchArrays()[0].shape.dims()[0];
  return std::make_unique<BatchFeed>(&tracer, device, model, options, FeedRange{0, each, steps, 1});
}

}  // namespace

absl::StatusOr<std::vector<TrainingMetric>> Infer(Tracer& tracer, const Model& model, int64_t steps, bool fetch,
                                                  const FeedOptions& options) {
  const NoGradGuard no_grad;
  const std::unique_ptr<BatchFeed> feed = FeedOf(tracer, model, steps, options);
  absl::StatusOr<Batch> batch;
  std::vector<TrainingMetric> metrics;
  runtime::Profiler::Restart();
  for (int64_t step = 0; step < steps; ++step) {
    std::optional<StepSpan> span(std::in_place, "infer", step);
    if (step == 0 || options.advances()) batch = feed->Next();
    if (!batch.ok()) return batch.status();
    const Tensor logits = model.Logits(*batch, /*training=*/false);
    if (absl::Status s = feed->EndStep(); !s.ok()) return s;
    span.reset();
    metrics.clear();
    if (absl::Status added = AddLogits(logits, fetch, &metrics); !added.ok()) return added;
  }
  return metrics;
}

absl::StatusOr<std::vector<TrainingMetric>> Evaluate(Tracer& tracer, const Model& model, int64_t steps, bool fetch,
                                                     const FeedOptions& options) {
  const NoGradGuard no_grad;
  const std::unique_ptr<BatchFeed> feed = FeedOf(tracer, model, steps, options);
  double loss = 0, correct = 0, counted = 0;
  bool classes = false;
  runtime::Profiler::Restart();
  for (int64_t step = 0; step < steps; ++step) {
    std::optional<StepSpan> span(std::in_place, "eval", step);
    const absl::StatusOr<Batch> batch = feed->Next();
    if (!batch.ok()) return batch.status();
    const Tensor logits = model.Logits(*batch, /*training=*/false);
    const auto [shown, labels] = model.Predictions(logits, *batch);
    Tensor numbers[] = {model.Loss(logits, *batch), Tensor(), Tensor()};
    classes = shown.defined();
    if (classes) {
      const Tensor used = Ge(labels, 0);  // others are ignored
      numbers[1] = Sum(And(Eq(InvokeOp(Op::argmax, shown, -1), labels), used));
      numbers[2] = Sum(used);
    }
    if (absl::Status s = feed->EndStep(); !s.ok()) return s;
    span.reset();
    double* const sums[] = {&loss, &correct, &counted};
    for (size_t i = 0; i < std::size(numbers); ++i) {
      if (!numbers[i].defined()) continue;
      absl::StatusOr<std::vector<double>> value = Values(numbers[i], fetch);
      if (!value.ok()) return value.status();
      *sums[i] += (*value)[0];
    }
  }
  loss /= static_cast<double>(steps);
  std::vector<TrainingMetric> metrics = {{"loss", loss}};
  if (classes) metrics.push_back({"accuracy", counted > 0 ? correct / counted : 0});
  if (model.predicts_tokens()) metrics.push_back({"perplexity", fetch ? std::exp(loss) : 0});
  return metrics;
}

Tensor PromptOf(const Batch& batch) {
  const Tensor& tokens = batch.inputs[0];
  return Slice(tokens, 1, 0, std::max<int64_t>(1, tokens.size(1) / 2));
}

absl::StatusOr<std::vector<TrainingMetric>> Generate(Tracer& tracer, const Model& model, int64_t steps, bool fetch,
                                                     const FeedOptions& options) {
  const NoGradGuard no_grad;
  const std::unique_ptr<Decoder> decoder = model.MakeDecoder(tracer);
  if (decoder == nullptr) return absl::InvalidArgumentError("the model does not generate tokens");
  const absl::StatusOr<Batch> batch = FeedOf(tracer, model, 1, options)->Next();
  if (!batch.ok()) return batch.status();
  const Tensor prompt = PromptOf(*batch);
  if (steps > batch->inputs[0].size(1) - prompt.size(1)) {
    return absl::InvalidArgumentError(StrCat(steps, " tokens after a prompt of ", prompt.size(1), " are more than the ",
                                             batch->inputs[0].size(1), " of a sequence (--seq)"));
  }
  std::vector<TrainingMetric> metrics;
  Tensor logits;
  runtime::Profiler::Restart();
  for (int64_t step = 0; step < steps; ++step) {
    std::optional<StepSpan> span(std::in_place, "decode", step);
    logits = step == 0 ? decoder->Prefill(prompt) : decoder->Step();
    if (absl::Status s = tracer.MarkStep(); !s.ok()) return s;
    span.reset();
    absl::StatusOr<std::vector<double>> tokens = Values(decoder->token(), fetch);
    if (!tokens.ok()) return tokens.status();
    for (size_t row = 0; row < tokens->size(); ++row) {
      metrics.push_back({StrCat("token ", row, " ", step), (*tokens)[row]});
    }
  }
  if (absl::Status added = AddLogits(logits, fetch, &metrics); !added.ok()) return added;
  return metrics;
}

}  // namespace hlokit::lazy::models
