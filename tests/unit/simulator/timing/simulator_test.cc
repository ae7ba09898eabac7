// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/simulator.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/core/str_cat.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/timing/compile.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

constexpr char kLayer[] = R"(
HloModule layer

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

cond {
  p = (s32[], bf16[512,2048], bf16[8,2048,2048]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(8)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], bf16[512,2048], bf16[8,2048,2048]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  x = bf16[512,2048] get-tuple-element(p), index=1
  ws = bf16[8,2048,2048] get-tuple-element(p), index=2
  w1 = bf16[1,2048,2048] dynamic-slice(ws, i, zero, zero), dynamic_slice_sizes={1,2048,2048}
  w = bf16[2048,2048] reshape(w1)
  y = bf16[512,2048] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = bf16[512,2048] tanh(y)
  ROOT r = (s32[], bf16[512,2048], bf16[8,2048,2048]) tuple(next, t, ws)
}

ENTRY main {
  x = bf16[512,2048] parameter(0)
  ws = bf16[8,2048,2048] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], bf16[512,2048], bf16[8,2048,2048]) tuple(zero, x, ws)
  loop = (s32[], bf16[512,2048], bf16[8,2048,2048]) while(init), condition=cond, body=body
  y = bf16[512,2048] get-tuple-element(loop), index=1
  f = f32[512,2048] convert(y)
  z = f32[] constant(0)
  s = f32[512] reduce(f, z), dimensions={1}, to_apply=add
  g = f32[512] all-reduce(s), replica_groups={{0,1,2,3}}, to_apply=add, channel_id=1
  ROOT e = f32[512] exponential(g)
}
)";

TEST(SimulatorTest, CoreTimeAndWaitsAddUpToTheStep) {
  const std::unique_ptr<Module> module = Read(kLayer);
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    const Simulation s = RunOn(*module, OptionsOf(name, "4"));
    EXPECT_GT(s.device_seconds, 0) << name;
    EXPECT_NEAR((s.core_busy + s.stall) / s.device_seconds, 1, 1e-9) << name;
    double rows = 0;
    for (const OpRow& row : s.rows) {
      if (row.kind == ScheduleUnitKind::kKernel) rows += row.seconds;
    }
    EXPECT_NEAR(rows / s.core_busy, 1, 1e-9) << name;
  }
}

TEST(SimulatorTest, TwiceTheRatesTakeHalfTheTime) {
  const std::unique_ptr<Module> module = Read(kLayer);
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    SimulationOptions options = OptionsOf(name, "4");
    const Simulation once = RunOn(*module, options);
    options.machine = Scaled(options.machine, 2);
    const Simulation twice = RunOn(*module, options);
    EXPECT_NEAR(twice.device_seconds / once.device_seconds, 0.5, 1e-9) << name;
    ASSERT_EQ(once.rows.size(), twice.rows.size());
    for (size_t k = 0; k < once.rows.size(); ++k) {
      EXPECT_NEAR(twice.rows[k].seconds, once.rows[k].seconds / 2, 1e-15) << name;
    }
  }
}

TEST(SimulatorTest, MoreChipsNeverSlowTheCore) {
  const std::unique_ptr<Module> module = Read(kLayer);
  double last = 1e9;
  for (const char* topology : {"2x2x1", "2x2x2", "4x4x4", "8x8x8"}) {
    const Simulation s = RunOn(*module, OptionsOf("v5p", topology));
    EXPECT_LE(s.core_busy, last * (1 + 1e-12)) << topology;
    last = s.core_busy;
  }
}

TEST(SimulatorTest, ALoopTakesItsTrips) {
  std::string text = kLayer;
  const double eight = RunOn(*Read(text), OptionsOf("v5e", "4")).flops;
  text.replace(text.find("constant(8)"), 11, "constant(16)");
  const double sixteen = RunOn(*Read(text), OptionsOf("v5e", "4")).flops;
  EXPECT_NEAR((sixteen - 8 * 2.0 * 512 * 2048 * 2048) / eight, 1, 0.01);
}

TEST(SimulatorTest, AFasterResourceNeverSlowsAProgram) {
  const std::unique_ptr<Module> module = Read(kLayer);
  const SimulationOptions options = OptionsOf("v6e", "4");
  const double base = RunOn(*module, options).device_seconds;
  for (const DeviceDescriptionField& field : DeviceDescriptionFields()) {
    if (field.unit != UnitKind::kRate && field.unit != UnitKind::kFrequency) continue;
    SimulationOptions faster = options;
    faster.machine.*field.member *= 2;
    EXPECT_LE(RunOn(*module, faster).device_seconds, base * (1 + 1e-12)) << field.name;
  }
}

