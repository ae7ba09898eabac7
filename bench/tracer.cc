// SPDX-License-Identifier: Apache-2.0
// Overhead of tracing: recording a training step, finding its program in the cache and enqueuing it, per op; and
// lowering the step to HLO.
//
//   hlokit_bench_tracer [--rounds=N] [--model=resnet50|bert-base]
//
// Sizes are small and op counts those of the full models, so that the times are those of the tracer. Times are
// processor times of the tracing thread; the output shows medians. An op is a call of an aten op, including calls by
// other ops; for comparison, PyTorch's eager dispatch alone takes about 0.7 us per op, and PyTorch/XLA 13.7 ms per step
// of a small model.
#include "tracer/step/tracer.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "tracer/autograd/node.h"
#include "tracer/models/model.h"
#include "tracer/models/training.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

double ThreadMicroseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

struct Case {
  const char* label;
  models::ModelConfig config;
  const char* optimizer;
};

bool Measure(const Case& c, int rounds) {
  TracerOptions options;
  options.client.evaluator.num_threads = 1;
  Tracer tracer(options);
  const DeviceGuard guard(tracer.device());
  absl::StatusOr<models::ModelConfig> config = models::Complete(c.config);
  if (!config.ok()) return false;
  nn::ParameterRegistry registry(&tracer, config->type, nn::PatternInitializer(InitPattern::kHash, 3));
  const std::unique_ptr<models::Model> model = models::MakeModel(*config, &registry);
  const models::Batch batch = model->MakeBatch(tracer);
  models::TrainingOptions training;
  training.optimizer = c.optimizer;
  const std::unique_ptr<nn::Optimizer> optimizer = models::MakeOptimizer(training, registry);
  std::vector<double> record, step, lower;
  int64_t nodes = 0;
  for (int round = 0; round < rounds + 2; ++round) {  // the first two compile
    const double start = ThreadMicroseconds();
    optimizer->ZeroGrad();
    const Tensor loss = model->Loss(model->Logits(batch, true), batch);
    if (!loss.defined() || !loss.Backward().ok()) return false;
    optimizer->Step();
    const double recorded = ThreadMicroseconds();
    if (round == rounds + 1) {
      Tensors roots = {loss};
      for (const nn::NamedTensor& p : registry.parameters()) roots.push_back(p.tensor);
      const PendingSubgraph slice = CollectSubgraphOfTensors(roots);
      nodes = static_cast<int64_t>(slice.order.size());
      for (int k = 0; k < std::min(rounds, 5); ++k) {
        const double before = ThreadMicroseconds();
        if (!LowerSubgraph(*tracer.device(), slice, "step").ok()) return false;
        lower.push_back(ThreadMicroseconds() - before);
      }
      break;
    }
    if (!tracer.MarkStep().ok()) return false;
    const double done = ThreadMicroseconds();
    if (round >= 2) {
      record.push_back(recorded - start);
      step.push_back(done - recorded);
    }
    if (!tracer.Wait().ok()) return false;
  }
  tracer.PublishCounters();
  int64_t calls = 0;
  for (const std::string& name : tracer.metrics().counter_names()) {
    if (name.starts_with("xla::")) calls += *tracer.metrics().counter(name);
  }
  const double ops = static_cast<double>(calls) / (rounds + 2);
  const double total = bench::Median(record) + bench::Median(step);
  std::printf(
      "%-22s %7.0f ops %7lld nodes   record %8.0f us   key and hit %7.0f us   %.2f us an op (target 1)   "
      "lower %8.0f us   %.2f us a node (target 3)\n",
      c.label, ops, static_cast<long long>(nodes), bench::Median(record), bench::Median(step), total / ops,
      bench::Median(lower), bench::Median(lower) / static_cast<double>(nodes));
  return true;
}

int Run(int argc, char** argv) {
  int rounds = 15;
  std::string_view only;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with("--rounds=")) rounds = std::max(1, std::atoi(argv[i] + 9));
    if (std::string_view(argv[i]).starts_with("--model=")) only = argv[i] + 8;
  }
  models::ModelConfig resnet{.name = "resnet50", .batch = 1, .image = 32, .classes = 10};
  models::ModelConfig bert{.name = "bert-base",
                           .batch = 1,
                           .seq = 8,
                           .vocab = 32,
                           .hidden = 24,
                           .layers = 12,
                           .heads = 12,
                           .ffn_hidden = 32};
  bool ok = true;
  for (const Case& c : {Case{"resnet50, sgd", resnet, "sgd"}, Case{"bert-base, adam", bert, "adam"}}) {
    if (only.empty() || only == c.config.name) ok = Measure(c, rounds) && ok;
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::lazy

int main(int argc, char** argv) { return hlokit::lazy::Run(argc, argv); }
