// SPDX-License-Identifier: Apache-2.0
// Every model traces a training step that lowers to a valid program; small ones fit their batch.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/verify/verifier.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/autograd/backward_context.h"
#include "tracer/models/model.h"
#include "tracer/models/training.h"
#include "tracer/step/executor.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

// Returns convnets in their own size, transformers small.
models::ModelConfig ConfigOf(std::string_view name) {
  models::ModelConfig config{.name = std::string(name), .batch = 1};
  if (name == "vit") {
    config.image = 16;
    config.patch = 8;
    config.classes = 5;
  } else if (name == "mlp") {
    config.hidden = 16;
  }
  if (name == "dlrm") config.vocab = 11;
  if (name == "unet") config.image = 16;
  if (name == "unet" || name == "lstm") config.hidden = 8;
  if (name == "lstm") config.seq = 4;
  const bool shares_heads = name == "llama" || name == "mixtral";
  if (name == "vit" || name.starts_with("bert") || name == "gpt2" || name == "t5" || shares_heads) {
    config.seq = name == "vit" ? 0 : 4;
    config.vocab = name == "vit" ? 0 : 11;
    config.hidden = 8;
    config.layers = 2;
    config.heads = 2;
    config.kv_heads = shares_heads ? 1 : 0;
    config.ffn_hidden = 16;
  }
  return config;
}

class ModelsTest : public ::testing::TestWithParam<std::string> {};

// The loss of a model with zero parameters: nothing is run.
class TracedModelTest : public ModelsTest {
 protected:
  TracedModelTest() : guard(tracer.device()), config(models::Complete(ConfigOf(GetParam()))) {
    if (!config.ok()) return;
    registry.emplace(&tracer, config->type, [](const nn::ParameterSpec&, Literal*) {});
    const std::unique_ptr<models::Model> model = models::MakeModel(*config, &*registry);
    const models::Batch batch = model->MakeBatch(tracer);
    loss = model->Loss(model->Logits(batch, true), batch);
  }
  void SetUp() override {
    ASSERT_TRUE(config.ok()) << config.status().message();
    ASSERT_TRUE(tracer.status().ok()) << tracer.status().message();
  }

  Tracer tracer;
  const DeviceGuard guard;
  const absl::StatusOr<models::ModelConfig> config;
  std::optional<nn::ParameterRegistry> registry;
  Tensor loss;
};

TEST_P(TracedModelTest, IsAStepThatLowersAndVerifies) {
  int64_t count = 0;
  for (const nn::NamedTensor& p : registry->parameters()) count += p.tensor.numel();
  // According to torchvision and the papers.
  const std::map<std::string, int64_t> published = {
      {"alexnet", 61100840},  {"vgg16", 138357544},      {"squeezenet1_1", 1235496}, {"resnet18", 11689512},
      {"resnet50", 25557032}, {"mobilenet_v2", 3504872}, {"mnasnet1_0", 4383312},    {"resnext50_32x4d", 25028904}};
  if (const auto it = published.find(GetParam()); it != published.end()) {
    EXPECT_EQ(count, it->second);
  }

  EXPECT_EQ(loss.numel(), 1);
  const absl::Status backward = loss.Backward();
  ASSERT_TRUE(backward.ok()) << backward.message();
  for (const nn::NamedTensor& p : registry->parameters()) {
    ASSERT_TRUE(p.tensor.grad().defined()) << p.name;
    EXPECT_EQ(p.tensor.grad().sizes(), p.tensor.sizes()) << p.name;
  }
  models::MakeOptimizer({}, *registry)->Step();
  ASSERT_TRUE(tracer.status().ok()) << tracer.status().message();
  Tensors roots = {loss};
  for (const nn::NamedTensor& p : registry->parameters()) roots.push_back(p.tensor);
  const absl::StatusOr<std::unique_ptr<Module>> module =
      LowerSubgraph(*tracer.device(), CollectSubgraphOfTensors(roots), "step");
  ASSERT_TRUE(module.ok()) << module.status().message();
  DiagnosticSink sink;
  VerifyModule(**module, VerifierOptions(), &sink);
  EXPECT_FALSE(sink.has_errors());
}

// After a failed op, gradients are undefined, and so are their derivatives.
TEST_P(TracedModelTest, DerivativesOfUndefinedGradientsComeToTheirEnd) {
  tracer.SetError(absl::InvalidArgumentError("an op failed"));
  std::vector<const Node*> reached = {loss.impl()->grad_fn.get()};
  std::set<const Node*> seen(reached.begin(), reached.end());
  while (!reached.empty()) {
    const Node* const function = reached.back();
    reached.pop_back();
    const Outputs undefined(function->outputs.size());
    BackwardContext call(function, &undefined);
    InfoOf(function->op).derivative(call);
    for (size_t k = 0; k < function->slots.size(); ++k) {
      const SavedVariable& slot = function->slots[k];
      // One undefined gradient of several counts as zeros.
      EXPECT_TRUE(function->outputs.size() > 1 || !call.TakeResult(k).defined()) << SymbolOf(function->op);
      if (const Node* next = slot.edge.node.get(); next != nullptr && seen.insert(next).second) {
        reached.push_back(next);
      }
    }
  }
  EXPECT_EQ(tracer.status().message(), "an op failed");
}

TEST_P(ModelsTest, SmallOnesLearnTheirBatch) {
  models::ModelConfig small = ConfigOf(GetParam());
  if (small.hidden == 0) GTEST_SKIP() << "a convnet of full size";
  small.batch = 2;
  TracerOptions options;
  options.client.evaluator.num_threads = 1;
  Tracer tracer(options);
  const DeviceGuard guard(tracer.device());
  const absl::StatusOr<models::ModelConfig> config = models::Complete(small);
  ASSERT_TRUE(config.ok()) << config.status().message();
  nn::ParameterRegistry registry(&tracer, config->type, nn::PatternInitializer(InitPattern::kHash, 3));
  const std::unique_ptr<models::Model> model = models::MakeModel(*config, &registry);
  models::TrainingOptions training;
  training.steps = 4;
  training.optimizer = "adam";
  const absl::StatusOr<std::vector<models::TrainingMetric>> figures = models::Train(tracer, *model, registry, training);
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  std::vector<double> losses;
  for (const models::TrainingMetric& figure : *figures) {
    EXPECT_TRUE(std::isfinite(figure.value)) << figure.key;
    if (figure.key.starts_with("loss_step ")) losses.push_back(figure.value);
  }
  ASSERT_EQ(losses.size(), 4u);
  EXPECT_LT(losses.back(), losses.front());
}

std::vector<std::string> AllModels() {
  std::vector<std::string> names;
  for (std::string_view name : models::ModelNames()) names.emplace_back(name);
  return names;
}
std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, ModelsTest, ::testing::ValuesIn(AllModels()), TestName);
INSTANTIATE_TEST_SUITE_P(All, TracedModelTest, ::testing::ValuesIn(AllModels()), TestName);

}  // namespace
}  // namespace hlokit::lazy