TEST(SimulatorTest, RowsPaddedToTheArrayCostTheSame) {
  const auto time = [](int64_t m) {
    const std::unique_ptr<Module> module = Read(StrCat("HloModule m\nENTRY e {\n a = bf16[", m, ",4096] parameter(0)\n",
                                                       " b = bf16[4096,4096] parameter(1)\n ROOT d = bf16[", m,
                                                       ",4096] dot(a, b), lhs_contracting_dims={1}, "
                                                       "rhs_contracting_dims={0}\n}\n"));
    return RunOn(*module, OptionsOf("v6e", "1")).rows[0].times[static_cast<size_t>(Resource::kMxu)];
  };
  EXPECT_NEAR(time(128), time(256), 1e-12);
  EXPECT_GT(time(512), 1.5 * time(256));
}

TEST(SimulatorTest, ACollectiveHidesBehindComputeThatDoesNotNeedIt) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule hide
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[1024,1024] parameter(0)
  a = bf16[8192,8192] parameter(1)
  g = f32[1024,1024] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add
  n = f32[1024,1024] negate(g)
  d = bf16[8192,8192] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[1024,1024], bf16[8192,8192]) tuple(n, d)
}
)");
  const SimulationOptions options = OptionsOf("v5e", "4");
  // As written the core stalls; the compiler makes the collective asynchronous.
  const Simulation blocking = RunOn(*module, options);
  EXPECT_GT(blocking.stall, 50e-6);
  ASSERT_TRUE(Compile(options, "tpu", module.get()).ok());
  const Simulation s = RunOn(*module, options);
  EXPECT_GT(s.busy[static_cast<size_t>(Resource::kIci)], 50e-6);
  EXPECT_NEAR(s.stall, 0, 1e-12);
  EXPECT_LT(s.device_seconds, blocking.device_seconds - 50e-6);
}

TEST(SimulatorTest, WhatIsNotKnownIsListed) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule unknown
cond {
  p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  ROOT c = pred[] compare(i, n), direction=NE
}
body {
  ROOT p = (s32[], s32[]) parameter(0)
}
ENTRY main {
  x = s32[] parameter(0)
  t = (s32[], s32[]) tuple(x, x)
  w = (s32[], s32[]) while(t), condition=cond, body=body
  ROOT c = f32[8] custom-call(w), custom_call_target="mystery"
}
)");
  const Simulation s = RunOn(*module, OptionsOf("v5e", "1"));
  EXPECT_EQ(s.unmodeled.size(), 2u);
  EXPECT_EQ(s.unmodeled.count("work of custom call mystery: only its operands and results are counted"), 1u);
}

double CrossLaneSeconds(const std::string& body) {
  const std::unique_ptr<Module> module = Read(StrCat(R"(
HloModule lanes
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
)",
                                                     body, "}\n"));
  return RunOn(*module, OptionsOf("v6e", "1")).busy[static_cast<size_t>(Resource::kXlu)];
}

TEST(SimulatorTest, LanesAreCrossedARegisterAtATime) {
  // 4096 rows of 512: registers of a row are added first, which leaves 512 registers; half an operation per cycle.
  const double reduce = CrossLaneSeconds(
      "x = f32[4096,512] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT r = f32[4096] reduce(x, z), dimensions={1}, to_apply=add\n");
  EXPECT_NEAR(reduce, 512 / 0.5 / 1.75e9, 1e-12);
  const double columns = CrossLaneSeconds(
      "x = f32[4096,512] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT r = f32[512] reduce(x, z), dimensions={0}, to_apply=add\n");
  EXPECT_EQ(columns, 0);
  const double broadcast =
      CrossLaneSeconds("x = f32[4096] parameter(0)\nROOT b = f32[4096,512] broadcast(x), dimensions={0}\n");
  EXPECT_NEAR(broadcast, reduce, 1e-15);
}

