// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/host.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

HostTimeline Play(const std::string& text, double device_seconds) {
  absl::StatusOr<HostModel> plan = ParseHostModel(text, 35e-6, 16e9);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? SimulateHost(*plan, device_seconds) : HostTimeline();
}

double SumOf(const DeviceGap& gap) {
  double sum = 0;
  for (const DeviceGap::Part& part : gap.parts) sum += part.seconds;
  return sum;
}

TEST(Host, TheDeviceHidesATracingThatIsShorter) {
  const HostTimeline t = Play("steps=10,trace=3ms", 5 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 5 * kMillisecond, 1e-9);
  // The device is idle only before the first execution.
  ASSERT_EQ(t.gaps.size(), 1u);
  EXPECT_NEAR(t.gaps[0].end, 3.035 * kMillisecond, 1e-9);
}

TEST(Host, AGapIsExplainedByTracing) {
  const HostTimeline t = Play("steps=10,trace=8ms", 5 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 8.035 * kMillisecond, 1e-9);
  ASSERT_EQ(t.gaps.size(), 10u);
  for (const DeviceGap& gap : t.gaps) EXPECT_EQ(gap.Longest(), HostPhase::kTrace);
  EXPECT_NEAR(t.gaps[5].SecondsOf(HostPhase::kTrace), 3 * kMillisecond, 1e-9);
  EXPECT_NEAR(t.SteadyGap(HostPhase::kTrace), 3 * kMillisecond, 1e-9);
}

TEST(Host, AGapIsExplainedByCompilation) {
  const HostTimeline t = Play("steps=6,trace=1ms,compile=200ms,compile_every=3", 5 * kMillisecond);
  ASSERT_EQ(t.gaps.size(), 2u);
  EXPECT_EQ(t.gaps[1].before_step, 3);
  EXPECT_EQ(t.gaps[1].Longest(), HostPhase::kCompile);
  EXPECT_GT(t.gaps[1].SecondsOf(HostPhase::kCompile), 180 * kMillisecond);
}

TEST(Host, AGapIsExplainedByTransfer) {
  // 160 MB over 16 GB/s: 10 ms.
  const HostTimeline t = Play("steps=10,trace=1ms,transfer=160MB", 4 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 10 * kMillisecond, 1e-9);
  EXPECT_EQ(t.gaps[6].Longest(), HostPhase::kTransfer);
  EXPECT_NEAR(t.gaps[6].SecondsOf(HostPhase::kTransfer), 6 * kMillisecond, 1e-9);
}

TEST(Host, AGapIsExplainedByTheInputPipeline) {
  const HostTimeline t = Play("steps=10,trace=1ms,input=20ms,transfer=1ms", 4 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 20 * kMillisecond, 1e-9);
  EXPECT_EQ(t.gaps[6].Longest(), HostPhase::kInput);
}

TEST(Host, AGapIsExplainedByExecuteCalls) {
  const HostTimeline t = Play("steps=10,execute=4.3ms,graphs=5", 2 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 21.5 * kMillisecond, 1e-9);
  for (const DeviceGap& gap : t.gaps) EXPECT_EQ(gap.Longest(), HostPhase::kExecute);
}

TEST(Host, FetchingEachStepEndsTheOverlap) {
  const HostTimeline ahead = Play("steps=20,trace=4ms", 5 * kMillisecond);
  const HostTimeline waits = Play("steps=20,trace=4ms,fetch=100us,fetch_every=1", 5 * kMillisecond);
  EXPECT_NEAR(ahead.step_seconds, 5 * kMillisecond, 1e-9);
  EXPECT_NEAR(waits.step_seconds, 9.135 * kMillisecond, 1e-9);
  EXPECT_NEAR(waits.SteadyGap(HostPhase::kTrace), 4 * kMillisecond, 1e-9);
  EXPECT_NEAR(waits.SteadyGap(HostPhase::kFetch), 0.1 * kMillisecond, 1e-9);
}

