// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/unit/simulator/simulated.h"

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

// A profile of several threads with counted work, in milliseconds of recorded time.
class CountedRecording {
 public:
  explicit CountedRecording(std::vector<std::string> threads) { profile_.threads = std::move(threads); }
  // A span in which `ops` ops were recorded and `cpu` ms of CPU time passed.
  void Span(uint32_t thread, const std::string& name, double from, double to, uint32_t ops = 0, double cpu = 0,
            std::vector<std::pair<std::string, int64_t>> stats = {}) {
    runtime::TraceEvent e{name, thread, Ns(from), Ns(to), std::move(stats)};
    runtime::ThreadCounters& now = counters_[thread];
    now.thread = thread + 1;
    now.cpu_ns = std::max<int64_t>(now.cpu_ns, 0);
    e.at_start = now;
    now.work.ops += ops;
    now.cpu_ns += Ns(cpu);
    e.at_end = now;
    profile_.events.push_back(e);
    profile_.stop_ns = std::max(profile_.stop_ns, e.end_ns);
  }
  // `cpu` ms of CPU time pass outside of spans.
  void Outside(uint32_t thread, double cpu) { counters_[thread].cpu_ns += Ns(cpu); }
  void Call(uint32_t thread, double at, int device = 0, bool collective = false) {
    runtime::ExecutionEvent e;
    e.thread = thread;
    e.called_ns = Ns(at);
    e.device = device;
    e.at_call = counters_[thread];
    e.collective = collective;
    profile_.executions.push_back(e);
  }
  Replay Play(double device_ms, HostTimes times = HostTimes::kModeled) {
    std::stable_sort(profile_.events.begin(), profile_.events.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    programs_.assign(profile_.executions.size(), 0);
    seconds_ = {device_ms * kMillisecond};
    ReplayOptions options;
    options.times = times;
    options.costs = HostCosts();
    options.costs.op = 1e-6;
    options.program_of = programs_;
    options.seconds_of = seconds_;
    return ReplayProfile(profile_, options);
  }

 private:
  static int64_t Ns(double ms) { return static_cast<int64_t>(ms * 1e6); }
  runtime::Profile profile_;
  std::map<uint32_t, runtime::ThreadCounters> counters_;
  std::vector<size_t> programs_;
  std::vector<double> seconds_;
};

const HostSpan* FindSpan(const Replay& replay, const std::string& thread, const std::string& name) {
  for (const HostThread& t : replay.threads) {
    if (t.name != thread) continue;
    for (const HostSpan& span : t.spans) {
      if (span.name == name) return &span;
    }
  }
  return nullptr;
}

TEST(Replay, CountedWorkTakesItsCostWhateverWasMeasured) {
  const auto step_seconds = [](double wall, double cpu) {
    CountedRecording r({"main"});
    for (int k = 0; k < 4; ++k) {
      r.Span(0, "forward", k * 100, k * 100 + wall, /*ops=*/1000, cpu);
      r.Span(0, "StepMarker", k * 100 + wall, k * 100 + wall + 0.1);
      r.Call(0, k * 100 + wall + 0.05);
    }
    return r.Play(0.01).plan.steps[2].trace;
  };
  EXPECT_NEAR(step_seconds(2, 1), kMillisecond, 1e-9);
  EXPECT_NEAR(step_seconds(80, 3), kMillisecond, 1e-9);
  // Work of the user's own code is not counted: 60 ms that 1000 ops do not explain.
  EXPECT_GT(step_seconds(80, 60), 20 * kMillisecond);
}

// Replays steps on two devices with a loader that is two batches ahead. Recorded: each batch was made from `made` ms
// after its step began, and `cpu` ms of CPU time passed where nothing was counted. Returns the threads.
std::string Loaded(double made, double cpu, HostTimes times) {
  CountedRecording r({"main", "loader.0", "replica 1"});
  r.Span(0, "StartLoader", 10, 11, 0, 0, {{"_p", 1}});
  for (int k = 0; k < 6; ++k) {
    const double t = 100 + 100 * k;
    r.Span(1, "cpu_loader.next", t + made, t + made + 1, 0, cpu,
           {{"_c", k < 2 ? 1 : 200 + k - 2}, {"_p", 100 + k}, {"prefetch", 2}, {"cost_ns", 5000000}});
    r.Outside(1, cpu);
    r.Span(0, "WaitForBatch", t + 10, t + std::max(made, 10.0) + 2, 0, 0, {{"_c", 100 + k}, {"_p", 200 + k}});
    r.Outside(0, cpu);
    r.Span(0, "StartReplicas", t + 50, t + 51, 0, cpu, {{"_p", 300 + k}});
    r.Span(2, "train", t + 52, t + 60, 2000, 0, {{"_c", 300 + k}, {"_p", 400 + k}, {"_r", 1}});
    r.Outside(2, cpu);
    r.Span(2, "StepMarker", t + 60, t + 61, 10, cpu);
    r.Call(2, t + 60.5, 1);
    r.Span(0, "forward", t + 70, t + 80, 1000, cpu);
    r.Span(0, "StepMarker", t + 80, t + 81);
    r.Call(0, t + 80.5);
    r.Span(0, "WaitForReplicas", t + 82, t + 83, 0, 0, {{"_c", 400 + k}});
  }
  const Replay replay = r.Play(1, times);
  std::string text = StrCat("step ", replay.step_seconds, "\n");
  for (const HostThread& thread : replay.threads) {
    StrAppend(&text, thread.name, ":\n");
    for (const HostSpan& s : thread.spans) StrAppend(&text, s.name, " ", s.step, " ", s.start, " ", s.duration, "\n");
  }
  return text;
}

TEST(Replay, WithoutCodeOfItsOwnAProgramTakesTheSameTimeInEveryRun) {
  const std::string expected = Loaded(5, 0, HostTimes::kCounted);
  for (const double made : {-50.0, 5.0, 40.0}) {
    for (const double cpu : {0.0, 1.7, 30.0}) EXPECT_EQ(Loaded(made, cpu, HostTimes::kCounted), expected);
    // Where no CPU time is left over it does not matter whose code is run.
    EXPECT_EQ(Loaded(made, 0, HostTimes::kModeled), expected);
  }
  EXPECT_NE(Loaded(5, 1.7, HostTimes::kModeled), expected);
}

TEST(Replay, SpansOfToolsAreNoPartOfTheProgram) {
  CountedRecording r({"main"});
  r.Span(0, "forward", 0, 1, 1000);
  r.Span(0, "StepMarker", 1, 2);
  r.Call(0, 1.5);
  r.Span(0, std::string(runtime::kToolSpan), 2, 90, 5000);
  r.Span(0, "WaitForDevice", 3, 80);
  r.Span(0, "forward", 90, 91, 1000);
  r.Span(0, "StepMarker", 91, 92);
  r.Call(0, 91.5);
  const Replay replay = r.Play(50);
  ASSERT_EQ(replay.plan.steps.size(), 2u);
  EXPECT_FALSE(replay.plan.steps[1].waits);
  EXPECT_NEAR(replay.plan.steps[1].trace, kMillisecond, 1e-9);
  EXPECT_EQ(FindSpan(replay, "main", "WaitForDevice"), nullptr);
  EXPECT_EQ(FindSpan(replay, "main", std::string(runtime::kToolSpan)), nullptr);
}

TEST(Replay, ThreadsWaitForWhatOthersProduce) {
  CountedRecording r({"main", "loader"});
  r.Span(1, "cpu_loader.next", 0, 1, 0, 0, {{"cost_ns", 7000000}, {"_p", 5}});
  r.Span(0, "train", 0, 3, 0, 0, {{"step_num", 12}, {"_r", 1}});
  r.Span(0, "WaitForBatch", 1, 2, 0, 0, {{"_c", 5}});
  r.Call(0, 2.5);
  const Replay replay = r.Play(1);
  const HostSpan* wait = FindSpan(replay, "main", "WaitForBatch");
  ASSERT_NE(wait, nullptr);
  EXPECT_NEAR(wait->start + wait->duration, 7 * kMillisecond, 1e-9);
  ASSERT_EQ(replay.runs.size(), 1u);
  EXPECT_NEAR(replay.runs[0].start, 7 * kMillisecond, 1e-9);
  // Steps have the numbers of the program, and the loader's time is in the plan.
  EXPECT_EQ(replay.step_numbers, std::vector<int64_t>({12}));
  EXPECT_EQ(replay.runs[0].step, 12);
  EXPECT_NEAR(replay.plan.steps[0].input, 7 * kMillisecond, 1e-9);
  EXPECT_EQ(replay.plan.prefetch, 1);  // one batch beyond the next
}

TEST(Replay, ProgramsWithCollectivesBeginOnAllDevicesAtOnce) {
  CountedRecording r({"main", "replica 1"});
  for (uint32_t t = 0; t < 2; ++t) {
    r.Span(t, "forward", 0, 1, t == 0 ? 1000 : 9000);
    r.Span(t, "StepMarker", 1, 2);
    r.Call(t, 1.5, static_cast<int>(t), /*collective=*/true);
  }
  const Replay replay = r.Play(1);
  ASSERT_EQ(replay.runs.size(), 1u);
  EXPECT_EQ(replay.runs[0].device, -1);
  EXPECT_NEAR(replay.runs[0].start, 9 * kMillisecond, 1e-9);
  const HostSpan* first = FindSpan(replay, "TPU:0 runtime", "RunExecutable");
  ASSERT_NE(first, nullptr);
  EXPECT_NEAR(first->start, kMillisecond, 1e-9);
  EXPECT_NEAR(first->start + first->duration, 10 * kMillisecond, 1e-9);
  EXPECT_NE(FindSpan(replay, "TPU:1 runtime", "TPUExecute"), nullptr);
}

TEST(Replay, TorchXlaTakesItsOwnTimeForTheSameWork) {
  const DeviceDescription machine;
  runtime::HostWork step;  // a training step of ResNet-50
  step.ops = 953;
  step.visited = 2216;
  step.calls = 1;
  step.buffers = 1134;
  const HostCosts tracer = HostCostsOf(machine), torch_xla = HostCostsOf(machine, HostSystem::kTorchXla);
  EXPECT_NEAR(SecondsOf(torch_xla, step), 13.67e-3 + 7.5e-3, 1e-4);
  EXPECT_LT(SecondsOf(tracer, step), 1e-3);
  runtime::HostWork recording;
  recording.ops = 953;
  EXPECT_NEAR(SecondsOf(torch_xla, recording), 13.67e-3, 1e-6);
}

}  // namespace
}  // namespace hlokit::tpu
