// SPDX-License-Identifier: Apache-2.0
// Generation, evaluation, training options and initial values of models.
#include "tracer/models/inference.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/models/initialization.h"
#include "tracer/models/training.h"
#include "tracer/nn/lr_schedule.h"

namespace hlokit::lazy::models {
namespace {

using Metrics = std::map<std::string, double>;

class InferenceTest : public TracingTest {
 protected:
  void Make(ModelConfig wanted, nn::Initializer initializer = nn::PatternInitializer(InitPattern::kHash, 6)) {
    const absl::StatusOr<ModelConfig> complete = Complete(std::move(wanted));
    ASSERT_TRUE(complete.ok()) << complete.status().message();
    config = *complete;
    registry = std::make_unique<nn::ParameterRegistry>(&tracer, config.type, std::move(initializer));
    model = MakeModel(config, registry.get());
  }
  Metrics Of(const absl::StatusOr<std::vector<TrainingMetric>>& list) {
    EXPECT_TRUE(list.ok()) << list.status().message();
    Metrics metrics;
    if (!list.ok()) return metrics;
    for (const TrainingMetric& m : *list) metrics[m.key] = m.value;
    return metrics;
  }
  Metrics Trained(const TrainingOptions& options) { return Of(Train(tracer, *model, *registry, options)); }

  static ModelConfig Small(std::string name) {
    ModelConfig small{.name = std::move(name), .seq = 8, .vocab = 13, .hidden = 16, .layers = 2};
    small.heads = 4;
    small.ffn_hidden = 16;
    return small;
  }
  static ModelConfig SmallLlama(std::string name) {
    ModelConfig small = Small(std::move(name));
    small.kv_heads = 2;
    return small;
  }

