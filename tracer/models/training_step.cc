// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/training_step.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/autocast.h"
#include "tracer/dispatch/functions.h"
#include "tracer/nn/adaptive_optimizers.h"
#include "tracer/nn/data_parallel.h"
#include "tracer/observe/profiling.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy::models {

namespace {

template <typename T, typename Options>
std::unique_ptr<nn::Optimizer> Made(Tensors parameters, Options optimizer, const TrainingOptions& options) {
  optimizer.lr = options.lr;
  optimizer.weight_decay = options.weight_decay;
  if constexpr (requires { optimizer.eps = options.eps; }) {
    if (options.eps > 0) optimizer.eps = options.eps;
  }
  return std::make_unique<T>(std::move(parameters), optimizer);
}

using OptimizerMaker = std::unique_ptr<nn::Optimizer> (*)(Tensors, const TrainingOptions&);
constexpr std::pair<std::string_view, OptimizerMaker> kOptimizers[] = {
    {"sgd",
     [](Tensors p, const TrainingOptions& o) {
       return Made<nn::Sgd>(std::move(p), nn::SgdOptions{.momentum = o.momentum, .nesterov = o.nesterov}, o);
     }},
    {"adam",
     [](Tensors p, const TrainingOptions& o) {
       return Made<nn::Adam>(std::move(p), nn::AdamOptions{.capturable = o.capture != Capture::kNone}, o);
     }},
    {"adamw",
     [](Tensors p, const TrainingOptions& o) {
       const nn::AdamOptions adamw = {.decoupled = true, .capturable = o.capture != Capture::kNone};
       return Made<nn::Adam>(std::move(p), adamw, o);
     }},
    {"rmsprop",
     [](Tensors p, const TrainingOptions& o) { return Made<nn::RmsProp>(std::move(p), nn::RmsPropOptions(), o); }},
    {"adagrad",
     [](Tensors p, const TrainingOptions& o) { return Made<nn::Adagrad>(std::move(p), nn::AdagradOptions(), o); }},
    {"adafactor",
     [](Tensors p, const TrainingOptions& o) {
       return Made<nn::Adafactor>(std::move(p), nn::AdafactorOptions{.capturable = o.capture != Capture::kNone}, o);
     }},
    {"lamb",
     [](Tensors p, const TrainingOptions& o) {
       return Made<nn::Lamb>(std::move(p), nn::LambOptions{.capturable = o.capture != Capture::kNone}, o);
     }},
};

}  // namespace

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kOptimizers) names.emplace_back(name);
  return names;
}

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainingOptions& options, const nn::ParameterRegistry& registry) {
  Tensors parameters;
  for (const nn::NamedTensor& p : registry.parameters()) parameters.push_back(p.tensor);
  const auto* const found = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                         [&](const auto& row) { return row.first == options.optimizer; });
  return found->second(std::move(parameters), options);
}

absl::StatusOr<std::unique_ptr<TrainingStep>> TrainingStep::Create(Tracer* tracer, const Replica& replica,
                                                                   const TrainingOptions& options, int64_t replicas) {
  absl::StatusOr<nn::LrSchedule> schedule =
      nn::ParseLrSchedule(options.lr_schedule.empty() ? "constant" : options.lr_schedule, options.lr);
  if (!schedule.ok()) return schedule.status();
  if (options.warmup > 0) schedule = nn::WithWarmup(*std::move(schedule), options.warmup);
  const auto most = static_cast<int64_t>(replica.model->stage_count()) - 1;
  if (options.graph_breaks > most) {
    return absl::InvalidArgumentError(StrCat("the model has ", most + 1, " stages, between which are at most ",
                                             Counted(most, "graph break"), ", not ", options.graph_breaks));
  }
  auto step = std::unique_ptr<TrainingStep>(new TrainingStep(tracer, replica, options, *std::move(schedule)));
  if (options.capture == Capture::kForwardBackward) {
    step->segments_ = std::make_unique<SegmentedModel>(*replica.model, step->optimizer_->parameters(),
                                                       static_cast<size_t>(options.graph_breaks) + 1);
  }
  step->reduce_ = replicas > 1 || tracer->options().replicas > 1;
  // The examples of all replicas follow each other, those of a step too.
  const int64_t each = replica.model->BatchArrays()[0].shape.dims()[0];
  step->range_ = {replica.first_example, replicas * each, options.steps * options.accumulate, options.accumulate};
  for (int64_t k = 0; k < options.accumulate && !options.feed.advances(); ++k) {
    step->batches_.push_back(replica.model->MakeBatch(*tracer, replica.first_example + k * replicas * each));
  }
  return step;
}

// Captured graphs read the tensors of the first step's batches, which get the values of those of each step.
absl::Status TrainingStep::TakeBatches() {
  if (!options_.feed.advances()) return absl::OkStatus();
  if (feed_ == nullptr) {
    range_.first += scheduler_.steps() * options_.accumulate * range_.stride;  // those of a checkpoint
    feed_ = std::make_unique<BatchFeed>(&tracer_, replica_.device, *replica_.model, options_.feed, range_);
  }
  for (int64_t k = 0; k < options_.accumulate; ++k) {
    absl::StatusOr<Batch> next = feed_->Next();
    if (!next.ok()) return next.status();
    if (static_cast<int64_t>(batches_.size()) == k) {
      batches_.push_back(*std::move(next));
      continue;
    }
    const DeviceLock lock(replica_.device->mutex());
    const auto take = [](const Tensor& to, const Tensor& from) {
      Materialize(to.impl()->data.get(), from.impl()->data->buffer);
    };
    Batch& batch = batches_[static_cast<size_t>(k)];
    for (size_t i = 0; i < batch.inputs.size(); ++i) take(batch.inputs[i], next->inputs[i]);
    take(batch.labels, next->labels);
  }
  return absl::OkStatus();
}

