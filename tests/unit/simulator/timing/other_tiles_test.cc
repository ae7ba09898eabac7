// SPDX-License-Identifier: Apache-2.0
// A generation with another register shape needs only a device description.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "passes/target/tiling.h"
#include "simulator/timing/compile.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

constexpr char kProgram[] = R"(HloModule tiles
ENTRY main {
  x = bf16[12,300]{1,0} parameter(0)
  w = bf16[300,500]{1,0} parameter(1)
  v = f32[4000]{0} parameter(2)
  d = bf16[12,500]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[4000]{0} exponential(v)
  ROOT t = (bf16[12,500]{1,0}, f32[4000]{0}) tuple(d, e)
}
)";

DeviceDescription WithSublanes(int64_t sublanes) {
  DiagnosticSink sink;
  const std::string text = "tpu wide\n  like v6e\n  sublanes " + std::to_string(sublanes) + "\n";
  std::optional<DeviceDescription> machine = ParseDeviceDescription(SourceBuffer("wide.tpu", text), &sink);
  EXPECT_TRUE(machine.has_value());
  return *std::move(machine);
}

// Returns the program compiled for the target.
std::unique_ptr<Module> CompiledFor(const DeviceDescription& machine, SimulationOptions* options) {
  options->machine = machine;
  options->topology = TopologyFor(machine, 1);
  std::unique_ptr<Module> module = Read(kProgram);
  EXPECT_TRUE(Compile(*options, "tpu", module.get()).ok());
  return module;
}

std::string LayoutsOf(const Module& module) {
  std::string text;
  for (int64_t k = 0; k < module.entry().parameter_count(); ++k)
    text += ToString(module.entry().parameter(k).shape()) + " ";
  return text;
}

TEST(OtherTilesTest, LayoutsHaveTheTilesOfTheTarget) {
  SimulationOptions options;
  EXPECT_EQ(LayoutsOf(*CompiledFor(WithSublanes(8), &options)),
            "bf16[12,300]{1,0:T(8,128)(2,1)} bf16[300,500]{1,0:T(8,128)(2,1)} f32[4000]{0:T(1024)} ");
  EXPECT_EQ(LayoutsOf(*CompiledFor(WithSublanes(16), &options)),
            "bf16[12,300]{1,0:T(16,128)(2,1)} bf16[300,500]{1,0:T(16,128)(2,1)} f32[4000]{0:T(2048)} ");
}

TEST(OtherTilesTest, PaddingAndTimesFollow) {
  SimulationOptions narrow_options, wide_options;
  const std::unique_ptr<Module> narrow = CompiledFor(WithSublanes(8), &narrow_options);
  const std::unique_ptr<Module> wide = CompiledFor(WithSublanes(16), &wide_options);
  // 12 rows are two tiles of 8 and one of 16; 300 rows 38 tiles of 8, and 19 of 16.
  EXPECT_EQ(PaddedBytes(wide_options.machine, wide->entry().parameter(0).shape()), 16 * 384 * 2);
  EXPECT_EQ(PaddedBytes(narrow_options.machine, narrow->entry().parameter(1).shape()), 304 * 512 * 2);
  EXPECT_EQ(PaddedBytes(wide_options.machine, wide->entry().parameter(1).shape()), 304 * 512 * 2);
  EXPECT_EQ(PaddedBytes(wide_options.machine, wide->entry().parameter(2).shape()), 4096 * 4);
  const Simulation fast = RunOn(*wide, wide_options), slow = RunOn(*narrow, narrow_options);
  EXPECT_GT(fast.device_seconds, 0);
  // Twice as many positions: vector work takes half the time.
  EXPECT_LT(fast.busy[static_cast<size_t>(Resource::kVpu)], 0.6 * slow.busy[static_cast<size_t>(Resource::kVpu)]);
}

}  // namespace
}  // namespace hlokit::tpu
