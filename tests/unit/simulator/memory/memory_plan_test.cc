// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "simulator/memory/heap_simulator.h"
#include "simulator/timing/compile.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

constexpr int64_t kScalar = 512;  // bytes of the loop counter, with padding

// Returns a scheduled program of unrecognized calls, each with operands defined before it.
std::string RandomProgram(std::mt19937* random) {
  const auto draw = [&](int below) { return static_cast<int>((*random)() % static_cast<uint32_t>(below)); };
  const auto shape = [&] { return StrCat("f32[", 8 * (1 + draw(64)), ",", 128 * (1 + draw(8)), "]"); };
  std::vector<std::string> names;
  std::vector<std::string> shapes;
  std::string text = "HloModule random, is_scheduled=true\nENTRY main {\n";
  const int parameters = 1 + draw(3);
  const int count = 4 + draw(40);
  for (int k = 0; k < parameters + count; ++k) {
    names.push_back(StrCat("v", k));
    shapes.push_back(shape());
    StrAppend(&text, "  ", names.back(), " = ", shapes.back());
    if (k < parameters) {
      StrAppend(&text, " parameter(", k, ")\n");
      continue;
    }
    StrAppend(&text, " custom-call(");
    const int operands = 1 + draw(3);
    // Mostly recently defined values, sometimes older ones.
    for (int o = 0; o < operands; ++o) {
      const int source = draw(4) == 0 ? draw(k) : std::max(0, k - 1 - draw(4));
      StrAppend(&text, o > 0 ? ", " : "", names[static_cast<size_t>(source)]);
    }
    StrAppend(&text, "), custom_call_target=\"work\"\n");
  }
  const int results = 1 + draw(3);
  std::string tuple_shape;
  std::string tuple;
  for (int r = 0; r < results; ++r) {
    const size_t at = names.size() - 1 - static_cast<size_t>(draw(std::min(count, 6)));
    StrAppend(&tuple_shape, r > 0 ? ", " : "", shapes[at]);
    StrAppend(&tuple, r > 0 ? ", " : "", names[at]);
  }
  StrAppend(&text, "  ROOT out = (", tuple_shape, ") tuple(", tuple, ")\n}\n");
  return text;
}

// Returns the live bytes at each call, computed only from the uses in the program.
std::vector<int64_t> ReplayBuffers(const Module& module) {
  std::vector<Instruction> order;
  for (Instruction i : module.entry().instructions()) order.push_back(i);
  std::map<uint32_t, size_t> place;
  for (size_t k = 0; k < order.size(); ++k) place[order[k].id().value] = k;
  std::vector<int64_t> result;
  for (size_t at = 0; at < order.size(); ++at) {
    if (order[at].opcode() != Opcode::kCustomCall) continue;
    int64_t alive = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Instruction value = order[k];
      if (value.opcode() == Opcode::kTuple) continue;
      bool needed = value.opcode() == Opcode::kParameter || k == at;
      for (const auto [user, index] : value.uses()) needed |= k <= at && place[user.id().value] >= at;
      if (needed && (value.opcode() == Opcode::kParameter || k <= at))
        alive += value.shape().dim(0) * value.shape().dim(1) * 4;
    }
    result.push_back(alive);
  }
  return result;
}

TEST(MemoryReplayTest, PeakAndTimelineAreThoseOfAnIndependentReplay) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::string text = RandomProgram(&random);
    const std::unique_ptr<Module> module = Read(text);
    const MemoryPlan memory = PlanMemory(machine, *module, KernelPlan(*module), 1);
    const std::vector<int64_t> replayed = ReplayBuffers(*module);
    ASSERT_EQ(memory.timeline, replayed) << text;
    ASSERT_EQ(memory.peak_bytes, *std::max_element(replayed.begin(), replayed.end())) << text;
    int64_t listed = 0;
    for (const LiveArray& live : memory.live) listed += live.bytes;
    ASSERT_EQ(listed, memory.peak_bytes) << text;
  }
}

TEST(MemoryReplayTest, BlocksOfTheHeapNeverOverlap) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const std::unique_ptr<Module> module = Read(RandomProgram(&random));
    const KernelPlan plan(*module);
    const MemoryPlan memory = PlanMemory(machine, *module, plan, 1);
    std::map<int64_t, int64_t> blocks;  // end by offset
    int64_t highest = 0;
    VisitHeap(memory, memory.timeline.size(), [&](const HeapEvent& e) {
      const LiveRange& range = memory.live_ranges[e.live_range];
      const int64_t end = range.offset + range.bytes;
      if (!e.allocates) {
        ASSERT_EQ(blocks.count(range.offset), 1u);
        blocks.erase(range.offset);
        return;
      }
      for (const auto& [from, to] : blocks) ASSERT_TRUE(end <= from || to <= range.offset);
      blocks[range.offset] = end;
      highest = std::max(highest, end);
    });
    EXPECT_EQ(memory.heap_bytes, highest);
    EXPECT_GE(memory.fragmentation_bytes(), 0);
    EXPECT_EQ(memory.heap_peak_bytes + memory.parameter_bytes, memory.peak_bytes);
  }
}

