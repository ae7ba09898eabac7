// SPDX-License-Identifier: Apache-2.0
// Optimizers: values of torch 1.13 for those that it has, the published formulas of Adafactor and LAMB; groups of
// parameters; checkpoints.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/nn/adaptive_optimizers.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/nn/optimizer.h"
#include "tracer/nn/state_dict.h"

namespace hlokit::lazy::nn {
namespace {

using Numbers = std::vector<double>;

class OptimizersTest : public TracingTest {
 protected:
  void SetUp() override {
    a_ = Vector({1, -2}).set_requires_grad(true);
    b_ = Vector({0.5, 4}).set_requires_grad(true);
  }
  // Steps on the sum of squares of a and 1.5 times that of b.
  void Run(Optimizer* optimizer, int steps = 6) {
    for (int i = 0; i < steps; ++i) {
      optimizer->ZeroGrad();
      ASSERT_TRUE((Sum(a_ * a_) + Sum(b_ * b_) * Scalar(1.5)).Backward().ok());
      optimizer->Step();
      ASSERT_TRUE(tracer.MarkStep().ok());
    }
  }
  void Expect(const Numbers& wanted) {
    Numbers got = Values(a_);
    for (double v : Values(b_)) got.push_back(v);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], wanted[i], 2e-6) << i;
  }

  Tensor a_, b_;
};

TEST_F(OptimizersTest, RmsProp) {
  RmsProp optimizer({a_, b_}, {});
  Run(&optimizer);
  Expect({0.6617246502, -1.647224193, 0.1950295276, 3.640531321});
}
TEST_F(OptimizersTest, RmsPropCenteredWithMomentum) {
  RmsProp optimizer({a_, b_}, {.lr = 0.05, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5, .centered = true});
  Run(&optimizer);
  Expect({0.08417789466, -0.9081093326, -0.05979767143, 2.836406694});
}
TEST_F(OptimizersTest, Adagrad) {
  Adagrad optimizer({a_, b_}, {});
  Run(&optimizer);
  Expect({0.9638492461, -1.963724331, 0.4641032919, 3.963662397});
}
TEST_F(OptimizersTest, AdagradWithDecays) {
  Adagrad optimizer({a_, b_}, {.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator_value = 0.5});
  Run(&optimizer);
  Expect({0.7457990125, -1.732323765, 0.2678992414, 3.726902065});
}

// ---- groups ----

TEST_F(OptimizersTest, GroupsHaveTheirOwnOptions) {
  Sgd optimizer({{{a_}, {.lr = 0.1, .momentum = 0.5}}, {{b_}, {.lr = 0.05, .weight_decay = 0.2}}});
  Run(&optimizer);
  Expect({-0.050406, 0.100812, 0.1756490158, 1.405192126});
}
TEST_F(OptimizersTest, GroupsOfAdamW) {
  const AdamOptions first = {.lr = 0.1, .weight_decay = 0.01, .decoupled = true};
  const AdamOptions second = {.lr = 0.05, .weight_decay = 0.2, .decoupled = true};
  Adam optimizer({{{a_}, first}, {{b_}, second}});
  Run(&optimizer);
  Expect({0.4099384368, -1.394781757, 0.1862227407, 3.474257855});
}
TEST_F(OptimizersTest, SchedulesSetTheRatesOfGroups) {
  Sgd optimizer({{{a_}, {.lr = 1}}, {{b_}, {.lr = 2}}});
  LrScheduler all(&optimizer, ExponentialLr(0.5, 0.5));
  EXPECT_EQ(optimizer.lr(0), 0.5);
  EXPECT_EQ(optimizer.lr(1), 0.5);
  LrScheduler each(&optimizer, std::vector<LrSchedule>{ExponentialLr(1, 0.5), ConstantLr(3)});
  each.Step();
  EXPECT_EQ(optimizer.lr(0), 0.5);
  EXPECT_EQ(optimizer.lr(1), 3);
  optimizer.set_lr(0.25);
  EXPECT_EQ(optimizer.lr(0), 0.25);
  EXPECT_EQ(optimizer.lr(1), 0.25);
  EXPECT_EQ(optimizer.parameters().size(), 2u);
}

// ---- formulas in double ----

