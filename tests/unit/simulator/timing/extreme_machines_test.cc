// SPDX-License-Identifier: Apache-2.0
// Device descriptions with extreme parameters, and unusual programs: the simulation, the memory plan and the report
// stay finite.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"
#include "simulator/export/report_document.h"
#include "simulator/export/xplane.h"
#include "simulator/report/report.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {
namespace {

// One instruction of each kind of work.
constexpr char kEveryKindProgram[] = R"(
HloModule everything, replica_count=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

body {
  s = (s32[], f32[64,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[64,256] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  e = f32[64,256] exponential(v)
  ROOT t = (s32[], f32[64,256]) tuple(next, e)
}

condition {
  s = (s32[], f32[64,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[64,256] parameter(0)
  w = f32[256,256] parameter(1)
  image = bf16[2,16,16,3] parameter(2)
  filter = bf16[3,3,3,8] parameter(3)
  table = f32[100,256] parameter(4)
  index = s32[5,1] parameter(5)
  none = f32[0,128] parameter(6)
  y = f32[64,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}
  g = f32[256,256] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  all = f32[256,256] all-reduce(g), replica_groups={{0,1,2,3}}, to_apply=sum
  conv = bf16[2,16,16,8] convolution(image, filter), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  rows = f32[5,256] gather(table, index), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}
  turned = f32[256,64] transpose(y), dimensions={1,0}
  sorted = f32[64,256] sort(y), dimensions={1}, to_apply=less
  zero = f32[] constant(0)
  start = s32[] constant(0)
  total = f32[64] reduce(sorted, zero), dimensions={1}, to_apply=sum
  state = (s32[], f32[64,256]) tuple(start, y)
  loop = (s32[], f32[64,256]) while(state), condition=condition, body=body
  end = f32[64,256] get-tuple-element(loop), index=1
  unknown = f32[64,256] custom-call(end), custom_call_target="nobody_knows"
  empty = f32[0,128] negate(none)
  ROOT out = (f32[256,256], bf16[2,16,16,8], f32[5,256], f32[256,64], f32[64], f32[64,256], f32[0,128]) tuple(all, conv, rows, turned, total, unknown, empty)
}
)";

void ExpectNumbers(const nlohmann::json& json, const std::string& where) {
  // Infinities and NaNs are written as null.
  EXPECT_FALSE(json.is_null()) << where;
  if (json.is_object()) {
    for (const auto& item : json.items()) ExpectNumbers(item.value(), where + "." + item.key());
  } else if (json.is_array()) {
    for (const nlohmann::json& item : json) ExpectNumbers(item, where + "[]");
  }
}

// Compiles, simulates, plans memory, reports and profiles.
void GoAllTheWay(const DeviceDescription& machine, const std::string& chips, const std::string& what) {
  SCOPED_TRACE(what);
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(kEveryKindProgram);
  ASSERT_TRUE(module.ok()) << module.status();
  SimulationOptions options;
  options.machine = machine;
  const absl::StatusOr<Topology> topology = ParseTopology(machine, chips);
  options.topology = topology.ok() ? *topology : TopologyFor(machine, 1);
  const absl::Status status = Compile(options, "tpu", module->get());
  ASSERT_TRUE(status.ok()) << status;
  const KernelPlan plan(**module);
  const Simulation simulation = Simulate(**module, plan, options);
  EXPECT_TRUE(std::isfinite(simulation.device_seconds) && simulation.device_seconds >= 0) << simulation.device_seconds;
  const MemoryPlan memory = PlanMemory(machine, **module, plan, simulation.implicit_partitions);
  EXPECT_GT(memory.peak_bytes, 0);
  const ReportInput input{**module, options, simulation, memory};
  const absl::StatusOr<HostModel> host =
      ParseHostModel("steps=3,trace=1ms", machine.queued_dispatch_latency, machine.host_rate);
  ASSERT_TRUE(host.ok()) << host.status();
  const nlohmann::json report = nlohmann::json::parse(ReportDocument(input, plan, *host, {}));
  ExpectNumbers(report, "report");
  EXPECT_FALSE(XSpaceBytes(BuildProfileSpace({&input, &plan}, *host, 2, 1000)).empty());
}

TEST(ExtremeMachines, EachFigureAtItsEnds) {
  for (const DeviceDescriptionField& field : DeviceDescriptionFields()) {
    for (double end : {field.minimum, field.maximum}) {
      DeviceDescription machine = *BuiltinDeviceDescription("v5e");
      machine.*field.member = end;
      GoAllTheWay(machine, "2x2", std::string(field.name) + " at " + std::to_string(end));
      if (HasFailure()) return;
    }
  }
}

TEST(ExtremeMachines, AllFiguresAtTheirEnds) {
  for (const bool high : {false, true}) {
    DeviceDescription machine = *BuiltinDeviceDescription("v5p");
    for (const DeviceDescriptionField& field : DeviceDescriptionFields()) {
      machine.*field.member = high ? field.maximum : field.minimum;
    }
    GoAllTheWay(machine, "1", high ? "all at their most" : "all at their least");
  }
}

TEST(ExtremeMachines, FiguresDrawnFromTheirRanges) {
  std::mt19937 random(7);
  const auto unit = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (int round = 0; round < 60; ++round) {
    const std::vector<std::string_view> names = BuiltinDeviceDescriptions();
    DeviceDescription machine = *BuiltinDeviceDescription(names[random() % names.size()]);
    for (const DeviceDescriptionField& field : DeviceDescriptionFields()) {
      if (unit() < 0.7) continue;
      // By magnitude, since most ranges span many orders.
      const double low = std::max(field.minimum, field.maximum * 1e-18);
      machine.*field.member = low * std::pow(field.maximum / low, unit());
    }
    GoAllTheWay(machine, round % 2 == 0 ? "2x2" : "4", "round " + std::to_string(round));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace hlokit::tpu
