// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/training.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
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
     [](Tensors p, const TrainingOptions& o) { return Made<nn::Adafactor>(std::move(p), nn::AdafactorOptions(), o); }},
    {"lamb", [](Tensors p, const TrainingOptions& o) { return Made<nn::Lamb>(std::move(p), nn::LambOptions(), o); }},
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
  auto step = std::unique_ptr<TrainingStep>(new TrainingStep(tracer, replica, options, *std::move(schedule)));
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
      scheduler_(optimizer_.get(), std::move(schedule)) {}

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
  BackwardOptions options;
  options.retain_graph = options_.capture == Capture::kForwardBackward;
  if (absl::Status s = RunBackward({batch_loss_}, {Tensor()}, {}, options).status(); !s.ok()) return s;
  const NoGradGuard no_grad;
  loss_ = loss_.defined() ? loss_ + batch_loss_ : batch_loss_;
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

std::string TrainingStep::CaptureReport() const {
  std::string report;
  for (const std::unique_ptr<CapturedFunction>& function : captured_) report += function->Report();
  return report;
}

// Each function leaves the tensors that the next one reads in members and in the gradients of parameters; a replay
// gives these new values.
absl::Status TrainingStep::RunCaptured() {
  struct Part {
    const char* name;
    std::function<absl::Status()> run;
  };
  std::vector<Part> parts;
  const auto forward = [this] {
    logits_ = loss_ = Tensor();
    return Forward(batches_[0]);
  };
  const auto backward = [this] {
    loss_ = Tensor();
    gradients_.clear();
    optimizer_->ZeroGrad();
    return Backward();
  };
  const auto update = [this] {
    Update();
    return tracer_.status();
  };
  if (options_.capture == Capture::kForwardBackward) {
    parts = {{"forward", forward}, {"backward", backward}, {"update", update}};
  } else {
    parts = {{"step", [this] { return RunWhole(); }}};
  }
  Tensors inputs;
  for (const Batch& batch : batches_) {
    inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
    inputs.push_back(batch.labels);
  }
  if (captured_.empty()) {
    for (const Part& part : parts) {
      GraphCaptureOptions options;
      options.name = part.name;
      options.views_are_current = !captured_.empty();
      options.guarded_scalars = [this] {
        std::vector<double> rates;
        for (size_t group = 0; group < optimizer_->group_count(); ++group) rates.push_back(optimizer_->lr(group));
        return rates;
      };
      captured_.push_back(std::make_unique<CapturedFunction>(
          &tracer_,
          [this, run = part.run](const Tensors&) {
            capture_status_ = run();
            return Tensors();
          },
          std::move(options)));
    }
  }
  // All parts are replayed, or all are traced. A graph keeps the tensors of the part before it, so all are forgotten
  // before these are made anew.
  bool replay = std::all_of(captured_.begin(), captured_.end(), [](const auto& f) { return f->replayable(); });
  for (size_t i = 0; i < captured_.size(); ++i) {
    for (size_t k = i; !replay && k < captured_.size(); ++k) captured_[k]->Forget();
    CapturedFunction& function = *captured_[i];
    const int64_t replays = function.replays();
    absl::Status done = function(i == 0 ? inputs : Tensors()).status();
    if (done.ok()) done = capture_status_;
    if (!done.ok()) return done;
    replay = function.replays() > replays;
  }
  return absl::OkStatus();
}