  ModelConfig config;
  std::unique_ptr<nn::ParameterRegistry> registry;
  std::unique_ptr<Model> model;
};

TEST_F(InferenceTest, CachedKeysGiveTheLogitsOfWholeSequences) {
  for (const char* name : {"llama", "mixtral"}) {
    Make(SmallLlama(name));
    const NoGradGuard no_grad;
    const std::unique_ptr<Decoder> decoder = model->MakeDecoder(tracer);
    const Batch batch = model->MakeBatch(tracer);
    Tensor tokens = Slice(batch.inputs[0], 1, 0, 3);
    Tensor logits = decoder->Prefill(tokens);
    for (int64_t t = 3; t < config.seq; ++t) {
      // Whole sequences of that length, which the mask makes independent of what follows.
      Batch whole = batch;
      whole.inputs[0] = Cat({tokens, InvokeOp(Op::zeros_like, Slice(batch.inputs[0], 1, t, config.seq))}, 1);
      const std::vector<double> expected = Values(Select(model->Logits(whole, false), 1, t - 1));
      const std::vector<double> found = Values(logits);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << name << " " << t;
      tokens = Cat({tokens, decoder->token()}, 1);
      ASSERT_TRUE(tracer.MarkStep().ok());
      logits = decoder->Step();
    }
  }
}

TEST_F(InferenceTest, StepsOfGenerationHaveOneGraph) {
  Make(SmallLlama("llama"));
  const Metrics metrics = Of(Generate(tracer, *model, 4, /*fetch=*/false));
  EXPECT_EQ(metrics.count("token 0 3"), 1u);
  EXPECT_EQ(Counter("UncachedCompile"), 2);  // the prompt, and a step
  EXPECT_EQ(Counter("CachedCompile"), 2);
  EXPECT_FALSE(Generate(tracer, *model, 5).ok());
  Make(Small("gpt2"));
  EXPECT_FALSE(Generate(tracer, *model, 1).ok());
}

TEST_F(InferenceTest, EvaluationCountsRightPredictions) {
  Make({.name = "mlp", .batch = 4, .image = 4, .classes = 3, .hidden = 8});
  TrainingOptions training;
  training.steps = 40;
  training.lr = 0.1;
  Trained(training);
  const Metrics learned = Of(Evaluate(tracer, *model, 1));
  EXPECT_EQ(learned.at("accuracy"), 1);
  EXPECT_LT(learned.at("loss"), 0.1);
  EXPECT_EQ(learned.count("perplexity"), 0u);
  Make(Small("gpt2"));
  const Metrics language = Of(Evaluate(tracer, *model, 2));
  EXPECT_NEAR(language.at("perplexity"), std::exp(language.at("loss")), 1e-9);
}

TEST_F(InferenceTest, AccumulatedBatchesAreOneOfTheirExamples) {
  const auto losses = [&](int64_t batch, int64_t accumulate) {
    Make({.name = "mlp", .batch = batch, .image = 4, .classes = 3, .hidden = 8});
    TrainingOptions training;
    training.steps = 3;
    training.accumulate = accumulate;
    return Trained(training);
  };
  const Metrics whole = losses(6, 1), parts = losses(2, 3);
  for (const char* key : {"loss_step 0", "loss_step 2", "param_l2", "delta_l2"}) {
    EXPECT_NEAR(whole.at(key), parts.at(key), 1e-5 * std::abs(whole.at(key))) << key;
  }
}

TEST_F(InferenceTest, DropoutAndSmoothingActInTrainingAlone) {
  ModelConfig wanted = Small("gpt2");
  wanted.dropout = kPublishedDropout;
  Make(wanted);
  EXPECT_EQ(config.dropout, 0.1);
  const Metrics first = Of(Infer(tracer, *model, 1)), second = Of(Infer(tracer, *model, 1));
  EXPECT_EQ(first.at("logits_sum"), second.at("logits_sum"));
  TrainingOptions training;
  training.lr = 0;
  training.momentum = 0;
  training.steps = 2;
  const Metrics dropped = Trained(training);
  EXPECT_NE(dropped.at("loss_step 0"), dropped.at("loss_step 1"));
  Make(Small("gpt2"));
  const Metrics plain = Trained(training);
  EXPECT_EQ(plain.at("loss_step 0"), plain.at("loss_step 1"));
  training.label_smoothing = 1;  // the cross entropy with the uniform distribution
  EXPECT_NE(Trained(training).at("loss"), plain.at("loss"));
  EXPECT_FALSE(Complete({.name = "mlp", .dropout = 0.5}).ok());
}

TEST_F(InferenceTest, WarmupRisesToTheSchedule) {
  const nn::LrSchedule schedule = nn::WithWarmup(nn::StepLr(0.8, 2, 0.5), 4);
  const double expected[] = {0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.4, 0.4, 0.2};
  for (int64_t step = 0; step < 9; ++step) EXPECT_NEAR(schedule(step).lr, expected[step], 1e-12) << step;
}

TEST_F(InferenceTest, InitialValuesHaveThePublishedSpread) {
  struct Spread {
    const char* model;
    const char* parameter;
    double deviation;
    double bound;  // 0: none
  };
  const double linear = std::sqrt(1.0 / 512);  // of torch.nn.Linear with 512 inputs
  const Spread spreads[] = {
      {"resnet18", "conv1.weight", std::sqrt(2.0 / (64 * 49)), 0},
      {"resnet18", "fc.weight", linear / std::sqrt(3.0), linear},
      {"resnet18", "fc.bias", linear / std::sqrt(3.0), linear},
      {"mobilenet_v2", "classifier.1.weight", 0.01, 0},
      {"gpt2", "blocks.0.qkv.weight", 0.02, 0},
      {"gpt2", "blocks.0.proj.weight", 0.02 / std::sqrt(24.0), 0},
      {"vit", "blocks.1.fc1.weight", 0.02 * 0.88, 0.04},
      {"t5", "encoder.block.0.layer.1.DenseReluDense.wo.weight", 1 / std::sqrt(2048.0), 0},
  };
  for (const Spread& s : spreads) {
    Make({.name = s.model}, PublishedInitializer(*Complete({.name = s.model}), 5));
    const auto& all = registry->parameters();
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == s.parameter; });
    ASSERT_NE(at, all.end()) << s.parameter;
    const std::vector<double> values = Values(at->tensor);
    double squares = 0, largest = 0;
    for (double v : values) {
      squares += v * v;
      largest = std::max(largest, std::abs(v));
    }
    const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
    EXPECT_NEAR(deviation, s.deviation, (values.size() > 5000 ? 0.03 : 0.1) * s.deviation) << s.parameter;
    if (s.bound > 0) {
      EXPECT_LE(largest, s.bound) << s.parameter;
    }
  }
}

}  // namespace
}  // namespace hlokit::lazy::models
