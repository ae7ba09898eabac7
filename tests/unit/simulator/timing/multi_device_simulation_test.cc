// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/multi_device_simulation.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

// Four devices: a loop whose iterations gather weights ahead and sum results in pairs, and a sum over all at the end.
constexpr char kWalkedProgram[] = R"(
HloModule step

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

cond {
  p = (s32[], f32[4096,2048], f32[8,512,2048]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(8)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[4096,2048], f32[8,512,2048]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  x = f32[4096,2048] get-tuple-element(p), index=1
  ws = f32[8,512,2048] get-tuple-element(p), index=2
  w1 = f32[1,512,2048] dynamic-slice(ws, i, zero, zero), dynamic_slice_sizes={1,512,2048}
  w = f32[512,2048] reshape(w1)
  g = f32[2048,2048] all-gather(w), dimensions={0}, replica_groups={{0,1,2,3}}
  y = f32[4096,2048] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4096,2048] all-reduce(y), replica_groups={{0,1},{2,3}}, to_apply=add
  t = f32[4096,2048] tanh(s)
  ROOT r = (s32[], f32[4096,2048], f32[8,512,2048]) tuple(next, t, ws)
}

ENTRY main {
  x = f32[4096,2048] parameter(0)
  ws = f32[8,512,2048] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4096,2048], f32[8,512,2048]) tuple(zero, x, ws)
  loop = (s32[], f32[4096,2048], f32[8,512,2048]) while(init), condition=cond, body=body
  y = f32[4096,2048] get-tuple-element(loop), index=1
  g = f32[4096,2048] all-reduce(y), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT e = f32[4096,2048] exponential(g)
}
)";

// Returns two independent sums over the given groups.
std::string TwoSums(std::string_view first, std::string_view second) {
  return StrCat(R"(
HloModule sums
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[4096,1024] parameter(0)
  y = f32[4096,1024] parameter(1)
  s = f32[4096,1024] all-reduce-start(x), replica_groups=)",
                first, R"(, to_apply=add
  u = f32[4096,1024] all-reduce-start(y), replica_groups=)",
                second, R"(, to_apply=add
  a = f32[4096,1024] all-reduce-done(s)
  b = f32[4096,1024] all-reduce-done(u)
  ROOT t = (f32[4096,1024], f32[4096,1024]) tuple(a, b)
}
)");
}

double TotalOf(const DeviceTimeBreakdown& s) { return s.compute + s.exposed + s.sync + s.other + s.idle; }

TEST(DeviceWalkTest, OneDeviceStandsForAllThatAreAlike) {
  const std::unique_ptr<Module> module = Read(kWalkedProgram);
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    SimulationOptions options = OptionsOf(name, "4");
    const Simulation one = RunOn(*module, options);
    EXPECT_EQ(one.devices.shares.size(), 1u);
    EXPECT_NEAR(one.devices.seconds / one.device_seconds, 1, 1e-9) << name;
    // A straggler with factor 1: every device is simulated, with the same end time.
    options.variation.stragglers = {{2, 1.0}};
    const Simulation all = RunOn(*module, options);
    ASSERT_EQ(all.devices.shares.size(), 4u);
    EXPECT_NEAR(all.device_seconds / one.device_seconds, 1, 1e-9) << name;
    for (const DeviceTimeBreakdown& share : all.devices.shares) {
      EXPECT_NEAR(TotalOf(share) / one.device_seconds, 1, 1e-9) << name;
      EXPECT_NEAR(share.sync / one.device_seconds, 0, 1e-9) << name;
      EXPECT_NEAR(share.compute / one.devices.shares[0].compute, 1, 1e-9) << name;
    }
    ASSERT_EQ(all.devices.collectives.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(all.devices.collectives[k].kind, one.devices.collectives[k].kind);
      EXPECT_NEAR(all.devices.collectives[k].seconds / one.devices.collectives[k].seconds, 1, 1e-9);
    }
  }
}

