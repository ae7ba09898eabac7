// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "interp/processes/world.h"
#include "ir/core/str_cat.h"
#include "ir/core/thread_group.h"
#include "tracer/observe/profiling.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {

namespace {

// Runs step `number` of each replica on threads, since devices wait for each other at collectives.
absl::Status StepAll(Tracer& tracer, absl::Span<const Replica> replicas,
                     absl::Span<const std::unique_ptr<TrainingStep>> trainers, int64_t number) {
  std::vector<absl::Status> done(trainers.size());
  const auto step = [&](size_t i, StepSpan::Stats flows) {
    const StepSpan span("train", number, std::move(flows));
    const DeviceGuard on(replicas[i].device);
    try {
      done[i] = trainers[i]->Record();
      if (done[i].ok()) done[i] = trainers[i]->EndStep();
    } catch (const std::exception& e) {
      // No memory, or no thread: the other devices do not wait for this one.
      if (trainers.size() == 1) throw;
      done[i] = absl::ResourceExhaustedError(e.what());
    }
    // An aborted step names the device that ended it.
    if (done[i].ok() || trainers.size() == 1 || absl::IsAborted(done[i])) return;
    done[i] = absl::Status(done[i].code(), StrCat("device ", i, " failed: ", std::string(done[i].message())));
    tracer.Leave(replicas[i].device, std::string(done[i].message()));
  };
  if (trainers.size() == 1) {
    step(0, {});
    return done[0];
  }
  const int64_t begin = runtime::TraceMe::NewFlow();
  std::vector<int64_t> ends;
  ThreadGroup others;
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
    const bool started = others.Start([&step, i, begin, end = ends.back()] {
      runtime::Profiler::SetThreadName(StrCat("replica ", i));
      step(i, {{"_c", begin}, {"_p", end}});
    });
    if (!started) {
      done[i] = absl::ResourceExhaustedError(StrCat("cannot start a thread for device ", i));
      tracer.Leave(replicas[i].device, std::string(done[i].message()));
    } else if (in_turn) {
      others.JoinLast();
    }
  }
  if (!in_turn) step(0, {});
  {
    runtime::TraceMe wait("WaitForReplicas");
    for (int64_t end : ends) wait.Consumes(end);
    others.Join();
  }
  const auto failed = std::find_if(done.begin(), done.end(), [](const absl::Status& s) { return !s.ok(); });
  if (failed == done.end()) return absl::OkStatus();
  // Devices that left can take part in what comes next.
  tracer.NextSession();
  const auto cause =
      std::find_if(failed, done.end(), [](const absl::Status& s) { return !s.ok() && !absl::IsAborted(s); });
  return cause != done.end() ? *cause : *failed;
}

// Adds the losses of other processes, all in the order of devices.
absl::Status GatherLosses(Tracer& tracer, std::vector<double>* losses) {
  interp::World* const world = tracer.options().client.evaluator.world;
  if (world == nullptr) return absl::OkStatus();
  // Programs of the device thread use MPI too, one thread at a time.
  if (absl::Status s = tracer.Wait(); !s.ok()) return s;
  const absl::StatusOr<std::vector<std::string>> all = world->AllGatherBytes(
      std::string(reinterpret_cast<const char*>(losses->data()), losses->size() * sizeof(double)));
  if (!all.ok()) return all.status();
  losses->clear();
  for (const std::string& bytes : *all) {
    std::vector<double> values(bytes.size() / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
    losses->insert(losses->end(), values.begin(), values.end());
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
  const interp::World* const world = tracer.options().client.evaluator.world;
  const int64_t processes = world == nullptr ? 1 : world->size();
  for (const Replica& replica : replicas) {
    const DeviceGuard on(replica.device);
    absl::StatusOr<std::unique_ptr<TrainingStep>> trainer =
        TrainingStep::Create(&tracer, replica, options, static_cast<int64_t>(replicas.size()) * processes);
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
    std::vector<double> values;
    for (const std::unique_ptr<TrainingStep>& trainer : trainers) {
      absl::StatusOr<std::vector<double>> value = Values(trainer->loss(), options.metrics);
      if (!value.ok()) return value.status();
      values.push_back((*value)[0]);
    }
    if (absl::Status s = GatherLosses(tracer, &values); !s.ok()) return s;
    losses.push_back(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
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
  if (!options.save_checkpoint.empty() && (world == nullptr || world->rank() == 0)) {
    const ScopedSyncReason reason(SyncReason::kTool);
    absl::Status saved = nn::SaveCheckpoint(options.save_checkpoint, options.optimizer, states);
    if (!saved.ok()) return saved;
  }
  return metrics;
}

}  // namespace hlokit::lazy::models
