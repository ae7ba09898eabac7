// SPDX-License-Identifier: Apache-2.0
// Optimizers, schedules, clipping and state dicts, against torch's formulas.
#include <cmath>
#include <numbers>

#include "tests/unit/temporary_folder.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/models/model.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/nn/optimizer.h"
#include "tracer/nn/state_dict.h"

namespace hlokit::lazy::nn {
namespace {

constexpr double kPi = std::numbers::pi;

class TrainingTest : public TracingTest {
 protected:
  // Two parameters whose gradients at each step are their values times 2 and 3, as those of a quadratic loss.
  void SetUp() override {
    a_ = Vector({1, -2});
    b_ = Vector({0.5, 4});
    a_.set_requires_grad(true);
    b_.set_requires_grad(true);
  }
  void Run(Optimizer* optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer->ZeroGrad();
      ASSERT_TRUE((Sum(a_ * a_) + Sum(b_ * b_) * Scalar(1.5)).Backward().ok());
      optimizer->Step();
      ASSERT_TRUE(tracer.MarkStep().ok());
    }
  }
  // Runs the same for one number in double; update(gradient, value) returns the new value.
  template <typename Update>
  static double Expected(double start, double slope, int steps, Update update) {
    double x = start;
    for (int i = 0; i < steps; ++i) x = update(slope * x, x);
    return x;
  }
  template <typename MakeUpdate>
  void Check(MakeUpdate make, int steps) {
    const std::vector<double> a = Values(a_), b = Values(b_);
    EXPECT_NEAR(a[0], Expected(1, 2, steps, make()), 1e-6);
    EXPECT_NEAR(a[1], Expected(-2, 2, steps, make()), 2e-6);
    EXPECT_NEAR(b[0], Expected(0.5, 3, steps, make()), 1e-6);
    EXPECT_NEAR(b[1], Expected(4, 3, steps, make()), 4e-6);
  }

