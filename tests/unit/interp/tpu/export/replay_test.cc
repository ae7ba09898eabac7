// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/replay.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/interp/tpu/simulated.h"

namespace hlokit::tpu {
namespace {

// Spans of one thread, in milliseconds.
class Recording {
 public:
  Recording() { profile_.threads = {"main"}; }
  void Span(const std::string& name, double from, double to) {
    profile_.events.push_back({name, 0, Ns(from), Ns(to), {}});
    profile_.stop_ns = std::max(profile_.stop_ns, Ns(to));
  }
  void Call(double at) {
    runtime::ExecutionEvent e;
    e.called_ns = Ns(at);
    profile_.executions.push_back(e);
  }
  Replay Play(double device_ms) const {
    const std::vector<size_t> programs(profile_.executions.size(), 0);
    const std::vector<double> seconds = {device_ms * kMillisecond};
    ReplayOptions options;
    options.program_of = programs;
    options.seconds_of = seconds;
    return ReplayProfile(profile_, options);
  }

 private:
  static int64_t Ns(double ms) { return static_cast<int64_t>(ms * 1e6); }
  runtime::Profile profile_;
};

// Returns steps of recording, marking and calling, each ending with a fetch that waited `waited`.
Recording Training(int steps, double trace, double compile_first, double waited) {
  Recording r;
  double t = 0;
  for (int k = 0; k < steps; ++k) {
    r.Span("forward", t, t + trace);
    t += trace;
    r.Span("StepMarker", t, t + 1 + (k == 0 ? compile_first : 0));
    if (k == 0) {
      r.Span("PjRtComputationClient::Compile", t, t + compile_first);
      t += compile_first;
    }
    r.Span("PjRtComputationClient::ExecuteComputation", t + 0.5, t + 1);
    r.Call(t + 0.9);
    t += 1;
    if (waited > 0) {
      r.Span("PjRtComputationClient::TransferFromDevice", t, t + waited + 0.1);
      r.Span("WaitForDevice", t, t + waited);
      t += waited + 0.1;
    }
  }
  return r;
}

TEST(Replay, PhasesOfStepsAreThoseOfTheirSpans) {
  const Replay replay = Training(4, 3, 100, 20).Play(2);
  ASSERT_EQ(replay.plan.steps.size(), 4u);
  EXPECT_NEAR(replay.plan.steps[0].trace, 3 * kMillisecond, 1e-9);
  EXPECT_NEAR(replay.plan.steps[0].compile, 100 * kMillisecond, 1e-9);
  EXPECT_NEAR(replay.plan.steps[1].compile, 0, 1e-12);
  EXPECT_NEAR(replay.plan.steps[1].marker, 0.5 * kMillisecond, 1e-9);
  EXPECT_NEAR(replay.plan.steps[1].execute, 0.5 * kMillisecond, 1e-9);
  EXPECT_NEAR(replay.plan.steps[1].fetch, 0.1 * kMillisecond, 1e-9);
  // The fetch of a step comes after its marker.
  EXPECT_FALSE(replay.plan.steps[0].waits);
  EXPECT_TRUE(replay.plan.steps[1].waits);
  ASSERT_EQ(replay.plan.steps[2].scopes.size(), 1u);
  EXPECT_EQ(replay.plan.steps[2].scopes[0].name, "forward");
}

TEST(Replay, WaitsTakeAsLongAsTheSimulatedDevice) {
  // Recorded: the interpreter took 20 ms a step. The device takes 2.
  const Replay fast = Training(4, 3, 0, 20).Play(2);
  ASSERT_EQ(fast.runs.size(), 4u);
  // Call at 3.9; the wait from 4 on ends when the device is done, at 5.9; then 0.1 of copying, 3 of recording, 0.9.
  EXPECT_NEAR(fast.runs[0].start, 3.9 * kMillisecond, 1e-9);
  EXPECT_NEAR(fast.runs[1].start, (5.9 + 0.1 + 3 + 0.9) * kMillisecond, 1e-9);
  const Replay slow = Training(4, 3, 0, 20).Play(50);
  EXPECT_NEAR(slow.runs[1].start, (53.9 + 0.1 + 3 + 0.9) * kMillisecond, 1e-9);
}

TEST(Replay, WithoutWaitsTheHostRunsAhead) {
  const Replay replay = Training(5, 3, 0, 0).Play(10);
  for (size_t k = 0; k < replay.runs.size(); ++k) {
    EXPECT_NEAR(replay.runs[k].start, (3.9 + 10 * static_cast<double>(k)) * kMillisecond, 1e-9);
    EXPECT_EQ(replay.runs[k].step, static_cast<int64_t>(k));
  }
}

TEST(Replay, GapsOfARecordingAreExplained) {
  const auto longest = [](const Recording& r, double device_ms, size_t gap) {
    const Replay replay = r.Play(device_ms);
    return SimulateHost(replay.plan, device_ms * kMillisecond).gaps[gap].Longest();
  };
  EXPECT_EQ(longest(Training(6, 8, 0, 20), 2, 3), HostPhase::kTrace);
  EXPECT_EQ(longest(Training(6, 3, 100, 20), 2, 0), HostPhase::kCompile);
  Recording transfer;
  double t = 0;
  for (int k = 0; k < 6; ++k) {
    transfer.Span("PjRtComputationClient::TransferToDevice", t, t + 9);
    transfer.Span("forward", t + 9, t + 10);
    transfer.Span("StepMarker", t + 10, t + 11);
    transfer.Span("PjRtComputationClient::ExecuteComputation", t + 10.5, t + 11);
    transfer.Call(t + 10.9);
    t += 11;
  }
  EXPECT_EQ(longest(transfer, 2, 3), HostPhase::kTransfer);
}

TEST(Replay, NamesOfSpansGiveTheirPhases) {
  EXPECT_EQ(PhaseOfSpan("XLAGraphExecutor::Compile#graph_hash=1#"), HostPhase::kCompile);
  EXPECT_EQ(PhaseOfSpan("cpu_loader.next"), HostPhase::kInput);
  EXPECT_EQ(PhaseOfSpan("SyncTensorsGraphInternal"), HostPhase::kMarker);
  EXPECT_EQ(PhaseOfSpan("my_model"), HostPhase::kTrace);
}

}  // namespace
}  // namespace hlokit::tpu
