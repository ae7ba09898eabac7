// SPDX-License-Identifier: Apache-2.0
// Properties of programs compiled by the whole pipeline of a target.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "passes/layout/layout_assignment.h"
#include "passes/layout/tpu_layout_preferences.h"
#include "passes/schedule/vector_memory.h"
#include "simulator/timing/compile.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

// Returns a program with arrays of 8 MiB that are live while a loop runs, loop state that fits, and weights gathered in
// each iteration.
std::string Program(int64_t rows) {
  const std::string x = StrCat("f32[", rows, ",2048]"), state = StrCat("(s32[], ", x, ", f32[6,512,2048])");
  return StrCat(R"(
HloModule program, replica_count=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

cond {
  p = )",
                state, R"( parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(6)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = )",
                state, R"( parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  x = )",
                x, R"( get-tuple-element(p), index=1
  ws = f32[6,512,2048] get-tuple-element(p), index=2
  part = f32[1,512,2048] dynamic-slice(ws, i, zero, zero), dynamic_slice_sizes={1,512,2048}
  quarter = f32[512,2048] reshape(part)
  w = f32[2048,2048] all-gather(quarter), replica_groups={{0,1,2,3}}, dimensions={0}
  y = )",
                x, R"( dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = )",
                x, R"( tanh(y)
  u = )",
                x, R"( dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  s = )",
                x, R"( add(u, x)
  ROOT r = )",
                state, R"( tuple(next, s, ws)
}

ENTRY main {
  x = )",
                x, R"( parameter(0)
  ws = f32[6,512,2048] parameter(1)
  v = f32[2048,2048] parameter(2)
  d = f64[2048,300] parameter(3)
  zero = s32[] constant(0)
  a = )",
                x, R"( dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = )",
                x, R"( dot(a, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f64[2048,300] negate(d)
  f = f64[2048,300] multiply(e, e)
  init = )",
                state, R"( tuple(zero, b, ws)
  loop = )",
                state, R"( while(init), condition=cond, body=body
  y = )",
                x, R"( get-tuple-element(loop), index=1
  c = )",
                x, R"( dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = )",
                x, R"( multiply(c, a)
  z = f32[] constant(0)
  h = f32[2048] reduce(g, z), dimensions={0}, to_apply=add
  k = f32[2048] all-reduce(h), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT r = (f32[2048], f64[2048,300]) tuple(k, f)
}
)");
}

SimulationOptions OneChipOptionsOf(std::string_view name) {
  return tpu::OptionsOf(name, BuiltinDeviceDescription(name)->devices_per_chip() == 2 ? "2" : "4");
}

std::unique_ptr<Module> Compiled(int64_t rows, const SimulationOptions& options, std::string_view pipeline = "tpu") {
  std::unique_ptr<Module> module = Read(Program(rows));
  const absl::Status status = Compile(options, pipeline, module.get());
  EXPECT_TRUE(status.ok()) << status;
  return module;
}

int64_t CountInVmem(const Module& module) {
  int64_t count = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) count += i.shape().IsArray() && FractionInVmem({}, i.shape()) > 0;
  }
  return count;
}

TEST(CompiledProgramTest, PassesTakeTheTargetTheyAreGiven) {
  SimulationOptions options = OneChipOptionsOf("v5e");
  EXPECT_GT(CountInVmem(*Compiled(1024, options)), 0);
  options.machine.vmem_size = options.machine.vmem_scoped + 4096;
  options.machine.cmem_size = 0;
  EXPECT_EQ(CountInVmem(*Compiled(1024, options)), 0);
  // The options in the pipeline's text take precedence.
  EXPECT_GT(CountInVmem(*Compiled(1024, options, "tpu{vmem-bytes=100000000}")), 0);
}

constexpr int64_t kRows[] = {256, 1024, 4096};

TEST(CompiledProgramTest, VectorMemoryIsNeverOvercommitted) {
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    const SimulationOptions options = OneChipOptionsOf(name);
    for (int64_t rows : kRows) {
      const std::unique_ptr<Module> plain = Read(Program(rows)), compiled = Compiled(rows, options);
      for (const Module* module : {plain.get(), compiled.get()}) {
        const Simulation s = Simulate(*module, KernelPlan(*module), options);
        double most = 0;
        for (const ComputationTime& c : s.computations) {
          for (double bytes : c.vmem) most = std::max(most, c.runs > 0 ? bytes : 0);
        }
        EXPECT_GT(most, 0) << name;
        EXPECT_EQ(s.vmem_peak, most) << name;
        EXPECT_LE(most, options.machine.OnChipBytes()) << name << " " << rows;
      }
    }
  }
}

// Returns the peak bytes of the arrays in S(1) over a schedule, live from their definition to the last use under any
// shape.
int64_t PeakOfAssigned(const DeviceDescription& machine, Computation c) {
  std::vector<Instruction> order;
  absl::flat_hash_map<uint32_t, size_t> place;
  for (Instruction i : c.instructions()) {
    place[i.id().value] = order.size();
    order.push_back(i);
  }
  std::vector<int64_t> bytes(order.size(), 0);
  for (size_t from = 0; from < order.size(); ++from) {
    const Instruction i = order[from];
    const bool kept =
        i.shape().IsArray() && i.shape().has_layout() && i.shape().layout()->memory_space() == kVectorMemorySpace;
    if (!kept || IsLayoutBitcast(i)) continue;
    size_t begin = from, end = from;
    if (i.opcode() == Opcode::kGetTupleElement || i.opcode() == Opcode::kCopyDone)
      begin = place[i.operand(0).id().value];
    std::vector<Instruction> open = {i};
    while (!open.empty()) {
      const Instruction value = open.back();
      open.pop_back();
      for (Instruction user : value.users()) {
        end = std::max(end, place[user.id().value]);
        if (IsLayoutBitcast(user) || user.opcode() == Opcode::kCopyStart) open.push_back(user);
      }
    }
    for (size_t k = begin; k <= end; ++k) bytes[k] += PaddedBytes(machine, i.shape());
  }
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

TEST(CompiledProgramTest, AssignedArraysFit) {
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    const SimulationOptions options = OneChipOptionsOf(name);
    const DeviceDescription& machine = options.machine;
    const double room = machine.OnChipBytes() - machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
    int64_t most = 0;
    for (int64_t rows : kRows) {
      const std::unique_ptr<Module> module = Compiled(rows, options);
      for (Computation c : module->computations()) most = std::max(most, PeakOfAssigned(machine, c));
    }
    EXPECT_LE(static_cast<double>(most), room) << name;
    EXPECT_GT(most, 0) << name;
  }
}

TEST(CompiledProgramTest, TimesAddUpAndScale) {
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    SimulationOptions options = OneChipOptionsOf(name);
    const std::unique_ptr<Module> module = Compiled(1024, options);
    const KernelPlan plan(*module);
    const Simulation once = Simulate(*module, plan, options);
    EXPECT_NEAR((once.core_busy + once.stall) / once.device_seconds, 1, 1e-9) << name;
    double rows = 0;
    for (const OpRow& row : once.rows) rows += row.kind == ScheduleUnitKind::kKernel ? row.seconds : 0;
    EXPECT_NEAR(rows / once.core_busy, 1, 1e-9) << name;
    options.machine = Scaled(options.machine, 2);
    EXPECT_NEAR(Simulate(*module, plan, options).device_seconds / once.device_seconds, 0.5, 1e-9) << name;
  }
}

}  // namespace
}  // namespace hlokit::tpu