TEST(Host, CapturedProgramsRecordOnce) {
  const HostTimeline lazy = Play("steps=20,trace=14ms,marker=1ms", 5 * kMillisecond);
  const HostTimeline captured = Play("steps=20,trace=14ms,marker=1ms,mode=captured", 5 * kMillisecond);
  EXPECT_NEAR(lazy.step_seconds, 15.035 * kMillisecond, 1e-9);
  EXPECT_NEAR(captured.step_seconds, 5 * kMillisecond, 1e-9);
}

TEST(Host, TheProgramMakesItsOwnBatchesWithoutALoader) {
  const HostTimeline t = Play("steps=10,input=2ms,transfer=3ms,trace=4ms,prefetch=0", 5 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 9.035 * kMillisecond, 1e-9);
  EXPECT_NEAR(t.SteadyGap(HostPhase::kInput) + t.SteadyGap(HostPhase::kTransfer) + t.SteadyGap(HostPhase::kTrace),
              4 * kMillisecond, 1e-9);
}

TEST(Host, TheSteadyStateIsThatOfALoaderWhichIsNoLongerAhead) {
  // While the first step compiles the loader makes eight batches, which the last steps of the plan still take.
  const HostTimeline t = Play("steps=12,input=20ms,trace=1ms,compile=500ms,prefetch=8", 4 * kMillisecond);
  EXPECT_LT(t.run_step_seconds, 10 * kMillisecond);
  EXPECT_NEAR(t.step_seconds, 20 * kMillisecond, 1e-9);
  double gaps = 0;
  for (const double gap : t.steady_gaps) gaps += gap;
  EXPECT_NEAR(gaps + 4 * kMillisecond, t.step_seconds, 1e-9);
  const HostTimeline longer = Play("steps=100,input=20ms,trace=1ms,compile=500ms,prefetch=8", 4 * kMillisecond);
  EXPECT_NEAR(longer.run_step_seconds, 20 * kMillisecond, 1e-9);
  // A loader that is hardly slower than the rest is ahead for long.
  const HostTimeline slow = Play("steps=12,input=4.1ms,trace=1ms,compile=500ms,prefetch=8", 4 * kMillisecond);
  EXPECT_NEAR(slow.step_seconds, 4.1 * kMillisecond, 0.01 * kMillisecond);
}

TEST(Host, StepsThatStillCompileAreNoSteadyState) {
  const auto steady = [](const std::string& text) { return HasSteadyState(*ParseHostModel(text, 35e-6, 16e9)); };
  EXPECT_FALSE(steady("steps=1,compile=3s"));
  EXPECT_TRUE(steady("steps=2,compile=3s"));
  EXPECT_FALSE(steady("steps=2,compile=3s,compile_every=1"));
  // This goes on.
  EXPECT_TRUE(steady("steps=8,compile=3s,compile_every=1"));
}

TEST(Host, PartsOfAGapAddUpToIt) {
  const HostTimeline t = Play(
      "steps=40,input=7ms,transfer=2ms,trace=6ms,marker=1ms,compile=30ms,compile_every=9,other=500us,"
      "fetch_every=4,fetch=1ms,graphs=3,in_flight=2,prefetch=1",
      3 * kMillisecond);
  EXPECT_GT(t.gaps.size(), 5u);
  double gaps = 0;
  for (const DeviceGap& gap : t.gaps) {
    EXPECT_NEAR(SumOf(gap), gap.end - gap.start, 1e-12);
    gaps += gap.end - gap.start;
  }
  EXPECT_NEAR(gaps + t.device_busy, t.seconds, 1e-9);
}

TEST(Host, ReadsFiguresAndRefusesNonsense) {
  EXPECT_TRUE(ParseHostModel("", 0, 0).ok());
  for (const char* text : {"trace", "trace=fast", "trace=-1ms", "trace=3", "steps=0", "steps=1.5", "tarce=1ms",
                           "mode=eager", "graphs=10000,steps=100000", "trace=nanms", "transfer=1kg"}) {
    EXPECT_FALSE(ParseHostModel(text, 0, 1e9).ok()) << text;
  }
  EXPECT_NE(std::string(ParseHostModel("tarce=1ms", 0, 0).status().message()).find("did you mean `trace`"),
            std::string::npos);
}

}  // namespace
}  // namespace hlokit::tpu