  Tensor a_, b_;
};

TEST_F(TrainingTest, SgdIsItsFormula) {
  for (bool nesterov : {false, true}) {
    SetUp();
    const SgdOptions o{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov};
    Sgd sgd({a_, b_}, o);
    Run(&sgd, 6);
    Check(
        [&] {
          return [o, buffer = 0.0, first = true](double g, double x) mutable {
            g += o.weight_decay * x;
            buffer = first ? g : o.momentum * buffer + g;
            first = false;
            return x - o.lr * (o.nesterov ? g + o.momentum * buffer : buffer);
          };
        },
        6);
  }
}

TEST_F(TrainingTest, AdamAndAdamWAreTheirFormulas) {
  for (const auto& [decoupled, capturable] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    SetUp();
    const AdamOptions o{.lr = 0.1, .weight_decay = 0.02, .decoupled = decoupled, .capturable = capturable};
    Adam adam({a_, b_}, o);
    Run(&adam, 6);
    Check(
        [&] {
          return [o, m = 0.0, v = 0.0, t = 0](double g, double x) mutable {
            ++t;
            if (o.decoupled) x *= 1 - o.lr * o.weight_decay;
            if (!o.decoupled) g += o.weight_decay * x;
            m = o.beta1 * m + (1 - o.beta1) * g;
            v = o.beta2 * v + (1 - o.beta2) * g * g;
            const double m_hat = m / (1 - std::pow(o.beta1, t)), v_hat = v / (1 - std::pow(o.beta2, t));
            return x - o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
          };
        },
        6);
  }
}

TEST_F(TrainingTest, AScheduledRateCompilesNothingNew) {
  Sgd sgd({a_, b_}, {.lr = 0.1, .momentum = 0.9});
  LrScheduler scheduler(&sgd, ExponentialLr(0.1, 0.5));
  for (int i = 0; i < 5; ++i) {
    Run(&sgd, 1);
    scheduler.Step();
  }
  EXPECT_EQ(Counter("UncachedCompile"), 2);  // with and without momentum buffers
  EXPECT_EQ(Counter("CachedCompile"), 3);
}

// ---- schedules, against torch's recursive forms ----

template <typename Next>
void CheckSchedule(const LrSchedule& schedule, double first, int steps, Next next) {
  double lr = first;
  for (int step = 0; step < steps; ++step) {
    if (step > 0) lr = next(step, lr);
    EXPECT_NEAR(schedule(step).lr, lr, 1e-12) << "at step " << step;
  }
}

TEST(LrScheduleTest, TheGeometricOnes) {
  CheckSchedule(StepLr(0.5, 3, 0.1), 0.5, 12, [](int t, double lr) { return t % 3 == 0 ? lr * 0.1 : lr; });
  CheckSchedule(MultiStepLr(0.5, {7, 2}, 0.5), 0.5, 12,
                [](int t, double lr) { return t == 2 || t == 7 ? lr / 2 : lr; });
  CheckSchedule(ExponentialLr(2, 0.9), 2, 12, [](int, double lr) { return lr * 0.9; });
}

TEST(LrScheduleTest, CosineAnnealing) {
  constexpr int kMax = 5;
  constexpr double kBase = 0.3, kLeast = 0.01;
  CheckSchedule(CosineAnnealingLr(kBase, kMax, kLeast), kBase, 14, [](int t, double lr) {
    if ((t - 1 - kMax) % (2 * kMax) == 0) return lr + (kBase - kLeast) * (1 - std::cos(kPi / kMax)) / 2;
    return (1 + std::cos(kPi * t / kMax)) / (1 + std::cos(kPi * (t - 1) / kMax)) * (lr - kLeast) + kLeast;
  });
}

TEST(LrScheduleTest, LinearWarmUp) {
  CheckSchedule(LinearLr(0.8, 0.25, 1, 4), 0.2, 9, [](int t, double lr) {
    return t > 4 ? lr : lr * (1 + (1 - 0.25) / (4 * 0.25 + (t - 1) * (1 - 0.25)));
  });
}

TEST(LrScheduleTest, OneCycleReachesItsCorners) {
  const LrSchedule cycle = OneCycleLr({.max_lr = 1, .total_steps = 20});
  EXPECT_NEAR(cycle(0).lr, 0.04, 1e-15);
  EXPECT_NEAR(*cycle(0).momentum, 0.95, 1e-15);
  EXPECT_DOUBLE_EQ(cycle(5).lr, 1);  // 0.3 * 20 - 1
  EXPECT_DOUBLE_EQ(*cycle(5).momentum, 0.85);
  EXPECT_NEAR(cycle(19).lr, 0.04 / 1e4, 1e-15);
  EXPECT_NEAR(*cycle(19).momentum, 0.95, 1e-15);
  EXPECT_NEAR(cycle(12).lr, 4e-6 + (1 - 4e-6) / 2 * (1 + std::cos(kPi * 7 / 14)), 1e-12);
  const LrSchedule straight = OneCycleLr({.max_lr = 1, .total_steps = 11, .pct_start = 0.5, .cosine = false});
  EXPECT_NEAR(straight(2).lr, 0.04 + 0.96 * 2 / 4.5, 1e-12);
}

TEST(LrScheduleTest, TextNamesThem) {
  EXPECT_DOUBLE_EQ((*ParseLrSchedule("multistep:2;4,0.5", 8))(4).lr, 2);
  EXPECT_DOUBLE_EQ((*ParseLrSchedule("linear:0.5,1,2", 8))(1).lr, 6);
  EXPECT_EQ(ParseLrSchedule("cosin:3", 1).status().message(), "unknown schedule `cosin`; did you mean `cosine`?");
  EXPECT_EQ(ParseLrSchedule("step:0", 1).status().message(),
            "expected a positive number of steps for the schedule step");
  EXPECT_EQ(ParseLrSchedule("step:x", 1).status().message(), "expected numbers in the schedule `step:x`");
  EXPECT_EQ(ParseLrSchedule("exponential", 1).status().message(),
            "expected 1 to 1 numbers for the schedule exponential");
}

// ---- clipping ----

TEST_F(TrainingTest, ClippingScalesByTheNormOfAllGradients) {
  a_.set_grad(Vector({3, 0}));
  b_.set_grad(Vector({0, 4}));
  const Tensor norm = ClipGradNorm({a_, b_}, 1);
  EXPECT_EQ(Values(norm), (std::vector<double>{5}));
  EXPECT_NEAR(Values(a_.grad())[0], 3.0 / 5, 1e-6);
  EXPECT_NEAR(Values(b_.grad())[1], 4.0 / 5, 1e-6);
  ClipGradNorm({a_, b_}, 10);  // within the limit already
  EXPECT_NEAR(Values(b_.grad())[1], 4.0 / 5, 1e-6);
  EXPECT_NEAR(Values(ClipGradNorm({a_, b_}, 0.1, std::numeric_limits<double>::infinity()))[0], 0.8, 1e-6);
  EXPECT_NEAR(Values(a_.grad())[0], 0.075, 1e-6);
  EXPECT_FALSE(ClipGradNorm({Vector({1})}, 1).defined());
}

TEST_F(TrainingTest, ClippingByValue) {
  a_.set_grad(Vector({3, -0.25}));
  ClipGradValue({a_, b_}, 0.5);
  EXPECT_EQ(Values(a_.grad()), (std::vector<double>{0.5, -0.25}));
}

TEST_F(TrainingTest, GradientsOfOneOriginAreTensorsOfTheirOwn) {
  ASSERT_TRUE(Sum(a_ + b_).Backward().ok());
  const NoGradGuard no_grad;
  WriteInPlace(a_.grad(), a_.grad() * Scalar(3));
  EXPECT_EQ(Values(a_.grad()), (std::vector<double>{3, 3}));
  EXPECT_EQ(Values(b_.grad()), (std::vector<double>{1, 1}));
}

// ---- state ----

class StateTest : public TracingTest {
 protected:
  std::unique_ptr<models::Model> Make(const std::string& name, ParameterRegistry* registry) {
    absl::StatusOr<models::ModelConfig> config =
        models::Complete({.name = name, .batch = 1, .image = 32, .classes = 3, .hidden = name == "mlp" ? 4 : 0});
    EXPECT_TRUE(config.ok());
    return models::MakeModel(*config, registry);
  }
  ParameterRegistry Start(double gain) {
    return {&tracer, ElementType::kF32, PatternInitializer(InitPattern::kHash, gain)};
  }
};

TEST_F(StateTest, NamesAndOrderAreTorchvisions) {
  ParameterRegistry registry = Start(6);
  Make("resnet18", &registry);
  std::vector<std::string> names;
  for (const NamedTensor& t : registry.state()) names.push_back(t.name);
  ASSERT_EQ(names.size(), 122);
  EXPECT_EQ((std::vector<std::string>(names.begin(), names.begin() + 7)),
            (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
                                      "bn1.num_batches_tracked", "layer1.0.conv1.weight"}));
  EXPECT_EQ(names.back(), "fc.bias");
  EXPECT_NE(std::find(names.begin(), names.end(), "layer2.0.downsample.1.num_batches_tracked"), names.end());
}

