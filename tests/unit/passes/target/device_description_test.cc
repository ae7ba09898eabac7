// SPDX-License-Identifier: Apache-2.0
#include "passes/target/device_description.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "passes/target/topology.h"

namespace hlokit::tpu {
namespace {

std::string DescriptionErrorOf(const std::string& text) {
  DiagnosticSink sink;
  const SourceBuffer source("m.tpu", text);
  EXPECT_FALSE(ParseDeviceDescription(source, &sink).has_value()) << text;
  return RenderText(sink, source);
}

TEST(DeviceDescriptionTest, InstalledMachinesReachTheirPublishedPeaks) {
  const std::pair<const char*, double> kPeaks[] = {{"v2", 46e12},   {"v3", 123e12},  {"v4i", 137e12}, {"v4", 275e12},
                                                   {"v5e", 197e12}, {"v5p", 459e12}, {"v6e", 918e12}, {"v7x", 2307e12}};
  for (const auto& [name, peak] : kPeaks) {
    const std::optional<DeviceDescription> machine = BuiltinDeviceDescription(name);
    ASSERT_TRUE(machine.has_value()) << name;
    EXPECT_NEAR(machine->PeakFlops() * static_cast<double>(machine->devices_per_chip()) / peak, 1, 0.01) << name;
  }
}

TEST(DeviceDescriptionTest, EveryFigureOfInstalledMachinesHasASource) {
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    const std::optional<DeviceDescription> machine = BuiltinDeviceDescription(name);
    ASSERT_TRUE(machine.has_value()) << name;
    for (size_t i = 0; i < DeviceDescriptionFields().size(); ++i) {
      EXPECT_FALSE(machine->sources[i].empty()) << name << " " << DeviceDescriptionFields()[i].name;
    }
  }
}

TEST(DeviceDescriptionTest, TextReadsBack) {
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    const DeviceDescription machine = *BuiltinDeviceDescription(name);
    DiagnosticSink sink;
    const std::optional<DeviceDescription> again = ParseDeviceDescription(SourceBuffer("m", ToString(machine)), &sink);
    ASSERT_TRUE(again.has_value()) << ToString(machine);
    for (const DeviceDescriptionField& field : DeviceDescriptionFields()) {
      EXPECT_EQ(machine.*field.member, (*again).*field.member) << name << " " << field.name;
    }
    EXPECT_EQ(ToString(*again), ToString(machine));
  }
}

TEST(DeviceDescriptionTest, ADerivedMachineChangesOnlyWhatItGives) {
  DiagnosticSink sink;
  const std::optional<DeviceDescription> machine = ParseDeviceDescription(
      SourceBuffer("m", "# twice the memory\ntpu mine\n  like v5e\n  hbm_size 32 GiB  # wish\n"), &sink);
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->name, "mine");
  EXPECT_EQ(machine->hbm_size, 32.0 * (1 << 30));
  EXPECT_EQ(machine->clock, BuiltinDeviceDescription("v5e")->clock);
}

TEST(DeviceDescriptionTest, OldKeysAreRead) {
  DiagnosticSink sink;
  const SourceBuffer source("m.tpu", "tpu a\n like v5e\n ici_hop 3 us\n dispatch_queued 7 us\n");
  const std::optional<DeviceDescription> machine = ParseDeviceDescription(source, &sink);
  ASSERT_TRUE(machine.has_value());
  EXPECT_DOUBLE_EQ(machine->ici_hop_latency, 3e-6);
  EXPECT_DOUBLE_EQ(machine->queued_dispatch_latency, 7e-6);
  EXPECT_NE(ToString(*machine).find("ici_hop_latency"), std::string::npos);
}

TEST(DeviceDescriptionTest, FiguresHaveErrorBars) {
  DiagnosticSink sink;
  const SourceBuffer source("m.tpu", "tpu a\n like v5e\n hbm_rate 1 TB/s +-2.5%  # a guess\n mxu_efficiency 0.9\n");
  const std::optional<DeviceDescription> machine = ParseDeviceDescription(source, &sink);
  ASSERT_TRUE(machine.has_value());
  EXPECT_DOUBLE_EQ(machine->ErrorOf("hbm_rate"), 0.025);
  EXPECT_EQ(machine->ErrorOf("mxu_efficiency"), 0);
  EXPECT_GT(machine->ErrorOf("hbm_efficiency"), 0);  // of v5e
  EXPECT_NE(ToString(*machine).find("1 TB/s +-2.5%"), std::string::npos);
}

