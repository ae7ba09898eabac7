// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/training.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/nn/checkpoint.h"
#include "tracer/nn/data_parallel.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/observe/profiling.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy::models {
namespace {

double ElementOf(const Literal& literal, size_t i) {
  const ElementType type = literal.shape().element_type();
  return LoadScalar(type, literal.data() + i * static_cast<size_t>(BytesOf(type))).ToDouble();
}

// Reads a value for the metrics, not for the training.
absl::StatusOr<Literal> ReadForMetrics(const Tensor& t) {
  const ScopedSyncReason reason(SyncReason::kTool);
  return t.ToLiteral();
}

// Returns the elements. Without `fetch` computes the tensor without waiting and returns one 0.
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
double Squares(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return sum;
}

// Adds the first ten logits, their sum and norm.
absl::Status AddLogits(const Tensor& logits, bool fetch, std::vector<TrainingMetric>* metrics) {
  absl::StatusOr<std::vector<double>> shown = Values(logits, fetch);
  if (!shown.ok()) return shown.status();
  for (size_t i = 0; i < std::min<size_t>(10, shown->size()); ++i) {
    metrics->push_back({StrCat("logit ", i), (*shown)[i]});
  }
  metrics->push_back({"logits_sum", SumOf(*shown)});
  metrics->push_back({"logits_l2", std::sqrt(Squares(*shown))});
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainingOptions& options, const nn::ParameterRegistry& registry) {
  Tensors parameters;
  for (const nn::NamedTensor& p : registry.parameters()) parameters.push_back(p.tensor);
  if (options.optimizer == "sgd") {
    return std::make_unique<nn::Sgd>(
        std::move(parameters), nn::SgdOptions{options.lr, options.momentum, 0, options.weight_decay, options.nesterov});
  }
  return std::make_unique<nn::Adam>(
      std::move(parameters),
      nn::AdamOptions{options.lr, 0.9, 0.999, options.eps, options.weight_decay, options.optimizer == "adamw"});
}

namespace {

// The training step of one replica.
class Trainer {
 public:
  Trainer(Tracer* tracer, const Replica& replica, const TrainingOptions& options, bool reduce, nn::LrSchedule schedule)
      : tracer_(*tracer),
        replica_(replica),
        options_(options),
        reduce_(reduce),
        batch_(replica.model->MakeBatch(*tracer)),
        optimizer_(MakeOptimizer(options, *replica.registry)),
        scheduler_(optimizer_.get(), std::move(schedule)) {}

  absl::Status Step() {
    logits_ = loss_ = Tensor();
    gradients_.clear();
    optimizer_->ZeroGrad();
    {
      const Trace forward("forward");
      logits_ = replica_.model->Logits(batch_, /*training=*/true);
      if (logits_.defined()) loss_ = replica_.model->Loss(logits_, batch_);
    }
    if (absl::Status s = tracer_.status(); !s.ok()) return s;
    {
      const Trace backward("backward");
      if (absl::Status s = loss_.Backward(); !s.ok()) return s;
    }
    for (const nn::NamedTensor& p : replica_.registry->parameters()) gradients_.push_back(p.tensor.grad());
    if (reduce_) {
      const Trace reduce("all_reduce");
      nn::ReduceGradients(*optimizer_);
    }
    {
      const Trace update("optimizer");
      if (options_.clip_norm > 0) nn::ClipGradNorm(optimizer_->parameters(), options_.clip_norm);
      if (options_.clip_value > 0) nn::ClipGradValue(optimizer_->parameters(), options_.clip_value);
      optimizer_->Step();
      scheduler_.Step();
    }
    return tracer_.MarkStep(replica_.device);
  }

  nn::TrainingState state() { return {replica_.device, replica_.registry, optimizer_.get(), &scheduler_}; }

  // Logits of the last step.
  const Tensor& logits() const { return logits_; }
  const Tensor& loss() const { return loss_; }
  const Tensors& gradients() const { return gradients_; }

