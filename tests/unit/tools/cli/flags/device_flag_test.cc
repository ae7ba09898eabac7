// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/device_flag.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "simulator/timing/device_selection.h"
#include "tests/unit/captured_stderr.h"
#include "tests/unit/files.h"
#include "tests/unit/parsed_module.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::cli {
namespace {

using Parts = std::pair<std::string, std::string>;

std::unique_ptr<Module> ModuleOf(int64_t replicas) {
  return Parse(StrCat("HloModule m, replica_count=", replicas, "\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"));
}

TEST(DeviceFlagTest, ChipsFollowTheLastColon) {
  EXPECT_EQ(tpu::SplitDeviceName("v5p:4x4x4"), Parts("v5p", "4x4x4"));
  EXPECT_EQ(tpu::SplitDeviceName("v6e"), Parts("v6e", ""));
  EXPECT_EQ(tpu::SplitDeviceName("v6e:"), Parts("v6e", ""));
  EXPECT_EQ(tpu::SplitDeviceName("a:b/mine.tpu:16"), Parts("a:b/mine.tpu", "16"));
}

TEST(DeviceFlagTest, BuiltinDescription) {
  DiagnosticReporter diagnostics({});
  const std::optional<tpu::DeviceDescription> machine = LoadDeviceDescription("v5e", &diagnostics);
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->name, "v5e");
  EXPECT_EQ(machine->hbm_rate, 819e9);
  EXPECT_EQ(diagnostics.exit_code(), kOk);
}

TEST(DeviceFlagTest, UnknownNameListsTheKnownOnes) {
  DiagnosticReporter diagnostics({});
  const std::string text = StderrOf([&] { EXPECT_FALSE(LoadDeviceDescription("v9", &diagnostics)); });
  EXPECT_NE(text.find("unknown target `v9`; expected one of "), std::string::npos) << text;
  for (const std::string_view known : tpu::BuiltinDeviceDescriptions()) {
    EXPECT_NE(text.find(StrCat(" ", known)), std::string::npos) << known;
  }
  EXPECT_EQ(diagnostics.exit_code(), kUsage);
}

TEST(DeviceFlagTest, DescriptionFromFile) {
  const TemporaryFolder directory;
  DiagnosticReporter diagnostics({});
  const std::string path = WriteFile(directory.path() / "mine.tpu", "tpu mine\n  like v5e\n  hbm_size 32 GiB\n");
  const std::optional<tpu::DeviceDescription> machine = LoadDeviceDescription(path, &diagnostics);
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->name, "mine");
  EXPECT_EQ(machine->hbm_size, 32.0 * (1 << 30));
  EXPECT_EQ(machine->hbm_rate, 819e9);
}

TEST(DeviceFlagTest, ErrorInFileIsLocated) {
  const TemporaryFolder directory;
  DiagnosticReporter diagnostics({});
  const std::string path = WriteFile(directory.path() / "mine.tpu", "tpu mine\n  like v5e\n  hbm_sice 32 GiB\n");
  const std::string text = StderrOf([&] { EXPECT_FALSE(LoadDeviceDescription(path, &diagnostics)); });
  EXPECT_NE(text.find("mine.tpu:3:3: error:"), std::string::npos) << text;
  EXPECT_NE(text.find("hbm_size"), std::string::npos) << text;
  EXPECT_EQ(diagnostics.exit_code(), kRejected);
}

TEST(DeviceFlagTest, MissingFileIsAUsageError) {
  const TemporaryFolder directory;
  DiagnosticReporter diagnostics({});
  const std::string path = (directory.path() / "none.tpu").string();
  const std::string text = StderrOf([&] { EXPECT_FALSE(LoadDeviceDescription(path, &diagnostics)); });
  EXPECT_NE(text.find(path), std::string::npos) << text;
  EXPECT_EQ(diagnostics.exit_code(), kUsage);
}

TEST(DeviceFlagTest, SummaryIsThatOfAChip) {
  EXPECT_EQ(DeviceSummary(*tpu::BuiltinDeviceDescription("v5e")),
            "197 TFLOP/s bf16, 16 GiB HBM at 819 GB/s, up to 256 chips");
  // Two devices a chip.
  const std::string v3 = DeviceSummary(*tpu::BuiltinDeviceDescription("v3"));
  EXPECT_TRUE(v3.starts_with("123 TFLOP/s bf16, 32 GiB HBM at 900 GB/s")) << v3;
}

TEST(DeviceFlagTest, WithoutChipsAsManyAsTheModuleRequires) {
  const std::unique_ptr<Module> module = ModuleOf(16);
  const auto chips_of = [&](const char* device) {
    return ToString(*tpu::TopologyFor(*tpu::BuiltinDeviceDescription(device), "", *module, device));
  };
  EXPECT_EQ(chips_of("v5e"), "4x4");
  EXPECT_EQ(chips_of("v5p"), "2x2x4");
  // Two devices a chip.
  EXPECT_EQ(chips_of("v3"), "2x4");
}

TEST(DeviceFlagTest, OddDevicesRoundUpToChips) {
  const std::unique_ptr<Module> module = ModuleOf(3);
  const absl::StatusOr<tpu::Topology> chips = tpu::TopologyFor(*tpu::BuiltinDeviceDescription("v3"), "", *module, "v3");
  ASSERT_TRUE(chips.ok());
  EXPECT_EQ(chips->Chips(), 2);
}

TEST(DeviceFlagTest, GivenChips) {
  const std::unique_ptr<Module> module = ModuleOf(4);
  const tpu::DeviceDescription machine = *tpu::BuiltinDeviceDescription("v5e");
  EXPECT_EQ(ToString(*tpu::TopologyFor(machine, "2x2", *module, "v5e:2x2")), "2x2");
  EXPECT_EQ(ToString(*tpu::TopologyFor(machine, "8", *module, "v5e:8")), "2x4");
  EXPECT_EQ(tpu::TopologyFor(machine, "2*2x4", *module, "v5e")->Chips(), 16);
}

TEST(DeviceFlagTest, TooFewChips) {
  const std::unique_ptr<Module> module = ModuleOf(8);
  const absl::Status status =
      tpu::TopologyFor(*tpu::BuiltinDeviceDescription("v5e"), "2x2", *module, "v5e:2x2").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "the module requires 8 devices, but v5e:2x2 has 4");
  // On v3 the same chips have as many devices as required.
  EXPECT_TRUE(tpu::TopologyFor(*tpu::BuiltinDeviceDescription("v3"), "2x2", *module, "v3:2x2").ok());
}

TEST(DeviceFlagTest, MalformedChips) {
  const std::unique_ptr<Module> module = ModuleOf(1);
  const tpu::DeviceDescription machine = *tpu::BuiltinDeviceDescription("v5e");
  for (const char* text : {"2x", "x2", "2y2", "0x4", "-4", "2x2x2", "512", "99999999999999999999", "0*4"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(tpu::TopologyFor(machine, text, *module, "v5e").status())) << text;
  }
}

}  // namespace
}  // namespace hlokit::cli
