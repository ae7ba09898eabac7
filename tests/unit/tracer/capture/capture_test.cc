// SPDX-License-Identifier: Apache-2.0
// Captured functions: tracing, replay and graph breaks.
#include "tracer/capture/capture.h"

#include <cmath>

#include "absl/strings/match.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/capture/compile_region.h"
#include "tracer/nn/optimizer.h"
#include "tracer/step/execution_log.h"

namespace hlokit::lazy {
namespace {

using CaptureTest = TracingTest;

// Returns the number of ops traced so far.
int64_t OpCalls(Tracer& tracer) {
  tracer.PublishCounters();
  int64_t calls = 0;
  for (const std::string& name : tracer.metrics().counter_names()) {
    if (name.starts_with("xla::")) calls += *tracer.metrics().counter(name);
  }
  return calls;
}

TEST_F(CaptureTest, InferenceCompilesOnceAndIsTracedOnce) {
  const Tensor w = F32({2, 2}, {1, 2, 3, 4});
  CapturedFunction f = Compile(&tracer, [&](const Tensors& x) -> Tensors { return {Relu(Matmul(x[0], w))}; });
  int64_t after_first = 0;
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<Tensors> y = f({F32({1, 2}, {1, static_cast<float>(i)})});
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(Values((*y)[0]), (std::vector<double>{1.0 + 3 * i, 2.0 + 4 * i}));
    if (i == 0) after_first = OpCalls(tracer);
  }
  EXPECT_EQ(OpCalls(tracer), after_first);
  EXPECT_EQ(Samples("CompileTime"), 1);
  EXPECT_EQ(Samples("ExecuteTime"), 4);
  EXPECT_EQ(Samples("RunCachedGraphInputData"), 4);
  EXPECT_EQ(Samples("RunCachedGraphOutputData"), 4);
  EXPECT_EQ(Counter("DynamoExtractCompiledGraph"), 1);
  EXPECT_EQ(f.replays(), 3);
}

TEST_F(CaptureTest, AViewThatIsClosedOverShowsWhatItsBaseBecame) {
  const Tensor base = Vector({1, 2, 3});
  const Tensor view = lazy::InvokeOp(Op::slice_Tensor, base, 0, 1, 3, 1);
  CapturedFunction f = Compile(&tracer, [&](const Tensors& x) -> Tensors { return {x[0] + view}; });
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<Tensors> y = f({Vector({0, 10})});
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(Values((*y)[0]), (std::vector<double>{2.0 + i, 13.0 + i}));
    WriteInPlace(base, base + Scalar(1));
  }
}

TEST_F(CaptureTest, AnArgumentThatIsAViewIsWrittenInItsOwnBase) {
  CapturedFunction f = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    WriteInPlace(x[0], x[0] * Scalar(2));
    return {Exp(x[0])};
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor base = Vector({1, 2, 3});
    ASSERT_TRUE(f({Select(base, 0, i)}).ok());
    std::vector<double> wanted = {1, 2, 3};
    wanted[static_cast<size_t>(i)] *= 2;
    EXPECT_EQ(Values(base), wanted) << i;
  }
}

TEST_F(CaptureTest, ViewsShowWhatACapturedFunctionWrites) {
  const Tensor base = Vector({1, 2, 3});
  const Tensor view = lazy::InvokeOp(Op::slice_Tensor, base, 0, 1, 3, 1);
  CapturedFunction f = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    WriteInPlace(base, base + x[0]);
    WriteInPlace(x[1], x[1] * Scalar(2));
    return {Exp(x[0])};
  });
  const Tensor argument = Vector({1, 1});
  const Tensor part = lazy::InvokeOp(Op::slice_Tensor, argument, 0, 1, 2, 1);
  for (int i = 1; i < 5; ++i) {
    ASSERT_TRUE(f({Vector({1, 1, 1}), argument}).ok());
    EXPECT_EQ(Values(view), (std::vector<double>{2.0 + i, 3.0 + i})) << i;
    EXPECT_EQ(Values(part), (std::vector<double>{std::pow(2, i)})) << i;
  }
  EXPECT_GT(f.replays(), 0);
}