double Norm(const Numbers& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

struct Lambs {
  Numbers m, v;
  int t = 0;
  void Step(const LambOptions& o, const Numbers& g, Numbers* x) {
    ++t;
    m.resize(x->size());
    v.resize(x->size());
    Numbers update;
    for (size_t i = 0; i < x->size(); ++i) {
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(o.beta1, t)), v_hat = v[i] / (1 - std::pow(o.beta2, t));
      update.push_back(m_hat / (std::sqrt(v_hat) + o.eps) + o.weight_decay * (*x)[i]);
    }
    const double norm = Norm(*x), size = Norm(update), ratio = norm > 0 && size > 0 ? norm / size : 1;
    for (size_t i = 0; i < x->size(); ++i) (*x)[i] -= o.lr * ratio * update[i];
  }
};

TEST_F(OptimizersTest, Lamb) {
  const LambOptions o = {.lr = 0.05, .weight_decay = 0.1};
  Lamb optimizer({a_, b_}, o);
  Run(&optimizer);
  Numbers a = {1, -2}, b = {0.5, 4};
  Lambs of_a, of_b;
  for (int i = 0; i < 6; ++i) {
    of_a.Step(o, {2 * a[0], 2 * a[1]}, &a);
    of_b.Step(o, {3 * b[0], 3 * b[1]}, &b);
  }
  Expect({a[0], a[1], b[0], b[1]});
  EXPECT_EQ(AdamOptions().eps, 1e-8);
  EXPECT_EQ(LambOptions().eps, 1e-6);
}
TEST_F(OptimizersTest, LambLeavesZeros) {
  Tensor zero = Vector({0, 0}).set_requires_grad(true);
  zero.set_grad(Vector({1, -1}));
  Lamb optimizer({zero}, {.lr = 0.5});
  optimizer.Step();
  const Numbers moved = Values(zero);
  EXPECT_NEAR(moved[0], -0.5, 1e-5);
  EXPECT_NEAR(moved[1], 0.5, 1e-5);
}

// A matrix of `rows` by `columns`, or a vector (rows 1, `factored` false).
struct Adafactors {
  size_t rows, columns;
  bool factored;
  Numbers row, column, full;
  int t = 0;
  void Step(const AdafactorOptions& o, const Numbers& g, Numbers* x) {
    ++t;
    row.resize(rows);
    column.resize(columns);
    full.resize(x->size());
    const double n = static_cast<double>(x->size()), eps1 = 0x1p-23;
    const double weight = std::pow(t, o.beta2_decay), rate = std::min(o.lr, 1 / std::sqrt(t));
    const double alpha = std::max(o.eps2, Norm(*x) / std::sqrt(n)) * rate;
    for (double& value : *x) value *= 1 - o.lr * o.weight_decay;
    Numbers variance(x->size());
    if (factored) {
      for (size_t r = 0; r < rows; ++r) {
        double mean = 0;
        for (size_t c = 0; c < columns; ++c) mean += g[r * columns + c] * g[r * columns + c];
        row[r] += weight * (mean / static_cast<double>(columns) - row[r]);
      }
      for (size_t c = 0; c < columns; ++c) {
        double mean = 0;
        for (size_t r = 0; r < rows; ++r) mean += g[r * columns + c] * g[r * columns + c];
        column[c] += weight * (mean / static_cast<double>(rows) - column[c]);
      }
      double mean = 0;
      for (double value : row) mean += value / static_cast<double>(rows);
      for (size_t i = 0; i < x->size(); ++i)
        variance[i] = row[i / columns] * column[i % columns] / std::max(mean, eps1);
    } else {
      for (size_t i = 0; i < x->size(); ++i) variance[i] = full[i] += weight * (g[i] * g[i] - full[i]);
    }
    Numbers update;
    for (size_t i = 0; i < x->size(); ++i) update.push_back(g[i] / std::sqrt(std::max(variance[i], eps1 * eps1)));
    const double excess = std::max(1.0, Norm(update) / (std::sqrt(n) * o.d));
    for (size_t i = 0; i < x->size(); ++i) (*x)[i] -= alpha / excess * update[i];
  }
};

TEST_F(OptimizersTest, Adafactor) {
  for (const AdafactorOptions& o : {AdafactorOptions(), AdafactorOptions{.lr = 0.2, .d = 0.5, .weight_decay = 0.1}}) {
    Numbers matrix = {1, -2, 3, 0.5, -1, 0.25}, vector = {0.5, -4};
    Tensor m = F32({2, 3}, {1, -2, 3, 0.5, -1, 0.25}).set_requires_grad(true);
    Tensor v = Vector({0.5, -4}).set_requires_grad(true);
    Adafactor optimizer({m, v}, o);
    Adafactors of_matrix = {2, 3, true, {}, {}, {}}, of_vector = {1, 2, false, {}, {}, {}};
    for (int step = 0; step < 5; ++step) {
      optimizer.ZeroGrad();
      ASSERT_TRUE((Sum(m * m * m) + Sum(v * v)).Backward().ok());
      optimizer.Step();
      ASSERT_TRUE(tracer.MarkStep().ok());
      Numbers g, gv;
      for (double x : matrix) g.push_back(3 * x * x);
      for (double x : vector) gv.push_back(2 * x);
      of_matrix.Step(o, g, &matrix);
      of_vector.Step(o, gv, &vector);
    }
    const Numbers got = Values(m), got_v = Values(v);
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], matrix[i], 5e-6) << i;
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got_v[i], vector[i], 5e-6) << i;
  }
}