TEST(DeviceWalkTest, CollectivesAreCountedWithTheirBytes) {
  const std::unique_ptr<Module> module = Read(kWalkedProgram);
  const Simulation s = RunOn(*module, OptionsOf("v5e", "4"));
  std::map<std::string_view, CollectiveTotals> totals;
  for (const CollectiveTotals& t : s.devices.collectives) totals[t.kind] = t;
  EXPECT_EQ(totals["all-gather"].runs, 8);
  EXPECT_EQ(totals["all-gather"].bytes, 8 * 2048.0 * 2048 * 4);
  EXPECT_EQ(totals["all-reduce"].runs, 9);
  EXPECT_EQ(totals["all-reduce"].bytes, 9 * 4096.0 * 2048 * 4);
  for (const auto& [kind, t] : totals) {
    EXPECT_GT(t.ideal, 0) << kind;
    EXPECT_LT(t.ideal, t.seconds) << kind;
  }
}

TEST(DeviceWalkTest, AStragglerHoldsUpTheOthers) {
  const std::unique_ptr<Module> module = Read(kWalkedProgram);
  SimulationOptions options = OptionsOf("v5e", "4");
  const Simulation even = RunOn(*module, options);
  options.variation.stragglers = {{1, 1.5}};
  const Simulation s = RunOn(*module, options);
  const std::vector<DeviceTimeBreakdown>& shares = s.devices.shares;
  EXPECT_NEAR(shares[1].compute / even.devices.shares[0].compute, 1.5, 1e-9);
  EXPECT_GT(s.device_seconds, even.device_seconds + 0.3 * even.devices.shares[0].compute);
  // It never waits; its partner waits in every iteration, the other pair when weights are gathered and at the end.
  EXPECT_NEAR(shares[1].sync, 0, 1e-12);
  for (size_t d : {0, 2, 3}) {
    EXPECT_NEAR(shares[d].compute, even.devices.shares[0].compute, 1e-12);
    EXPECT_GT(shares[d].sync, 0.2 * even.devices.shares[0].compute) << d;
  }
  for (const DeviceTimeBreakdown& share : shares) EXPECT_NEAR(TotalOf(share) / s.device_seconds, 1, 1e-9);
  EXPECT_EQ(StragglersOf(s.devices), (std::vector<int64_t>{1}));
}

TEST(DeviceWalkTest, AStragglerLeavesOtherGroupsAlone) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule pairs
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[4096,4096] parameter(0)
  t = f32[4096,4096] tanh(x)
  g = f32[4096,4096] all-reduce(t), replica_groups={{0,1},{2,3}}, to_apply=add
  ROOT e = f32[4096,4096] exponential(g)
}
)");
  SimulationOptions options = OptionsOf("v5e", "4");
  options.variation.stragglers = {{0, 2}};
  const DeviceTimelines devices = RunOn(*module, options).devices;
  EXPECT_GT(devices.shares[1].sync, 0);
  for (size_t d : {2, 3}) {
    EXPECT_NEAR(devices.shares[d].sync, 0, 1e-12);
    EXPECT_GT(devices.shares[d].idle, 0);  // ends before the others
  }
}

TEST(DeviceWalkTest, JitterIsDrawnFromItsSeed) {
  const std::unique_ptr<Module> module = Read(kWalkedProgram);
  SimulationOptions options = OptionsOf("v5e", "4");
  const double even = RunOn(*module, options).device_seconds;
  options.variation.jitter = 0.1;
  const double first = RunOn(*module, options).device_seconds;
  EXPECT_EQ(RunOn(*module, options).device_seconds, first);
  // Each collective waits for the slowest: jitter costs time, though kernels take as long on average.
  EXPECT_GT(first, even);
  EXPECT_LT(first, 1.3 * even);
  options.variation.seed = 2;
  EXPECT_NE(RunOn(*module, options).device_seconds, first);
  options.variation = {.stragglers = {{-1, 1.5}}};
  const std::vector<int64_t> drawn = StragglersOf(RunOn(*module, options).devices);
  EXPECT_EQ(drawn.size(), 1u);
}