TEST_F(CaptureTest, ANewShapeCompilesOnceMore) {
  CapturedFunction f = Compile(&tracer, [](const Tensors& x) -> Tensors { return {Exp(x[0])}; });
  for (int64_t n : {3, 3, 4, 5, 4}) {
    absl::StatusOr<Tensors> y = f({F32({n}, std::vector<float>(static_cast<size_t>(n), 0))});
    ASSERT_TRUE(y.ok());
    EXPECT_EQ(Values((*y)[0]), std::vector<double>(static_cast<size_t>(n), 1));
  }
  EXPECT_EQ(Samples("CompileTime"), 3);
  EXPECT_EQ(f.replays(), 2);
}

TEST_F(CaptureTest, PendingArgumentsRunBeforeTheCall) {
  CapturedFunction f = Compile(&tracer, [](const Tensors& x) -> Tensors { return {Exp(x[0])}; });
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(f({Vector({0, 0}) * Vector({1, 2})}).ok());
  EXPECT_EQ(Counter("DynamoSyncInputExecuteTime"), 2);
  EXPECT_EQ(Counter("UncachedCompile"), 2);
  EXPECT_EQ(f.replays(), 1);
}

TEST_F(CaptureTest, TensorsThatAreWrittenInPlaceAreWrittenByReplays) {
  const Tensor total = Vector({0, 0});
  CapturedFunction f = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    WriteInPlace(total, total + x[0]);
    WriteInPlace(x[0], x[0] + x[0]);
    return {total, x[0]};
  });
  const Tensor x = Vector({1, 2});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(f({x}).ok());
  EXPECT_EQ(f.replays(), 2);
  EXPECT_EQ(Values(total), (std::vector<double>{7, 14}));
  EXPECT_EQ(Values(x), (std::vector<double>{8, 16}));
}

// Forward, backward and update of a linear layer, captured and not.
class Training {
 public:
  Training(Tracer* tracer, Tensor weight, std::unique_ptr<nn::Optimizer> optimizer)
      : tracer_(tracer), weight_(std::move(weight)), optimizer_(std::move(optimizer)) {}
  Tensor Step(const Tensor& x) {
    optimizer_->ZeroGrad();
    const Tensor loss = Mean(Relu(Matmul(x, weight_)));
    if (absl::Status s = loss.Backward(); !s.ok()) tracer_->SetError(s);
    optimizer_->Step();
    return loss;
  }
  const Tensor& weight() const { return weight_; }
  nn::Optimizer& optimizer() { return *optimizer_; }

 private:
  Tracer* tracer_;
  Tensor weight_;
  std::unique_ptr<nn::Optimizer> optimizer_;
};

class WholeStepTest : public TracingTest {
 protected:
  Training Make(bool adam) {
    Tensor w = F32({2, 2}, {1, 2, 3, 4});
    w.set_requires_grad(true);
    std::unique_ptr<nn::Optimizer> optimizer;
    if (adam) {
      optimizer = std::make_unique<nn::Adam>(Tensors{w}, nn::AdamOptions{});
    } else {
      optimizer = std::make_unique<nn::Sgd>(Tensors{w}, nn::SgdOptions{.lr = 0.125, .momentum = 0.5});
    }
    return Training(&tracer, w, std::move(optimizer));
  }
  Tensor Batch(int i) { return F32({1, 2}, {1, 0.5f * static_cast<float>(i)}); }
};

