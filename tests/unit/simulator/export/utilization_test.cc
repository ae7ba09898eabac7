// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/utilization.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "simulator/timing/compile_time.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

class UtilizationTest : public testing::Test {
 protected:
  UtilizationTest()
      : module_(Read(R"(HloModule m
ENTRY e {
  a = f32[1024,1024] parameter(0)
  b = f32[1024,1024] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[1024,1024] tanh(b)
})")),
        options_(OptionsOf("v5e", "1x1")),
        plan_(*module_),
        simulation_(Simulate(*module_, plan_, options_)),
        memory_(PlanMemory(options_.machine, *module_, plan_, 1)),
        input_{*module_, options_, simulation_, memory_} {
    VisitTimeline(input_, plan_, 1000, [&](const TimelineEvent& e) { utilization_.Add(e); });
  }

  std::unique_ptr<Module> module_;
  SimulationOptions options_;
  KernelPlan plan_;
  Simulation simulation_;
  MemoryPlan memory_;
  ReportInput input_;
  Utilization utilization_{input_};
};

TEST_F(UtilizationTest, MeansAreThoseOfTheSimulation) {
  const std::vector<Utilization::Values> means = utilization_.Means(simulation_.device_seconds, 50);
  Utilization::Values sum = {};
  for (const Utilization::Values& values : means) {
    for (size_t c = 0; c < kUtilizationCounters; ++c) sum[c] += values[c] / static_cast<double>(means.size());
  }
  const double seconds = simulation_.device_seconds;
  EXPECT_NEAR(sum[static_cast<size_t>(UtilizationCounter::kMatrixUnit)],
              simulation_.busy[static_cast<size_t>(Resource::kMxu)] / seconds, 1e-6);
  EXPECT_NEAR(sum[static_cast<size_t>(UtilizationCounter::kHbm)],
              simulation_.hbm_bytes / options_.machine.HbmRate() / seconds, 1e-6);
  EXPECT_NEAR(sum[static_cast<size_t>(UtilizationCounter::kOccupancy)],
              simulation_.flops / options_.machine.PeakFlops() / seconds, 1e-6);
}

TEST_F(UtilizationTest, CountersEndAtZero) {
  const std::vector<Utilization::Change> changes = utilization_.Changes();
  ASSERT_FALSE(changes.empty());
  Utilization::Values last = {};
  double time = 0;
  for (const Utilization::Change& change : changes) {
    EXPECT_GE(change.time, time);
    time = change.time;
    last[static_cast<size_t>(change.counter)] = change.value;
  }
  for (double value : last) EXPECT_EQ(value, 0);
}

TEST_F(UtilizationTest, CompilationGrowsWithInstructionsAndKernels) {
  const CompileTime time = EstimateCompileTime(*module_, plan_);
  EXPECT_EQ(time.instructions, 3);
  EXPECT_EQ(time.kernels, 2);
  EXPECT_NEAR(time.seconds, 4e-3 + 3 * 0.44e-3 + 2 * 6.6e-3, 1e-9);
}

}  // namespace
}  // namespace hlokit::tpu