TEST_F(StateTest, AFileCarriesAModelOver) {
  const TemporaryFolder directory;
  const std::string path = (directory.path() / "state.safetensors").string();
  ParameterRegistry from = Start(6), to = Start(3);
  Make("mlp", &from);
  Make("mlp", &to);
  ASSERT_TRUE(SaveState(path, from.state()).ok());
  EXPECT_NE(Values(from.parameters()[0].tensor), Values(to.parameters()[0].tensor));
  const absl::Status loaded = LoadState(path, to.state());
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  for (size_t i = 0; i < from.state().size(); ++i) {
    EXPECT_EQ(Values(from.state()[i].tensor), Values(to.state()[i].tensor));
  }
  EXPECT_TRUE(to.parameters()[0].tensor.requires_grad());
}

TEST_F(StateTest, FetchingTakesOneProgramAndReusesNoBuffer) {
  ParameterRegistry registry = Start(6);
  Make("mlp", &registry);
  const NoGradGuard no_grad;
  for (const NamedTensor& t : registry.state()) WriteInPlace(t.tensor, t.tensor * Scalar(2));
  const Tensor other = Vector({1}) + Scalar(3);
  ASSERT_TRUE(FetchState(registry.state()).ok());
  EXPECT_EQ(Counter("UncachedCompile"), 1);
  EXPECT_EQ(tracer.metrics().metric("InputOutputAliasCount")->accumulator, 0);
  EXPECT_EQ(Values(other), (std::vector<double>{4}));
  EXPECT_EQ(Counter("UncachedCompile"), 2);
}

TEST_F(StateTest, WhatDoesNotFitIsSaidAsTorchSaysIt) {
  ParameterRegistry registry = Start(6);
  Make("mlp", &registry);
  Context context;
  std::vector<interp::NamedValue> values = *FetchState(registry.state());
  values[1].value = Literal::Zeros(context.shapes.Array(ElementType::kF32, {7}));
  values[2].name = "fc9.weight";
  const std::vector<double> before = Values(registry.parameters()[0].tensor);
  EXPECT_EQ(LoadState(registry.state(), values).message(),
            "Error(s) in loading state_dict:\n\tMissing key(s) in state_dict: \"fc2.weight\". "
            "\n\tUnexpected key(s) in state_dict: \"fc9.weight\". "
            "\n\tsize mismatch for fc1.bias: copying a param with shape torch.Size([7]) from checkpoint, the shape in "
            "current model is torch.Size([4]).");
  EXPECT_EQ(Values(registry.parameters()[0].tensor), before);
}

TEST_F(TrainingTest, AnOptimizerGoesOnFromItsState) {
  for (bool use_adam : {false, true}) {
    const auto make = [&]() -> std::unique_ptr<Optimizer> {
      if (use_adam) return std::make_unique<Adam>(Tensors{a_, b_}, AdamOptions{.lr = 0.1});
      return std::make_unique<Sgd>(Tensors{a_, b_}, SgdOptions{.lr = 0.05, .momentum = 0.9});
    };
    SetUp();
    std::unique_ptr<Optimizer> whole = make();
    Run(whole.get(), 6);
    const std::vector<double> expected = Values(b_);
    SetUp();
    std::unique_ptr<Optimizer> first = make();
    Run(first.get(), 3);
    const std::vector<interp::NamedValue> state = *FetchState(first->State());
    EXPECT_EQ(state.size(), use_adam ? 6 : 2);
    std::unique_ptr<Optimizer> second = make();
    ASSERT_TRUE(second->LoadState(state).ok());
    Run(second.get(), 3);
    EXPECT_EQ(Values(b_), expected);
    Context context;
    EXPECT_EQ(
        second->LoadState({interp::NamedValue{"0.speed", Literal::Zeros(context.shapes.Scalar(ElementType::kF32))}})
            .message(),
        "the optimizer has no state named 0.speed");
  }
}

}  // namespace
}  // namespace hlokit::lazy::nn
