// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/host_profile.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "parser/formats/parser.h"
#include "runtime/observe/xplane.pb.h"
#include "simulator/export/xplane.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

namespace proto = ::tensorflow::profiler;

// A host plane under construction; times in milliseconds.
class HostPlane {
 public:
  HostPlane() : plane_(*space_.add_planes()) {
    plane_.set_name("/host:CPU");
    (*plane_.mutable_stat_metadata())[1].set_name("_r");
    (*plane_.mutable_stat_metadata())[2].set_name("step_num");
  }
  void Thread(const std::string& name) {
    plane_.add_lines()->set_name(name);
    plane_.mutable_lines(plane_.lines_size() - 1)->set_timestamp_ns(1763770000000000000);
  }
  proto::XEvent* Span(const std::string& name, double from, double to) {
    const int64_t id = plane_.event_metadata().size() + 1;
    (*plane_.mutable_event_metadata())[id].set_name(name);
    proto::XEvent* event = plane_.mutable_lines(plane_.lines_size() - 1)->add_events();
    event->set_metadata_id(id);
    event->set_offset_ps(static_cast<int64_t>(from * 1e9));
    event->set_duration_ps(static_cast<int64_t>((to - from) * 1e9));
    return event;
  }
  void Step(double from, double to) {
    proto::XStat* stat = Span("train", from, to)->add_stats();
    stat->set_metadata_id(1);
    stat->set_int64_value(1);
  }
  std::string Bytes() const { return space_.SerializeAsString(); }

 private:
  proto::XSpace space_;
  proto::XPlane& plane_;
};

// As JAX's profiler writes it, with the names of jax 0.4 and its PJRT client.
std::string JaxTraining(int steps) {
  HostPlane host;
  host.Thread("python");
  double t = 0;
  for (int k = 0; k < steps; ++k) {
    const double begin = t;
    const double compile = k == 0 ? 500 : 0;
    host.Span("$train.py:31 load_batch", t, t + 2);
    host.Span("device_put", t + 2, t + 5);
    const double call = t + 5;
    host.Span("PjitFunction(step)", call, call + 1 + compile);
    if (k == 0) host.Span("backend_compile", call, call + compile);
    host.Span("PjRtCApiLoadedExecutable::Execute", call + compile + 0.5, call + compile + 1);
    t = call + 1 + compile;
    host.Span("block_until_ready", t, t + 40);
    t += 40;
    host.Span("ArrayImpl._value ToLiteral", t, t + 0.25);
    t += 0.25;
    host.Step(begin, t);
    t += 0.75;
  }
  return host.Bytes();
}

TEST(HostProfile, ReadsWhatJaxRecords) {
  const absl::StatusOr<HostModel> plan = HostModelOfProfile(JaxTraining(4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->steps.size(), 4u);
  EXPECT_NEAR(plan->steps[0].compile, 500 * kMillisecond, 1e-9);
  const HostStep& step = plan->steps[2];
  EXPECT_NEAR(step.other, 2.75 * kMillisecond, 1e-9);
  EXPECT_NEAR(step.transfer, 3 * kMillisecond, 1e-9);
  EXPECT_NEAR(step.execute, 1 * kMillisecond, 1e-9);
  EXPECT_NEAR(step.fetch, 0.25 * kMillisecond, 1e-9);
  EXPECT_EQ(step.trace, 0);
  EXPECT_EQ(step.compile, 0);
  EXPECT_TRUE(step.waits);
  EXPECT_EQ(step.graphs, 1);
  EXPECT_EQ(step.runs, 1);
  // The recorded wait of 40 ms becomes the time of the simulated device.
  EXPECT_NEAR(SimulateHost(*plan, 10 * kMillisecond).step_seconds, 17 * kMillisecond, 1e-9);
}

TEST(HostProfile, CallsAreStepsWhereNothingMarksThem) {
  HostPlane host;
  host.Thread("other");
  host.Span("nothing of interest", 0, 1);
  host.Thread("python");
  for (int k = 0; k < 5; ++k) {
    host.Span("PjRtCApiLoadedExecutable::Execute", 10 * k + 6, 10 * k + 7);
  }
  const absl::StatusOr<HostModel> plan = HostModelOfProfile(host.Bytes());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->steps.size(), 5u);
  EXPECT_NEAR(plan->steps[3].execute, 1 * kMillisecond, 1e-9);
  EXPECT_NEAR(plan->steps[3].other, 9 * kMillisecond, 1e-9);
  EXPECT_FALSE(plan->steps[3].waits);
}

