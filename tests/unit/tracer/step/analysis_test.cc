// SPDX-License-Identifier: Apache-2.0
// Recommendations and warnings: too many compilations, slow ones, ops on the host, unmarked steps.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/step/debug_analysis.h"
#include "tracer/step/execution_log.h"

namespace hlokit::lazy {
namespace {

using runtime::MetricKind;
using runtime::Metrics;

TEST(AutoAnalysisTest, CompilationsAreTooFrequentAfterTenStepsOfWarmingUp) {
  Metrics metrics;
  ExecutionLog log;
  AutoAnalysis analysis;
  for (int i = 0; i < 8; ++i) metrics.AddSample("CompileTime", MetricKind::kTime, 1);
  EXPECT_TRUE(analysis.AfterStep(metrics, log, 10).empty());
  EXPECT_EQ(analysis.AfterStep(metrics, log, 11),
            std::vector<std::string>{"pt-xla-profiler: CompileTime too frequent: 8 counts during 11 steps"});
  EXPECT_TRUE(analysis.AfterStep(metrics, log, 12).empty()) << "advice is given once";
}

TEST(AutoAnalysisTest, HalfAsManyCompilationsAsStepsAreNotTooMany) {
  Metrics metrics;
  ExecutionLog log;
  AutoAnalysis analysis;
  for (int i = 0; i < 10; ++i) metrics.AddSample("CompileTime", MetricKind::kTime, 1);
  EXPECT_TRUE(analysis.AfterStep(metrics, log, 20).empty());
}

TEST(AutoAnalysisTest, FetchesAreTooFrequentAndTheirPlaceIsNamed) {
  Metrics metrics;
  ExecutionLog log;
  AutoAnalysis analysis;
  ExecutionRecord e;
  e.cause = SyncReason::kItem;
  e.root = "aten::sum";
  e.frames = {{"train", "/home/me/train.cc", 7}};
  for (int i = 0; i < 2; ++i) {
    metrics.AddSample("TransferFromDeviceTime", MetricKind::kTime, 1);
    log.Add(e);
  }
  EXPECT_EQ(analysis.AfterStep(metrics, log, 3),
            std::vector<std::string>{"pt-xla-profiler: TransferFromDeviceTime too frequent: 2 counts during 3 steps; "
                                     "most often item of aten::sum at train@train.cc:7 (2 of 2)"});
}

TEST(AutoAnalysisTest, SlowCompilationsAndOpsOnTheHost) {
  Metrics metrics;
  ExecutionLog log;
  AutoAnalysis analysis;
  metrics.AddSample("CompileTime", MetricKind::kTime, 301e9);
  metrics.Add("aten::nonzero");
  metrics.Add("aten::_local_scalar_dense");
  EXPECT_EQ(
      analysis.AfterStep(metrics, log, 1),
      (std::vector<std::string>{"pt-xla-profiler: CompileTime too slow: longest instance took 05m01s000ms000.000us",
                                "pt-xla-profiler: Op(s) not lowered: aten::nonzero"}));
}

class WarningTest : public TracingTest {
 protected:
  WarningTest() : TracingTest(Options(&said)) {}
  static TracerOptions Options(std::vector<std::string>* said) {
    TracerOptions options = SmallOptions();
    options.warn_pending_nodes = 1000;
    options.report = [said](std::string_view text) { said->emplace_back(text); };
    return options;
  }
  std::vector<std::string> said;
};

TEST_F(WarningTest, AStepThatIsNeverMarkedGrowsMemoryLinearlyAndWarns) {
  Tensor x = Vector({1});
  ASSERT_TRUE(tracer.MarkStep().ok());
  const auto record = [&](int ops) {
    for (int i = 0; i < ops; ++i) x = x + Vector({1});
    return static_cast<double>(tracer.device()->graph().bytes());
  };
  const double first = record(1000), second = record(1000), fourth = record(2000);
  EXPECT_NEAR(second / first, 2, 0.1);
  EXPECT_NEAR(fourth / first, 4, 0.2);
  // At a thousand nodes, and whenever their number has doubled.
  ASSERT_GE(said.size(), 3u);
  EXPECT_LE(said.size(), 5u);
  EXPECT_TRUE(absl::StrContains(said[0], " nodes are pending on CPU:0 and no step was marked since step 1")) << said[0];
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(tracer.device()->graph().bytes(), 0u);
}

TEST_F(WarningTest, CountersOfTensorsAndSampledTracingTimes) {
  const int64_t before = Counter("CreateXlaTensor");
  {
    Tensor x = Vector({1});
    for (int i = 0; i < 64; ++i) x = Relu(x);
  }
  EXPECT_EQ(Counter("CreateXlaTensor") - before, 65);
  EXPECT_EQ(Counter("CreateXlaTensor") - Counter("DestroyXlaTensor"), tracer.device()->live_count());
  EXPECT_EQ(Samples("LazyTracing"), 4);
  EXPECT_GE(Samples("TensorToData"), 1);
}

}  // namespace
}  // namespace hlokit::lazy
