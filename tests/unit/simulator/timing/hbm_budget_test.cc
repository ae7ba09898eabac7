// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/hbm_budget.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/core/str_cat.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

TEST(HbmBudgetTest, GrowsWithTimeUpToItsCapacity) {
  HbmBudget budget(/*rate=*/100, /*capacity=*/50);
  EXPECT_EQ(budget.Take(30), 0);
  EXPECT_DOUBLE_EQ(budget.Take(40), 0.2);  // 20 bytes more than there were
  budget.AdvanceTo(0.3);
  EXPECT_DOUBLE_EQ(budget.available(), 10);
  budget.AdvanceTo(0.1);  // the past
  EXPECT_DOUBLE_EQ(budget.available(), 10);
  budget.AdvanceTo(10);
  EXPECT_DOUBLE_EQ(budget.available(), 50);
  // What was idle before a prefetch is not lost to it.
  budget.AdvanceTo(11, /*prefetched=*/30);
  EXPECT_DOUBLE_EQ(budget.available(), 80);
  EXPECT_FALSE(HbmBudget().limited());
  EXPECT_EQ(HbmBudget().Take(1e18), 0);
}

// Returns the milliseconds of so many kernels in a loop that read and write 537 MB each.
double Chain(int64_t trips) {
  const std::unique_ptr<Module> module = Read(StrCat(R"(
HloModule chain
cond {
  p = (s32[], bf16[134217728]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant()",
                                                     trips, R"()
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], bf16[134217728]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = bf16[134217728] get-tuple-element(p), index=1
  y = bf16[134217728] exponential(x)
  ROOT r = (s32[], bf16[134217728]) tuple(next, y)
}
ENTRY main {
  x = bf16[134217728] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], bf16[134217728]) tuple(zero, x)
  ROOT loop = (s32[], bf16[134217728]) while(init), condition=cond, body=body
}
)"));
  return RunOn(*module, OptionsOf("v6e", "1")).device_seconds * 1e3;
}

TEST(HbmBudgetTest, ChainsTakeAsLongAsMeasured) {
  // Chains on v6e of 16 and 32 kernels, whatever they compute: 4.3 GB, 8.6, 17.2 and 34.4.
  EXPECT_NEAR(Chain(8), 3.0, 0.15);
  EXPECT_NEAR(Chain(16), 8.0, 0.5);
  EXPECT_NEAR(Chain(32), 14.8, 1.2);
  EXPECT_NEAR(Chain(64), 30.2, 2.0);
}

TEST(HbmBudgetTest, MoreWorkNeverTakesLess) {
  double before = 0;
  for (int64_t trips = 1; trips < 40; ++trips) {
    const double now = Chain(trips);
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(HbmBudgetTest, PhasesThatDoNotNeedHbmMakeUpForThoseThatDo) {
  // A product of 0.2 ms before each stream of 34 MB: both together need less than HBM sustains.
  const std::unique_ptr<Module> module = Read(R"(
HloModule mixed
cond {
  p = (s32[], bf16[4096,4096], bf16[8388608]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(1000)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], bf16[4096,4096], bf16[8388608]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = bf16[4096,4096] get-tuple-element(p), index=1
  x = bf16[8388608] get-tuple-element(p), index=2
  v = bf16[4096,4096] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = bf16[8388608] negate(x)
  ROOT r = (s32[], bf16[4096,4096], bf16[8388608]) tuple(next, v, y)
}
ENTRY main {
  w = bf16[4096,4096] parameter(0)
  x = bf16[8388608] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], bf16[4096,4096], bf16[8388608]) tuple(zero, w, x)
  ROOT loop = (s32[], bf16[4096,4096], bf16[8388608]) while(init), condition=cond, body=body
}
)");
  const SimulationOptions options = OptionsOf("v6e", "1");
  const Simulation simulation = RunOn(*module, options);
  for (const OpRow& row : simulation.rows) {
    if (module->instruction(row.name).opcode() != Opcode::kNegate) continue;
    const double rate = row.hbm_bytes / row.seconds;
    // But for the latency.
    EXPECT_GT(rate, options.machine.HbmRate() * options.machine.hbm_efficiency * 0.92);
    return;
  }
  ADD_FAILURE() << "no stream";
}

// Returns the microseconds of a stream beside an all-gather of so many rows of each device.
double StreamBeside(int64_t rows) {
  const std::unique_ptr<Module> module = Read(StrCat(R"(
HloModule beside, is_scheduled=true, num_partitions=8
ENTRY main {
  x = bf16[67108864] parameter(0)
  part = bf16[)",
                                                     rows, R"(,8192] parameter(1)
  start = (bf16[)",
                                                     rows, ",8192], bf16[", 8 * rows, R"(,8192]) all-gather-start(part),
      dimensions={0}, replica_groups={{0,1,2,3,4,5,6,7}}, channel_id=1, use_global_device_ids=true
  y = bf16[67108864] negate(x)
  done = bf16[)",
                                                     8 * rows, R"(,8192] all-gather-done(start)
  ROOT r = (bf16[67108864], bf16[)",
                                                     8 * rows, R"(,8192]) tuple(y, done)
}
)"));
  const Simulation simulation = RunOn(*module, OptionsOf("v6e", "2x4"));
  for (const OpRow& row : simulation.rows) {
    if (module->instruction(row.name).opcode() == Opcode::kNegate) return row.seconds * 1e6;
  }
  return 0;
}

TEST(HbmBudgetTest, CollectivesInFlightTakeTheirShareOfHbm) {
  const double alone = 268435456 / (1638e9 * 0.86) * 1e6;
  // All of the stream beside a gather of 940 MB, which arrives and leaves at the rate of a link each.
  const double beside = StreamBeside(8192);
  EXPECT_GT(beside, alone * 1.08);
  EXPECT_LT(beside, alone * 1.2);
  // A gather of 2 MB is soon over.
  EXPECT_NEAR(StreamBeside(16), alone, alone * 0.03);
}

}  // namespace
}  // namespace hlokit::tpu