TEST(MemoryReplayTest, OperationsAddUpToWhatIsAlive) {
  const DeviceDescription machine = *BuiltinDeviceDescription("v5e");
  std::mt19937 random(13);
  for (int round = 0; round < 100; ++round) {
    const std::unique_ptr<Module> module = Read(RandomProgram(&random));
    const MemoryPlan memory = PlanMemory(machine, *module, KernelPlan(*module), 1);
    ASSERT_EQ(memory.ops.size(), memory.timeline.size());
    int64_t alive = memory.parameter_bytes;
    for (size_t s = 0; s < memory.ops.size(); ++s) {
      EXPECT_EQ(alive + memory.ops[s].allocation, memory.timeline[s]);
      EXPECT_EQ(memory.ops[s].self, memory.ops[s].allocation);
      alive += memory.ops[s].increase;
    }
  }
}

TEST(MemoryReplayTest, WhatALoopNeedsInsideIsItsOwn) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule inside
cond {
  p = (s32[], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1024,1024] get-tuple-element(p), index=1
  a = f32[2048,1024] custom-call(x), custom_call_target="grow"
  y = f32[1024,1024] custom-call(a), custom_call_target="shrink"
  ROOT r = (s32[], f32[1024,1024]) tuple(next, y)
}
ENTRY main {
  x = f32[1024,1024] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[1024,1024]) tuple(zero, x)
  w = (s32[], f32[1024,1024]) while(init), condition=cond, body=body
  ROOT y = f32[1024,1024] get-tuple-element(w), index=1
}
)");
  const MemoryPlan memory = PlanMemory(*BuiltinDeviceDescription("v5e"), *module, KernelPlan(*module), 1);
  ASSERT_EQ(memory.ops.size(), 1u);
  EXPECT_EQ(module->instruction(memory.ops[0].name).name(), "w");
  // The loop copies x, which is not donated; the body has `a` beyond its state, and writes y over x.
  EXPECT_EQ(memory.ops[0].self, (4 << 20) + kScalar);
  EXPECT_EQ(memory.ops[0].allocation, (12 << 20) + kScalar);
  EXPECT_EQ(memory.peak_bytes, memory.timeline[0]);
  const int64_t body =
      KernelPlan(*module).PlanOf(module->instruction(memory.ops[0].name).computation_attr(Attr::kBody).id());
  ASSERT_GE(body, 0);
  const std::vector<OpMemory>& ops = memory.callees[static_cast<size_t>(body)].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1].self, 8 << 20);  // a
  EXPECT_EQ(ops[2].self, 0);        // y
  EXPECT_EQ(ops[2].increase, -(8 << 20));
}

constexpr int64_t kMebibyte = int64_t{1} << 20;

MemoryPlan PlanOf(const std::string& text) {
  const std::unique_ptr<Module> module = Read(text);
  return PlanMemory(*BuiltinDeviceDescription("v5e"), *module, KernelPlan(*module), 1);
}

std::string InPlaceMultiply(const std::string& header) {
  return StrCat("HloModule update", header, R"(
ENTRY main {
  x = f32[4096,4096] parameter(0)
  ROOT y = f32[4096,4096] multiply(x, x)
}
)");
}

TEST(BufferSharingTest, AnElementwiseUpdateOfADonatedParameterNeedsNoMoreMemory) {
  EXPECT_EQ(PlanOf(InPlaceMultiply("")).peak_bytes, 128 * kMebibyte);
  for (const char* header : {", input_output_alias={ {}: (0, {}, may-alias) }",
                             ", input_output_alias={ {}: (0, {}, must-alias) }", ", buffer_donor={ (0, {}) }"}) {
    const MemoryPlan memory = PlanOf(InPlaceMultiply(header));
    EXPECT_EQ(memory.peak_bytes, 64 * kMebibyte) << header;
    EXPECT_EQ(memory.result_bytes, 0) << header;
    ASSERT_EQ(memory.aliased.size(), 1u) << header;
    EXPECT_EQ(memory.aliased[0].parameter, 0);
  }
}

TEST(BufferSharingTest, TemporariesOnTheWayToAResultAreInTheDonatedParameterToo) {
  const std::string text = R"(HloModule chain, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  x = f32[4096,4096] parameter(0)
  a = f32[4096,4096] negate(x)
  b = f32[4096,4096] tanh(a)
  ROOT y = f32[4096,4096] multiply(b, b)
}
)";
  EXPECT_EQ(PlanOf(text).peak_bytes, 64 * kMebibyte);
}

TEST(BufferSharingTest, AParameterThatIsReadLaterIsNotOverwritten) {
  const std::string text = R"(HloModule later, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY main {
  x = f32[4096,4096] parameter(0)
  y = f32[4096,4096] negate(x)
  z = f32[4096,4096] multiply(x, y)
  ROOT out = (f32[4096,4096], f32[4096,4096]) tuple(y, z)
}
)";
  EXPECT_EQ(PlanOf(text).peak_bytes, 192 * kMebibyte);
}