TEST_F(WholeStepTest, AWholeStepIsOneGraphFromTheSecondOn) {
  Training plain = Make(false), captured = Make(false);
  CapturedFunction step = Compile(&tracer, [&](const Tensors& x) -> Tensors { return {captured.Step(x[0])}; });
  std::vector<double> losses, wanted;
  for (int i = 0; i < 6; ++i) {
    wanted.push_back(Values(plain.Step(Batch(i)))[0]);
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  ASSERT_TRUE(tracer.Wait().ok());
  const int64_t compiled = Samples("CompileTime"), ran = Samples("ExecuteTime");
  for (int i = 0; i < 6; ++i) {
    absl::StatusOr<Tensors> loss = step({Batch(i)});
    ASSERT_TRUE(loss.ok()) << loss.status().message();
    losses.push_back(Values((*loss)[0])[0]);
  }
  EXPECT_EQ(losses, wanted);
  EXPECT_EQ(Values(captured.weight()), Values(plain.weight()));
  EXPECT_EQ(Values(captured.weight().grad()), Values(plain.weight().grad()));
  // The first call creates the optimizer's state, two more agree on the numbers, the others are replayed.
  EXPECT_EQ(Samples("CompileTime") - compiled, 2);
  EXPECT_EQ(Samples("ExecuteTime") - ran, 6);
  EXPECT_EQ(step.replays(), 3) << step.Report();
}

TEST_F(WholeStepTest, NumbersThatChangeAreNeverReplayed) {
  Training plain = Make(true), captured = Make(true);
  CapturedFunction step = Compile(&tracer, [&](const Tensors& x) -> Tensors { return {captured.Step(x[0])}; });
  for (int i = 0; i < 5; ++i) {
    plain.Step(Batch(i));
    ASSERT_TRUE(tracer.MarkStep().ok());
    ASSERT_TRUE(step({Batch(i)}).ok());
  }
  EXPECT_EQ(Values(captured.weight()), Values(plain.weight()));
  EXPECT_EQ(step.replays(), 0);
  EXPECT_TRUE(absl::StrContains(step.Report(), "a number changes from call to call")) << step.Report();
}

TEST_F(WholeStepTest, ALearningRateAmongTheNumbersIsTracedAgainWhenItChanges) {
  Training plain = Make(false), captured = Make(false);
  GraphCaptureOptions options;
  options.guarded_scalars = [&] { return std::vector<double>{captured.optimizer().lr()}; };
  CapturedFunction step = Compile(
      &tracer, [&](const Tensors& x) -> Tensors { return {captured.Step(x[0])}; }, options);
  for (int i = 0; i < 10; ++i) {
    const double lr = i < 5 ? 0.25 : 0.0625;
    plain.optimizer().set_lr(lr);
    captured.optimizer().set_lr(lr);
    plain.Step(Batch(i));
    ASSERT_TRUE(tracer.MarkStep().ok());
    ASSERT_TRUE(step({Batch(i)}).ok());
  }
  EXPECT_EQ(Values(captured.weight()), Values(plain.weight()));
  EXPECT_GT(step.replays(), 2) << step.Report();
}

TEST_F(CaptureTest, AFetchInTheMiddleMakesTwoGraphsAndIsNamed) {
  CapturedFunction f = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    const Tensor y = Exp(x[0]);
    const absl::StatusOr<Scalar> sum = Sum(y).Item();
    return {y * Scalar(sum.ok() && sum->ToDouble() > 0 ? 1.0 : 0.0)};
  });
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Tensors> y = f({Vector({0, 0})});
    ASSERT_TRUE(y.ok());
    EXPECT_EQ(Values((*y)[0]), (std::vector<double>{1, 1}));
  }
  EXPECT_EQ(Samples("CompileTime"), 2);
  EXPECT_EQ(Samples("ExecuteTime"), 6);
  EXPECT_EQ(f.replays(), 0);
  EXPECT_TRUE(absl::StrContains(f.Report(), "it runs 2 graphs, the first for the item of aten::sum")) << f.Report();
}

TEST_F(CaptureTest, FullGraphMakesAFetchAnError) {
  GraphCaptureOptions options;
  options.full_graph = true;
  absl::Status inside;
  CapturedFunction f = Compile(
      &tracer,
      [&](const Tensors& x) -> Tensors {
        inside = Sum(x[0]).Item().status();
        return {x[0]};
      },
      options);
  (void)f({Vector({1, 2})});
  EXPECT_EQ(inside.message(), "Unexpected execution happens inside the compiled function, exiting");
}

TEST_F(CaptureTest, RandomNumbersAreNewInEveryReplay) {
  CapturedFunction f =
      Compile(&tracer, [](const Tensors& x) -> Tensors { return {lazy::InvokeOp(Op::dropout, x[0], 0.5, true)}; });
  std::vector<std::vector<double>> seen;
  for (int i = 0; i < 5; ++i) {
    absl::StatusOr<Tensors> y = f({F32({64}, std::vector<float>(64, 1))});
    ASSERT_TRUE(y.ok());
    seen.push_back(Values((*y)[0]));
  }
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_NE(seen[i], seen[i - 1]);
  EXPECT_GT(f.replays(), 0) << f.Report();
}