TEST(DeviceWalkTest, CollectivesOnTheSameLinksTakeTurns) {
  const SimulationOptions options = OptionsOf("v5e", "2x2");
  // Devices 0 and 1 are neighbors along the first axis, 0 and 2 along the second.
  const std::unique_ptr<Module> one_axis = Read(TwoSums("{{0,1},{2,3}}", "{{0,1},{2,3}}"));
  const std::unique_ptr<Module> two_axes = Read(TwoSums("{{0,1},{2,3}}", "{{0,2},{1,3}}"));
  const double shared = RunOn(*one_axis, options).device_seconds;
  const double apart = RunOn(*two_axes, options).device_seconds;
  EXPECT_NEAR(shared / apart, 2, 1e-6);
  SimulationOptions walked = options;
  walked.variation.stragglers = {{0, 1}};
  EXPECT_NEAR(RunOn(*one_axis, walked).device_seconds, shared, 1e-12);
  EXPECT_NEAR(RunOn(*two_axes, walked).device_seconds, apart, 1e-12);
}

TEST(DeviceWalkTest, SlicesTalkOverTheDataCentreNetwork) {
  const std::unique_ptr<Module> module = Read(TwoSums("{}", "{{0,4},{1,5},{2,6},{3,7}}"));
  const Simulation s = RunOn(*module, OptionsOf("v5e", "2*2x2"));
  EXPECT_GT(s.busy[static_cast<size_t>(Resource::kDcn)], s.busy[static_cast<size_t>(Resource::kIci)]);
  EXPECT_EQ(s.devices.devices, 8);
  const Simulation near = RunOn(*module, OptionsOf("v5e", "2x4"));
  EXPECT_GT(s.device_seconds, 2 * near.device_seconds);
}

TEST(DeviceWalkTest, LongLoopsAreCutShort) {
  const std::unique_ptr<Module> module = Read(kWalkedProgram);
  SimulationOptions options = OptionsOf("v5e", "4");
  options.variation.stragglers = {{0, 1.2}};
  const KernelPlan plan(*module);
  const Simulation whole = Simulate(*module, plan, options);
  MultiDeviceOptions walk;
  walk.max_events = 50;
  const DeviceTimelines cut = SimulateDevices(*module, plan, options, whole, walk);
  EXPECT_FALSE(whole.devices.scaled);
  EXPECT_TRUE(cut.scaled);
  EXPECT_LT(cut.events, whole.devices.events);
  EXPECT_NEAR(cut.seconds / whole.devices.seconds, 1, 0.05);
}

// Returns a program of 512 devices that calls a sum of all devices from so many places.
std::string ManyCalls(int calls) {
  std::string text = R"(
HloModule calls, replica_count=512
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
sum {
  x = f32[1024,1024] parameter(0)
  t = f32[1024,1024] tanh(x)
  ROOT s = f32[1024,1024] all-reduce(t), replica_groups={}, to_apply=add
}
ENTRY main {
  x0 = f32[1024,1024] parameter(0)
)";
  for (int i = 1; i <= calls; ++i) {
    StrAppend(&text, i == calls ? "  ROOT x" : "  x", i, " = f32[1024,1024] call(x", i - 1, "), to_apply=sum\n");
  }
  return text + "}\n";
}

TEST(DeviceWalkTest, MemoryIsBoundedByTheProgramAndTheDevicesNotByTheirProduct) {
  constexpr int kCalls = 500, kDevices = 512;
  const std::unique_ptr<Module> module = Read(ManyCalls(kCalls));
  SimulationOptions options = OptionsOf("v5p", "8x8x8");
  options.variation.stragglers = {{3, 1.5}};
  const Simulation s = RunOn(*module, options);
  ASSERT_EQ(s.devices.shares.size(), static_cast<size_t>(kDevices));
  EXPECT_GT(s.devices.peak_values, 0u);
  EXPECT_LT(s.devices.peak_values, static_cast<size_t>(20 * (kCalls + kDevices)));
}