absl::Status TrainingStep::EndStep() { return feed_ != nullptr ? feed_->EndStep() : tracer_.MarkStep(replica_.device); }

TrainingStep::TrainingStep(Tracer* tracer, const Replica& replica, const TrainingOptions& options,
                           nn::LrSchedule schedule)
    : tracer_(*tracer),
      replica_(replica),
      options_(options),
      optimizer_(MakeOptimizer(options, *replica.registry)),
      scheduler_(optimizer_.get(), std::move(schedule)),
      captured_(tracer, [this] {
        std::vector<double> rates;
        for (size_t group = 0; group < optimizer_->group_count(); ++group) rates.push_back(optimizer_->lr(group));
        return rates;
      }) {}

absl::Status TrainingStep::Forward(const Batch& batch) {
  const Trace forward("forward");
  const AutocastGuard autocast(options_.autocast);
  batch_loss_ = Tensor();
  const Tensor logits = replica_.model->Logits(batch, /*training=*/true);
  if (logits.defined()) batch_loss_ = replica_.model->Loss(logits, batch, options_.label_smoothing);
  if (batches_.size() > 1 && batch_loss_.defined()) {
    batch_loss_ = batch_loss_ / Scalar(static_cast<int64_t>(batches_.size()));
  }
  if (!logits_.defined()) logits_ = logits;
  return tracer_.status();
}

absl::Status TrainingStep::Backward() {
  const Trace backward("backward");
  if (absl::Status s = RunBackward({batch_loss_}, {Tensor()}, {}).status(); !s.ok()) return s;
  const NoGradGuard no_grad;
  loss_ = loss_.defined() ? loss_ + batch_loss_ : batch_loss_;
  return tracer_.status();
}

absl::Status TrainingStep::ForwardSegment(size_t segment) {
  const Trace forward("forward");
  const AutocastGuard autocast(options_.autocast);
  const bool last = segment + 1 == segments_->size();
  if (last) batch_loss_ = logits_ = loss_ = Tensor();  // with the graph of the step before
  const Batch& batch = batches_[0];
  const Tensors results = segments_->Forward(segment, batch.inputs);
  if (last && results[0].defined()) {
    logits_ = results[0];
    batch_loss_ = loss_ = replica_.model->Loss(logits_, batch, options_.label_smoothing);
  }
  return tracer_.status();
}

absl::Status TrainingStep::BackwardSegment(size_t segment) {
  const Trace backward("backward");
  if (absl::Status s = segments_->Backward(segment, batch_loss_); !s.ok()) return s;
  return tracer_.status();
}

void TrainingStep::Update() {
  gradients_.clear();
  for (const nn::NamedTensor& p : replica_.registry->parameters()) gradients_.push_back(p.tensor.grad());
  if (reduce_) {
    const Trace reduce("all_reduce");
    nn::ReduceGradients(*optimizer_);
  }
  const Trace update("optimizer");
  if (options_.clip_norm > 0) nn::ClipGradNorm(optimizer_->parameters(), options_.clip_norm);
  if (options_.clip_value > 0) nn::ClipGradValue(optimizer_->parameters(), options_.clip_value);
  optimizer_->Step();
}

absl::Status TrainingStep::Record() {
  absl::Status done = TakeBatches();
  if (done.ok()) done = options_.capture == Capture::kNone ? RunWhole() : RunCaptured();
  if (done.ok()) scheduler_.Step();
  return done;
}

absl::Status TrainingStep::RecordWhole() {
  if (absl::Status s = TakeBatches(); !s.ok()) return s;
  return RunWhole();
}

absl::Status TrainingStep::RunWhole() {
  logits_ = loss_ = Tensor();
  gradients_.clear();
  optimizer_->ZeroGrad();
  for (const Batch& batch : batches_) {
    if (absl::Status s = Forward(batch); !s.ok()) return s;
    if (absl::Status s = Backward(); !s.ok()) return s;
  }
  Update();
  return tracer_.status();
}

std::string TrainingStep::CaptureReport() const { return captured_.Report(); }

// Each function leaves the tensors that the next one reads in members and in the gradients of parameters; a replay
// gives these new values.
void TrainingStep::CaptureParts() {
  if (options_.capture == Capture::kFull) {
    captured_.AddLast("step", [this] { return RunWhole(); });
    return;
  }
  const size_t count = segments_->size();
  const auto name = [&](const char* part, size_t segment) {
    return count == 1 ? std::string(part) : StrCat(part, ".", static_cast<int64_t>(segment + 1));
  };
  for (size_t s = 0; s < count; ++s) captured_.Add(name("forward", s), [this, s] { return ForwardSegment(s); });
  for (size_t s = count; s-- > 0;) captured_.Add(name("backward", s), [this, s] { return BackwardSegment(s); });
  captured_.AddLast("update", [this] {
    Update();
    return tracer_.status();
  });
}

absl::Status TrainingStep::RunCaptured() {
  if (captured_.empty()) CaptureParts();
  Tensors inputs;
  for (const Batch& batch : batches_) {
    inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
    inputs.push_back(batch.labels);
  }
  return captured_.Run(inputs);
}

}  // namespace hlokit::lazy::models