TEST_F(CaptureTest, ARegionRunsWhatIsPendingAndThenItself) {
  const Tensor before = Exp(Vector({0, 0}));
  {
    CompileRegion region(&tracer, {"toy"});
    const Tensor y = before + before;
    EXPECT_TRUE(region.End().ok());
    EXPECT_EQ(Samples("CompileTime"), 2);
    EXPECT_EQ(Values(y), (std::vector<double>{2, 2}));
  }
  EXPECT_EQ(Samples("CompileTime"), 2);
}

TEST_F(CaptureTest, ARegionInAFullGraphForbidsExecutionsUntilTheOuterOneEnds) {
  CompileRegion outer(&tracer, {"outer", true});
  { CompileRegion inner(&tracer, {"inner"}); }
  tracer.ClearStatus();
  EXPECT_EQ(Sum(Vector({1, 2})).Item().status().message(),
            "Unexpected execution happens inside the compiled function, exiting");
  (void)outer.End();
  EXPECT_TRUE(Sum(Vector({1, 2})).Item().ok());
}

class ReportedCaptureTest : public TracingTest {
 protected:
  static TracerOptions Options() {
    TracerOptions options = SmallOptions();
    options.log_executions = true;
    return options;
  }
  ReportedCaptureTest() : TracingTest(Options()) {}
};

TEST_F(ReportedCaptureTest, ARegionAndWhatIsPendingBeforeItAreNamedInTheReport) {
  const Tensor before = Exp(Vector({1, 2}));
  CompileRegion region(&tracer, {"toy"});
  const Tensor y = Relu(before);
  ASSERT_TRUE(region.End().ok());
  const std::vector<ExecutionRecord> executions = tracer.execution_log().executions();
  const std::string report = GraphReport(executions);
  for (const char* part : {"pending before a region of aten::exp toy_clear_pending", ", region toy, at ",
                           "1 step, 2 graphs run, at most 2 a step, 2 different, 2 compiled, 0 loaded\n",
                           "broken by pending before a region of aten::exp, at "}) {
    EXPECT_TRUE(absl::StrContains(report, part)) << part << report;
  }
  const std::string json = GraphReportJson(executions);
  EXPECT_TRUE(absl::StrContains(json, "\"by\": \"pending before a region of aten::exp\"")) << json;
  EXPECT_TRUE(absl::StrContains(json, "\"times\": 1")) << json;
}

TEST_F(CaptureTest, ResultsKeepTheirHistoryWhereTheCallerDifferentiates) {
  GraphCaptureOptions options;
  options.differentiable = true;
  CapturedFunction f = Compile(
      &tracer, [](const Tensors& x) -> Tensors { return {x[0] * x[0]}; }, options);
  for (int i = 0; i < 3; ++i) {
    Tensor x = Vector({1, 2});
    x.set_requires_grad(true);
    absl::StatusOr<Tensors> y = f({x});
    ASSERT_TRUE(y.ok());
    ASSERT_TRUE(Sum((*y)[0]).Backward().ok());
    EXPECT_EQ(Values(x.grad()), (std::vector<double>{2, 4}));
  }
  EXPECT_EQ(f.replays(), 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(f({Vector({1, 2})}).ok());
  EXPECT_EQ(f.replays(), 2);
}

TEST_F(CaptureTest, TheFirstOpThatDiffersIsNamedWhenThereAreTooManyGraphs) {
  DynamicShapeDetector detector(1);
  const auto call = [&](int64_t n) {
    CompileRegion region(&tracer, {"f"}, &detector);
    const Tensor x = F32({n}, std::vector<float>(static_cast<size_t>(n), 1));
    const Tensor y = x + x;
    return region.End();
  };
  EXPECT_TRUE(call(10).ok());
  EXPECT_TRUE(call(10).ok());
  EXPECT_EQ(call(5).message(),
            "Maximum number of different graphs allowed per function exceeded: 1\n"
            "Got: [] aten::add, xla_shape=f32[5]{0}, dynamic_dims: ()\n"
            "Expected: [] aten::add, xla_shape=f32[10]{0}, dynamic_dims: ()");
}

}  // namespace
}  // namespace hlokit::lazy