TEST(DeviceWalkTest, CallsThatRanAreRepeatedForEachDevice) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule twice, replica_count=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
layer {
  x = f32[2048,2048] parameter(0)
  t = f32[2048,2048] tanh(x)
  s = f32[2048,2048] all-reduce(t), replica_groups={}, to_apply=add
  ROOT e = f32[2048,2048] exponential(s)
}
block {
  x = f32[2048,2048] parameter(0)
  y = f32[2048,2048] call(x), to_apply=layer
  ROOT z = f32[2048,2048] call(y), to_apply=layer
}
ENTRY main {
  x = f32[2048,2048] parameter(0)
  a = f32[2048,2048] call(x), to_apply=block
  b = f32[2048,2048] call(a), to_apply=block
  c = f32[2048,2048] call(b), to_apply=block
  d = f32[2048,2048] call(c), to_apply=block
  ROOT e = f32[2048,2048] call(d), to_apply=block
}
)");
  SimulationOptions options = OptionsOf("v5e", "4");
  options.variation.stragglers = {{1, 1.5}};
  const KernelPlan plan(*module);
  const Simulation whole = Simulate(*module, plan, options);
  MultiDeviceOptions walk;
  walk.max_events = 30;
  const DeviceTimelines cut = SimulateDevices(*module, plan, options, whole, walk);
  EXPECT_TRUE(cut.scaled);
  EXPECT_LT(cut.events, 0.8 * whole.devices.events);
  EXPECT_NEAR(cut.seconds / whole.devices.seconds, 1, 1e-6);
  for (size_t d = 0; d < 4; ++d) {
    const DeviceTimeBreakdown& some = cut.shares[d];
    const DeviceTimeBreakdown& all = whole.devices.shares[d];
    EXPECT_NEAR(some.compute / all.compute, 1, 0.02) << d;
    EXPECT_NEAR(some.sync, all.sync, 0.02 * whole.devices.seconds) << d;
    EXPECT_NEAR(TotalOf(some) / cut.seconds, 1, 1e-6) << d;
    double waited = 0;
    for (const auto& [device, seconds] : some.sync_for) waited += seconds;
    EXPECT_NEAR(waited, some.sync, 1e-9) << d;
  }
  EXPECT_EQ(cut.collectives[0].runs, whole.devices.collectives[0].runs);
}

TEST(DeviceWalkTest, ShowsEachDeviceOnItsOwn) {
  const std::unique_ptr<Module> module = Read(kWalkedProgram);
  SimulationOptions options = OptionsOf("v5e", "4");
  options.variation.stragglers = {{3, 2}};
  const KernelPlan plan(*module);
  const Simulation s = Simulate(*module, plan, options);
  std::map<int64_t, double> busy;
  std::map<int64_t, double> waited;
  MultiDeviceOptions walk;
  walk.shown = 4;
  walk.max_shown = 10000;
  walk.show = [&](const TimelineEvent& e) {
    EXPECT_GE(e.start, 0);
    EXPECT_LE(e.start + e.duration, s.device_seconds * (1 + 1e-12));
    if (e.line == TimelineLine::kOps && module->instruction(e.name).opcode() != Opcode::kWhile)
      busy[e.device] += e.duration;
    if (e.line == TimelineLine::kWaits) waited[e.device] += e.duration;
  };
  const DeviceTimelines devices = SimulateDevices(*module, plan, options, s, walk);
  ASSERT_EQ(busy.size(), 4u);
  for (int64_t d = 0; d < 4; ++d) {
    const DeviceTimeBreakdown& share = devices.shares[static_cast<size_t>(d)];
    // Conditions of loops have no events.
    EXPECT_NEAR(busy[d] / share.compute, 1, 0.01) << d;
    EXPECT_NEAR(waited[d], share.sync + share.exposed, 0.02 * devices.seconds) << d;
  }
  EXPECT_NEAR(waited[0] - waited[3], devices.shares[0].sync, 0.02 * devices.seconds);
}

}  // namespace
}  // namespace hlokit::tpu