TEST(HostProfile, ALoaderOnAnotherThreadRunsAhead) {
  HostPlane host;
  host.Thread("main");
  for (int k = 0; k < 4; ++k) {
    host.Span("WaitForBatch", 10 * k, 10 * k + 7);
    host.Span("forward", 10 * k + 7, 10 * k + 9);
    host.Span("StepMarker", 10 * k + 9, 10 * k + 10);
    host.Span("PjRtComputationClient::ExecuteComputation", 10 * k + 9.5, 10 * k + 10);
  }
  host.Thread("loader");
  for (int k = 0; k < 4; ++k) host.Span("cpu_loader.next", 10 * k, 10 * k + 8);
  const absl::StatusOr<HostModel> plan = HostModelOfProfile(host.Bytes());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->prefetch, 0);
  EXPECT_NEAR(plan->steps[1].input, 8 * kMillisecond, 1e-9);
  EXPECT_NEAR(plan->steps[1].trace, 2 * kMillisecond, 1e-9);
  // The wait for the batch is simulated again: 8 ms of loading bound the step.
  EXPECT_NEAR(SimulateHost(*plan, 1 * kMillisecond).step_seconds, 8 * kMillisecond, 1e-9);
}

TEST(HostProfile, WhatIsNoRecordingIsAnError) {
  EXPECT_FALSE(HostModelOfProfile("\x12\xff\xff").ok());
  EXPECT_FALSE(HostModelOfProfile("").ok());
  HostPlane host;
  host.Thread("main");
  EXPECT_TRUE(absl::IsNotFound(HostModelOfProfile(host.Bytes()).status()));
  host.Span("forward", 0, 1);
  EXPECT_TRUE(absl::IsNotFound(HostModelOfProfile(host.Bytes()).status()));
}

TEST(HostProfile, TimesOfAnySizeAreRead) {
  proto::XSpace space;
  proto::XPlane* plane = space.add_planes();
  plane->set_name("/host:CPU");
  (*plane->mutable_event_metadata())[1].set_name("StepMarker");
  for (int64_t time : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    proto::XLine* line = plane->add_lines();
    line->set_timestamp_ns(time);
    for (int64_t offset : {INT64_MIN, int64_t{0}, INT64_MAX}) {
      proto::XEvent* event = line->add_events();
      event->set_metadata_id(1);
      event->set_offset_ps(offset);
      event->set_duration_ps(offset);
    }
  }
  const absl::StatusOr<HostModel> plan = HostModelOfProfile(space.SerializeAsString());
  if (plan.ok()) SimulateHost(*plan, kMillisecond);
}

// The output of BuildProfileSpace reads back as the original plan.
class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, GivesTheSameStepsAndGaps) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(R"(
HloModule m

ENTRY main {
  a = f32[2048,2048] parameter(0)
  ROOT d = f32[2048,2048] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  SimulationOptions options;
  options.machine = *BuiltinDeviceDescription("v5e");
  options.topology = TopologyFor(options.machine, 1);
  const KernelPlan plan(**module);
  const Simulation simulation = Simulate(**module, plan, options);
  const MemoryPlan memory = PlanMemory(options.machine, **module, plan, simulation.implicit_partitions);
  const ReportInput input{**module, options, simulation, memory};
  const absl::StatusOr<HostModel> host = ParseHostModel(GetParam(), 35e-6, 16e9);
  ASSERT_TRUE(host.ok()) << host.status();
  const absl::StatusOr<HostModel> read =
      HostModelOfProfile(XSpaceBytes(BuildProfileSpace({&input, &plan}, *host, 1, 1000)));
  ASSERT_TRUE(read.ok()) << read.status();
  const HostTimeline before = SimulateHost(*host, simulation.device_seconds);
  const HostTimeline after = SimulateHost(*read, simulation.device_seconds);
  EXPECT_EQ(after.steps, before.steps);
  // Profiles count in nanoseconds.
  EXPECT_NEAR(after.step_seconds, before.step_seconds, 2e-8);
  for (size_t p = 0; p < kHostPhaseCount; ++p) {
    const HostPhase phase = static_cast<HostPhase>(p);
    EXPECT_NEAR(after.SteadyGap(phase), before.SteadyGap(phase), 2e-8) << ToString(phase);
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, RoundTrip,
                         testing::Values("steps=8,trace=3ms,marker=200us",
                                         "steps=6,trace=1ms,compile=40ms,compile_every=3",
                                         "steps=8,trace=100us,input=2ms,transfer=1ms",
                                         "steps=8,trace=1ms,fetch_every=1,fetch=300us,other=100us",
                                         "steps=8,trace=1ms,input=2ms,transfer=1ms,prefetch=0",
                                         "steps=9,trace=10us,graphs=3,in_flight=2"));

}  // namespace
}  // namespace hlokit::tpu