 private:
  Tracer& tracer_;
  const Replica replica_;
  const TrainingOptions& options_;
  const bool reduce_;
  const Batch batch_;
  const std::unique_ptr<nn::Optimizer> optimizer_;
  nn::LrScheduler scheduler_;
  Tensor logits_, loss_;
  Tensors gradients_;
};

// Runs a step of each replica on threads, since devices wait for each other at collectives.
absl::Status StepAll(absl::Span<const Replica> replicas, absl::Span<const std::unique_ptr<Trainer>> trainers) {
  std::vector<absl::Status> done(trainers.size());
  const auto step = [&](size_t i) {
    const DeviceGuard on(replicas[i].device);
    done[i] = trainers[i]->Step();
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < trainers.size(); ++i) others.emplace_back(step, i);
  step(0);
  for (std::thread& other : others) other.join();
  for (absl::Status& s : done) {
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, const Model& model,
                                                  const nn::ParameterRegistry& registry,
                                                  const TrainingOptions& options) {
  DeviceState* const device = CurrentDevice() != nullptr ? CurrentDevice() : tracer.device();
  const Replica alone = {device, &model, &registry};
  return Train(tracer, absl::MakeConstSpan(&alone, 1), options);
}

absl::StatusOr<std::vector<TrainingMetric>> Train(Tracer& tracer, absl::Span<const Replica> replicas,
                                                  const TrainingOptions& options) {
  std::vector<TrainingMetric> metrics;
  const nn::ParameterRegistry& registry = *replicas[0].registry;
  absl::StatusOr<nn::LrSchedule> schedule =
      nn::ParseLrSchedule(options.lr_schedule.empty() ? "constant" : options.lr_schedule, options.lr);
  if (!schedule.ok()) return schedule.status();
  const bool reduce = replicas.size() > 1 || tracer.options().replicas > 1;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const Replica& replica : replicas) {
    const DeviceGuard on(replica.device);
    trainers.push_back(std::make_unique<Trainer>(&tracer, replica, options, reduce, *schedule));
  }
  std::vector<nn::TrainingState> states;
  for (const std::unique_ptr<Trainer>& trainer : trainers) states.push_back(trainer->state());
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
  for (int64_t step = 0; step < options.steps; ++step) {
    if (absl::Status s = StepAll(replicas, trainers); !s.ok()) return s;
    double sum = 0;
    for (const std::unique_ptr<Trainer>& trainer : trainers) {
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
        norm = std::sqrt(Squares(*g));
      }
      metrics.push_back({StrCat("grad_l2 ", k, " ", registry.parameters()[k].name), norm});
    }
  }
  for (size_t i = 0; i < losses.size(); ++i) metrics.push_back({StrCat("loss_step ", i), losses[i]});
  double sum = 0, squares = 0, delta = 0;
  std::vector<TrainingMetric> deltas;
  for (size_t k = 0; k < registry.parameters().size(); ++k) {
    absl::StatusOr<std::vector<double>> after = Values(registry.parameters()[k].tensor, options.metrics);
    if (!after.ok()) return after.status();
    sum += SumOf(*after);
    squares += Squares(*after);
    for (size_t i = 0; options.metrics && i < after->size(); ++i) (*after)[i] -= ElementOf(before[k], i);
    const double change = Squares(*after);
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
      running_squares += Squares(*values);
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

absl::StatusOr<std::vector<TrainingMetric>> Infer(Tracer& tracer, const Model& model, int64_t steps, bool fetch) {
  const NoGradGuard no_grad;
  const Batch batch = model.MakeBatch(tracer);
  std::vector<TrainingMetric> metrics;
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor logits = model.Logits(batch, /*training=*/false);
    if (absl::Status s = tracer.MarkStep(); !s.ok()) return s;
    metrics.clear();
    if (absl::Status added = AddLogits(logits, fetch, &metrics); !added.ok()) return added;
  }
  return metrics;
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