TEST(SimulatorTest, PartsOfRowsThatBeginWithinARegisterCrossLanes) {
  const auto slice = [](int from) {
    return CrossLaneSeconds(
        StrCat("x = f32[1024,512] parameter(0)\nROOT s = f32[1024,128] slice(x), slice={[0:1024], [", from, ":",
               from + 128, "]}\n"));
  };
  EXPECT_EQ(slice(128), 0);
  EXPECT_GT(slice(64), 0);
  const auto join = [](int first) {
    return CrossLaneSeconds(StrCat("x = f32[1024,", first, "] parameter(0)\ny = f32[1024,128] parameter(1)\n",
                                   "ROOT c = f32[1024,", first + 128, "] concatenate(x, y), dimensions={1}\n"));
  };
  EXPECT_EQ(join(256), 0);
  EXPECT_GT(join(64), 0);
}

TEST(SimulatorTest, PagedAttentionTakesItsBlocks) {
  const auto run = [](int tokens, int sequences, int length) {
    const std::string cache = StrCat("bf16[", sequences, ",8,", length, ",128]");
    const std::unique_ptr<Module> module =
        Read(StrCat("HloModule attention\nENTRY main {\n q = bf16[", tokens, ",4096] parameter(0)\n k = ", cache,
                    " parameter(1)\n v = ", cache, " parameter(2)\n ROOT a = bf16[", tokens,
                    ",4096] custom-call(q, k, v), custom_call_target=\"ragged_paged_attention\"\n}\n"));
    return RunOn(*module, OptionsOf("v6e", "1"));
  };
  // Decoding: each token reads the keys and values of its own sequence, 4 operations per element.
  EXPECT_EQ(run(16, 16, 128).flops, 4.0 * 16 * 4096 * 128);
  // One more sequence takes one more block, with little to overlap with.
  const auto seconds = [&](int sequences) { return run(sequences, sequences, 128).device_seconds; };
  const double block = (seconds(32) - seconds(16)) / 16;
  EXPECT_GT(block, 0);
  EXPECT_NEAR((seconds(16) - seconds(8)) / 8, block, 0.02 * block);
  // Prefill: token t of a sequence attends to the t tokens before it, and itself.
  double operations = 0;
  for (int t = 1; t <= 1024; ++t) operations += 4.0 * 4096 * t;
  EXPECT_EQ(run(1024, 1, 1024).flops, operations);
  // It takes longer than its blocks in decoding, by the time of the matrix unit.
  EXPECT_GT(run(1024, 1, 1024).device_seconds - seconds(8), operations / BuiltinDeviceDescription("v6e")->PeakFlops());
  // Blocks of 128 queries: 128 more take one more block, and its time on the matrix unit.
  const double more = run(256, 1, 256).device_seconds - run(128, 1, 128).device_seconds;
  EXPECT_GE(more, block * 0.999);
  EXPECT_LT(more, 2 * block);
}

TEST(MemoryPlanTest, PeakIsWhatIsAlive) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule peak
ENTRY main {
  x = f32[1024,1024] parameter(0)
  a = f32[1024,1024] custom-call(x), custom_call_target="a"
  b = f32[1024,1024] custom-call(a), custom_call_target="b"
  c = f32[1024,1024] custom-call(a, b), custom_call_target="c"
  ROOT d = f32[8,128] custom-call(c), custom_call_target="d"
}
)");
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  const MemoryPlan memory = PlanMemory(machine, *module, KernelPlan(*module), 1);
  const int64_t array = 4 << 20;
  EXPECT_EQ(memory.peak_bytes, 4 * array);  // x, a, b, c
  EXPECT_EQ(memory.timeline, (std::vector<int64_t>{2 * array, 3 * array, 4 * array, 2 * array + 4096}));
  int64_t listed = 0;
  for (const LiveArray& live : memory.live) listed += live.bytes;
  EXPECT_EQ(listed, memory.peak_bytes);
}

TEST(MemoryPlanTest, LoopsWorkInPlaceAndPaddingCounts) {
  const std::unique_ptr<Module> module = Read(kLayer);
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  ASSERT_TRUE(Compile(OptionsOf("v5e", "1"), "tpu", module.get()).ok());
  const MemoryPlan memory = PlanMemory(machine, *module, KernelPlan(*module), 1);
  const int64_t weights = 8 * 2048 * 2048 * 2;
  const int64_t activations = 512 * 2048 * 2;
  EXPECT_GE(memory.peak_bytes, weights + 2 * activations);
  EXPECT_LE(memory.peak_bytes, weights + 4 * activations + 65536);
}

}  // namespace
}  // namespace hlokit::tpu