TEST(BufferSharingTest, AMatmulDoesNotOverwriteItsOperands) {
  const std::string text = R"(HloModule matmul, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  x = f32[4096,4096] parameter(0)
  ROOT y = f32[4096,4096] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  EXPECT_EQ(PlanOf(text).peak_bytes, 128 * kMebibyte);
}

// A fusion of two updates: each result overwrites an operand that is read at the same index, and no other.
std::string FusedUpdates(const std::string& header) {
  return StrCat("HloModule fused", header, R"(
body {
  w = f32[4096,4096] parameter(0)
  m = f32[4096,4096] parameter(1)
  g = f32[4096] parameter(2)
  gb = f32[4096,4096] broadcast(g), dimensions={0}
  n = f32[4096,4096] add(m, gb)
  v = f32[4096,4096] subtract(w, n)
  ROOT r = (f32[4096,4096], f32[4096,4096]) tuple(v, n)
}
ENTRY main {
  w = f32[4096,4096] parameter(0)
  m = f32[4096,4096] parameter(1)
  g = f32[4096] parameter(2)
  ROOT f = (f32[4096,4096], f32[4096,4096]) fusion(w, m, g), kind=kLoop, calls=body
}
)");
}

TEST(BufferSharingTest, AFusionOverwritesTheOperandsThatItReadsElementwise) {
  const int64_t vector = PlanOf(FusedUpdates("")).parameter_bytes - 128 * kMebibyte;
  EXPECT_EQ(PlanOf(FusedUpdates("")).peak_bytes, 256 * kMebibyte + vector);
  EXPECT_EQ(PlanOf(FusedUpdates(", input_output_alias={ {0}: (0, {}), {1}: (1, {}) }")).peak_bytes,
            128 * kMebibyte + vector);
  EXPECT_EQ(PlanOf(FusedUpdates(", input_output_alias={ {0}: (0, {}) }")).peak_bytes, 192 * kMebibyte + vector);
}

TEST(BufferSharingTest, ATransposedReadKeepsTheOperand) {
  const std::string text = R"(HloModule transposed, input_output_alias={ {}: (0, {}, may-alias) }
body {
  w = f32[4096,4096] parameter(0)
  t = f32[4096,4096] transpose(w), dimensions={1,0}
  ROOT v = f32[4096,4096] add(w, t)
}
ENTRY main {
  w = f32[4096,4096] parameter(0)
  ROOT f = f32[4096,4096] fusion(w), kind=kLoop, calls=body
}
)";
  EXPECT_EQ(PlanOf(text).peak_bytes, 128 * kMebibyte);
}

TEST(BufferSharingTest, OperandsOfACollectiveInFlightStay) {
  const auto program = [](const char* between) {
    return StrCat(R"(HloModule flight, is_scheduled=true
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4096,4096] parameter(0)
  h = f32[4096,4096] custom-call(x), custom_call_target="work"
  s = f32[4096,4096] all-reduce-start(h), to_apply=sum
  other = f32[4096,4096] custom-call()",
                  between, R"(), custom_call_target="work"
  d = f32[4096,4096] all-reduce-done(s)
  ROOT y = f32[4096,4096] add(d, other)
}
)");
  };
  EXPECT_EQ(PlanOf(program("x")).peak_bytes, 192 * kMebibyte);  // x, other, and the all-reduce in place of h
  EXPECT_EQ(PlanOf(program("h")).peak_bytes, 256 * kMebibyte);  // h is read while it is in flight
}

TEST(BufferSharingTest, ArraysInVectorMemoryTakeNoHbm) {
  const std::string text = R"(HloModule spaces, is_scheduled=true
ENTRY main {
  x = f32[1024,1024]{1,0} parameter(0)
  a = f32[1024,1024]{1,0:S(1)} custom-call(x), custom_call_target="work"
  ROOT y = f32[1024,1024]{1,0} custom-call(a), custom_call_target="work"
}
)";
  EXPECT_EQ(PlanOf(text).peak_bytes, 8 * kMebibyte);
}

TEST(VectorMemoryTest, ArraysBetweenKernelsAndTilesCount) {
  const std::unique_ptr<Module> module = Read(R"(
HloModule resident
ENTRY main {
  x = f32[1024,1024] parameter(0)
  a = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[1024,1024] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[1024,1024] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  SimulationOptions options;
  options.machine = *BuiltinDeviceDescription("v5e");
  options.topology = *ParseTopology(options.machine, "1");
  ASSERT_TRUE(Compile(options, "tpu", module.get()).ok());
  const Simulation s = RunOn(*module, options);
  const double array = 4 << 20;
  ASSERT_EQ(s.vmem_timeline.size(), 3u);
  ASSERT_EQ(s.vmem_live.size(), 2u);  // a and b, at the last two matmuls
  EXPECT_EQ(s.vmem_live[0].bytes, array);
  EXPECT_GT(s.vmem_peak, 2 * array);
  EXPECT_LE(s.vmem_peak, 2 * array + options.machine.vmem_scoped);
  EXPECT_EQ(s.vmem_peak, *std::max_element(s.vmem_timeline.begin(), s.vmem_timeline.end()));
  EXPECT_LE(s.vmem_peak, options.machine.VmemBytes());
}

}  // namespace
}  // namespace hlokit::tpu