TEST(DeviceDescriptionTest, MistakesAreNamed) {
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n hbm_rate 1 TB/s +-x%\n").find("expected an error bar"),
            std::string::npos);
  EXPECT_NE(DescriptionErrorOf("").find("found an empty description"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("gpu a\n").find("m.tpu:1:1: error: expected `tpu NAME`"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n clock 1 GHz\n").find("missing parameter `cores_per_chip`"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v9\n").find("unknown target `v9`"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n hbm_rat 1 GB/s\n").find("did you mean `hbm_rate`?"),
            std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n hbm_rate 1\n").find("expected a unit"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n hbm_rate 1 GiB\n").find("one of TB/s, GB/s"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n hbm_rate -1 GB/s\n").find("must be between"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n clock nan GHz\n").find("expected a number"), std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n clock 1 GHz\n clock 1 GHz\n").find("duplicate parameter `clock`"),
            std::string::npos);
  EXPECT_NE(DescriptionErrorOf("tpu a\n like v5e\n mxu_count 1e300\n").find("must be between"), std::string::npos);
}

TEST(TopologyTest, TextsAndLimits) {
  const DeviceDescription v5e = *BuiltinDeviceDescription("v5e");
  const DeviceDescription v5p = *BuiltinDeviceDescription("v5p");
  EXPECT_EQ(ToString(*ParseTopology(v5p, "4x4x8")), "4x4x8");
  EXPECT_EQ(ToString(*ParseTopology(v5e, "8")), "2x4");
  EXPECT_EQ(ToString(*ParseTopology(v5e, "2*16x16")), "2*16x16");
  EXPECT_EQ(ParseTopology(v5e, "2*16x16")->Chips(), 512);
  for (const char* bad : {"", "x", "4x", "0", "-1", "4x4x4", "17x16", "999999999999999999999", "1x2y", "9999999*4"}) {
    EXPECT_FALSE(ParseTopology(v5e, bad).ok()) << bad;
  }
}

TEST(TopologyTest, AxesWrapAsTheGenerationSays) {
  const DeviceDescription v5e = *BuiltinDeviceDescription("v5e");
  const DeviceDescription v5p = *BuiltinDeviceDescription("v5p");
  const Topology half = *ParseTopology(v5e, "8x16");
  EXPECT_FALSE(half.Wraps(v5e, 0));
  EXPECT_TRUE(half.Wraps(v5e, 1));
  EXPECT_TRUE(ParseTopology(v5p, "4x4x8")->Wraps(v5p, 2));
  EXPECT_FALSE(ParseTopology(v5p, "2x4x8")->Wraps(v5p, 2));
}

TEST(DeviceDescriptionTest, DamagedDescriptionsAreReadOrRefused) {
  std::mt19937 random(5);
  const auto draw = [&](size_t below) { return static_cast<size_t>(random()) % below; };
  constexpr std::string_view kPieces[] = {"1e308", "-1",  "nan", "0x1p9", "like v5e", "\n",
                                          "#",     "GiB", "tpu", "\0",    "9"};
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::vector<std::string_view> names = BuiltinDeviceDescriptions();
    std::string text(*BuiltinDeviceDescriptionText(names[draw(names.size())]));
    for (size_t damage = 1 + draw(4); damage > 0; --damage) {
      const size_t at = draw(text.size());
      switch (draw(4)) {
        case 0:
          text.erase(at, 1 + draw(40));
          break;
        case 1:
          text.insert(at, std::string(kPieces[draw(std::size(kPieces))]));
          break;
        case 2:
          text[at] = static_cast<char>(draw(256));
          break;
        default:
          text.replace(at, std::min<size_t>(text.size() - at, 3), std::string(kPieces[draw(std::size(kPieces))]));
          break;
      }
      if (text.empty()) text = "x";
    }
    DiagnosticSink sink;
    const std::optional<DeviceDescription> machine = ParseDeviceDescription(SourceBuffer("damaged.tpu", text), &sink);
    ASSERT_NE(machine.has_value(), sink.has_errors()) << text;
    if (!machine) continue;
    ++read;
    for (const DeviceDescriptionField& field : DeviceDescriptionFields()) {
      const double value = (*machine).*field.member;
      EXPECT_GE(value, field.minimum) << field.name;
      EXPECT_LE(value, field.maximum) << field.name;
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace hlokit::tpu