// ---- checkpoints ----

// Half of the steps, and the rest by an optimizer that starts from the state of the first.
template <typename Make>
Numbers TwoHalves(Make make, const std::function<void(Optimizer*, int)>& run, bool resume,
                  const std::function<Numbers()>& values) {
  const std::unique_ptr<Optimizer> first = make();
  run(first.get(), 3);
  if (!resume) {
    run(first.get(), 3);
    return values();
  }
  const absl::StatusOr<std::vector<interp::NamedValue>> state = FetchState(first->State());
  EXPECT_TRUE(state.ok());
  const std::unique_ptr<Optimizer> second = make();
  const absl::Status loaded = second->LoadState(*state);
  EXPECT_TRUE(loaded.ok()) << loaded.message();
  run(second.get(), 3);
  return values();
}

TEST_F(OptimizersTest, StateCarriesOver) {
  const auto check = [&](auto make) {
    const auto run = [&](Optimizer* o, int steps) { Run(o, steps); };
    const auto values = [&] { return Values(a_ + b_); };
    SetUp();
    const Numbers whole = TwoHalves(make, run, false, values);
    SetUp();
    EXPECT_EQ(TwoHalves(make, run, true, values), whole);
  };
  const auto parameters = [&] { return Tensors{a_, b_}; };
  check([&] { return std::make_unique<Sgd>(parameters(), SgdOptions{.momentum = 0.9}); });
  check([&] { return std::make_unique<Adam>(parameters(), AdamOptions()); });
  check([&] { return std::make_unique<RmsProp>(parameters(), RmsPropOptions{.momentum = 0.5, .centered = true}); });
  check([&] { return std::make_unique<Adagrad>(parameters(), AdagradOptions{.lr_decay = 0.1}); });
  check([&] { return std::make_unique<Adafactor>(parameters(), AdafactorOptions()); });
  check([&] { return std::make_unique<Lamb>(parameters(), LambOptions()); });
  check([&] { return std::make_unique<Adafactor>(parameters(), AdafactorOptions{.capturable = true}); });
  check([&] { return std::make_unique<Lamb>(parameters(), LambOptions{.capturable = true}); });
}

TEST_F(OptimizersTest, ACountOnTheDeviceGivesTheSameSteps) {
  const auto check = [&](auto make) {
    Numbers results[2];
    for (bool capturable : {false, true}) {
      SetUp();
      const std::unique_ptr<Optimizer> optimizer = make(capturable);
      Run(optimizer.get(), 5);
      results[capturable] = Values(a_ + b_);
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (size_t i = 0; i < results[0].size(); ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-6) << i;
  };
  const auto parameters = [&] { return Tensors{a_, b_}; };
  check([&](bool capturable) {
    return std::make_unique<Adafactor>(parameters(), AdafactorOptions{.lr = 0.6, .capturable = capturable});
  });
  check([&](bool capturable) {
    return std::make_unique<Lamb>(parameters(), LambOptions{.weight_decay = 0.1, .capturable = capturable});
  });
}

TEST_F(OptimizersTest, FactorsHaveShapesOfTheirOwn) {
  Tensor m = F32({2, 3}, {1, 2, 3, 4, 5, 6}).set_requires_grad(true);
  m.set_grad(OnesLike(m));
  Adafactor optimizer({m}, {});
  optimizer.Step();
  std::vector<interp::NamedValue> state = *FetchState(optimizer.State());
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[1].name, "0.row_var");
  EXPECT_EQ(state[1].value.shape().dims(), (Dims(IntList{2, 1})));
  EXPECT_EQ(state[2].value.shape().dims(), (Dims(IntList{1, 3})));
  std::swap(state[1].value, state[2].value);
  EXPECT_EQ(optimizer.LoadState(state).message(), "the optimizer's 0.row_var has another shape than its parameter");
}

}  // namespace
}  // namespace hlokit::lazy::nn