namespace {

// Runs step `number` of each replica on threads, since devices wait for each other at collectives.
absl::Status StepAll(const Tracer& tracer, absl::Span<const Replica> replicas,
                     absl::Span<const std::unique_ptr<TrainingStep>> trainers, int64_t number) {
  std::vector<absl::Status> done(trainers.size());
  const auto step = [&](size_t i, StepSpan::Stats flows) {
    const StepSpan span("train", number, std::move(flows));
    const DeviceGuard on(replicas[i].device);
    done[i] = trainers[i]->Record();
    if (done[i].ok()) done[i] = trainers[i]->EndStep();
  };
  if (trainers.size() == 1) {
    step(0, {});
    return done[0];
  }
  const int64_t begin = runtime::TraceMe::NewFlow();
  std::vector<int64_t> ends;
  std::vector<std::thread> others;
  {
    runtime::TraceMe start("StartReplicas");
    start.Produces(begin);
  }
  // Where executions are deferred no replica waits for another: one after the other, so that they are recorded alike in
  // every run.
  const bool in_turn = tracer.options().client.defer_executions;
  if (in_turn) step(0, {});
  for (size_t i = 1; i < trainers.size(); ++i) {
    ends.push_back(runtime::TraceMe::NewFlow());
    others.emplace_back([&step, i, begin, end = ends.back()] {
      runtime::Profiler::SetThreadName(StrCat("replica ", i));
      step(i, {{"_c", begin}, {"_p", end}});
    });
    if (in_turn) others.back().join();
  }
  if (!in_turn) step(0, {});
  {
    runtime::TraceMe wait("WaitForReplicas");
    for (int64_t end : ends) wait.Consumes(end);
    for (std::thread& other : others) {
      if (other.joinable()) other.join();
    }
  }
  for (absl::Status& s : done) {
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, const Model& model,
                                                  const nn::ParameterRegistry& registry, const TrainingOptions& options,
                                                  std::string* captures) {
  DeviceState* const device = CurrentDevice() != nullptr ? CurrentDevice() : tracer.device();
  const Replica alone = {device, &model, &registry};
  return Train(tracer, absl::MakeConstSpan(&alone, 1), options, captures);
}

absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, absl::Span<const Replica> replicas,
                                                  const TrainingOptions& options, std::string* captures) {
  std::vector<TrainingMetric> metrics;
  const nn::ParameterRegistry& registry = *replicas[0].registry;
  std::vector<std::unique_ptr<TrainingStep>> trainers;
  for (const Replica& replica : replicas) {
    const DeviceGuard on(replica.device);
    absl::StatusOr<std::unique_ptr<TrainingStep>> trainer =
        TrainingStep::Create(&tracer, replica, options, static_cast<int64_t>(replicas.size()));
    if (!trainer.ok()) return trainer.status();
    trainers.push_back(*std::move(trainer));
  }
  std::vector<nn::TrainingState> states;
  for (const std::unique_ptr<TrainingStep>& trainer : trainers) states.push_back(trainer->state());
  if (!options.load_checkpoint.empty()) {
    absl::Status loaded = nn::LoadCheckpoint(options.load_checkpoint, options.optimizer, states);
    if (!loaded.ok()) return loaded;
  }
  std::vector<Literal> before;
  for (const nn::NamedTensor& p : registry.parameters()) {
    if (!options.metrics) break;
    absl::StatusOr<Literal> value = ReadForMetrics(p.tensor);
    if (!value.ok()) return value.status();
    before.push_back(*std::move(value));
  }
  std::vector<double> losses;
  runtime::Profiler::Restart();
  for (int64_t step = 0; step < options.steps; ++step) {
    if (absl::Status s = StepAll(tracer, replicas, trainers, step); !s.ok()) return s;
    double sum = 0;
    for (const std::unique_ptr<TrainingStep>& trainer : trainers) {
      absl::StatusOr<std::vector<double>> value = Values(trainer->loss(), options.metrics);
      if (!value.ok()) return value.status();
      sum += (*value)[0];
    }
    losses.push_back(sum / static_cast<double>(trainers.size()));
    if (step > 0) continue;
    if (absl::Status added = AddLogits(trainers[0]->logits(), options.metrics, &metrics); !added.ok()) return added;
    metrics.push_back({"loss", losses[0]});
    const Tensors& gradients = trainers[0]->gradients();
    for (size_t k = 0; k < gradients.size(); ++k) {
      double norm = 0;
      if (gradients[k].defined()) {
        absl::StatusOr<std::vector<double>> g = Values(gradients[k], options.metrics);
        if (!g.ok()) return g.status();
        norm = std::sqrt(SumOfSquares(*g));
      }
      metrics.push_back({StrCat("grad_l2 ", k, " ", registry.parameters()[k].name), norm});
    }
  }
  if (captures != nullptr) *captures = trainers[0]->CaptureReport();
  for (size_t i = 0; i < losses.size(); ++i) metrics.push_back({StrCat("loss_step ", i), losses[i]});
  double sum = 0, squares = 0, delta = 0;
  std::vector<TrainingMetric> deltas;
  for (size_t k = 0; k < registry.parameters().size(); ++k) {
    absl::StatusOr<std::vector<double>> after = Values(registry.parameters()[k].tensor, options.metrics);
    if (!after.ok()) return after.status();
    sum += SumOf(*after);
    squares += SumOfSquares(*after);
    for (size_t i = 0; options.metrics && i < after->size(); ++i) (*after)[i] -= ElementOf(before[k], i);
    const double change = SumOfSquares(*after);
    delta += change;
    deltas.push_back({StrCat("delta_l2 ", k, " ", registry.parameters()[k].name), std::sqrt(change)});
  }
  metrics.push_back({"param_sum", sum});
  metrics.push_back({"param_l2", std::sqrt(squares)});
  metrics.push_back({"delta_l2", std::sqrt(delta)});
  metrics.insert(metrics.end(), deltas.begin(), deltas.end());
  if (!registry.buffers().empty()) {
    double running_sum = 0, running_squares = 0;
    for (const nn::NamedTensor& b : registry.buffers()) {
      if (!IsFloat(b.tensor.dtype())) continue;  // a counter
      absl::StatusOr<std::vector<double>> values = Values(b.tensor, options.metrics);
      if (!values.ok()) return values.status();
      running_sum += SumOf(*values);
      running_squares += SumOfSquares(*values);
    }
    metrics.push_back({"running_sum", running_sum});
    metrics.push_back({"running_l2", std::sqrt(running_squares)});
  }
  if (!options.save_checkpoint.empty()) {
    const ScopedSyncReason reason(SyncReason::kTool);
    absl::Status saved = nn::SaveCheckpoint(options.save_checkpoint, options.optimizer, states);
    if (!saved.ok()) return saved;
  }
  return metrics;
}

}  // namespace hlokit::lazy::models
