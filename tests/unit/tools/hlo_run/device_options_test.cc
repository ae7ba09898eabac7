// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/device_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "passes/target/device_description.h"
#include "simulator/timing/device_selection.h"
#include "tests/unit/captured_stderr.h"
#include "tests/unit/parsed_module.h"

namespace hlokit::run {
namespace {

constexpr std::string_view kAdd =
    "HloModule m\nENTRY e {\n  p = f32[8,128] parameter(0)\n  ROOT a = f32[8,128] add(p, p)\n}\n";

class DeviceOptionsTest : public ::testing::Test {
 protected:
  DeviceOptionsTest() { flags_.device = "v5e"; }

  std::optional<tpu::SimulationOptions> Options() { return OptionsFor(flags_, *module_, &diagnostics_); }
  // Returns the message of flags that are not accepted.
  std::string Rejection() {
    cli::DiagnosticReporter diagnostics{cli::InputOptions()};
    const std::string text = StderrOf([&] { EXPECT_FALSE(OptionsFor(flags_, *module_, &diagnostics)); });
    EXPECT_EQ(diagnostics.exit_code(), cli::kUsage);
    return text;
  }

  const std::unique_ptr<Module> module_ = Parse(kAdd);
  SimulationFlags flags_;
  cli::DiagnosticReporter diagnostics_{cli::InputOptions()};
};

TEST_F(DeviceOptionsTest, ScalesMultiply) {
  const double rate = Options()->machine.hbm_rate;
  flags_.scale = {"hbm=2", "hbm_rate=1.5"};
  EXPECT_DOUBLE_EQ(Options()->machine.hbm_rate, 3 * rate);
}

TEST_F(DeviceOptionsTest, AllScalableParametersExist) {
  for (const std::string_view name : tpu::ScalableParameters()) {
    flags_.scale = {std::string(name) + "=1"};
    EXPECT_TRUE(Options()) << name;
  }
}

TEST_F(DeviceOptionsTest, ScalesOfUnknownParametersSuggestOne) {
  flags_.scale = {"hmb=2"};
  EXPECT_NE(Rejection().find("unknown parameter `hmb`; did you mean `hbm`?"), std::string::npos);
}

TEST_F(DeviceOptionsTest, FactorsArePositiveNumbers) {
  for (const std::string factor : {"", "=", "=0", "=-1", "=nan", "=2x"}) {
    flags_.scale = {"hbm" + factor};
    EXPECT_NE(Rejection().find("expected PARAMETER=FACTOR with a positive factor"), std::string::npos) << factor;
  }
  flags_.scale = {"hbm=1e7"};
  EXPECT_NE(Rejection().find("expected a positive factor of at most"), std::string::npos);
}

TEST_F(DeviceOptionsTest, Stragglers) {
  flags_.device = "v5e:2x2";
  flags_.variation.stragglers = {"3:1.5", "any:2"};
  const std::optional<tpu::SimulationOptions> options = Options();
  ASSERT_TRUE(options);
  ASSERT_EQ(options->variation.stragglers.size(), 2u);
  EXPECT_EQ(options->variation.stragglers[0].device, 3);
  EXPECT_EQ(options->variation.stragglers[0].factor, 1.5);
  EXPECT_EQ(options->variation.stragglers[1].device, -1);
  flags_.variation.stragglers = {"4:1.5"};
  EXPECT_NE(Rejection().find("device 4 is out of range: there are 4"), std::string::npos);
  for (const std::string straggler : {"3", "3:", ":2", "x:2", "3:0", "-2:1", "3:1.5s"}) {
    flags_.variation.stragglers = {straggler};
    EXPECT_NE(Rejection().find("expected DEVICE:FACTOR or any:FACTOR"), std::string::npos) << straggler;
  }
}

TEST_F(DeviceOptionsTest, DispatchTimeIsInSeconds) {
  EXPECT_EQ(Options()->dispatch, -1);  // that of the device
  flags_.dispatch_us = 5;
  EXPECT_DOUBLE_EQ(Options()->dispatch, 5e-6);
}

TEST_F(DeviceOptionsTest, CompilesModulesWithoutASchedule) {
  const std::optional<tpu::SimulationOptions> options = Options();
  const std::unique_ptr<Module> module = Parse(kAdd);
  EXPECT_TRUE(CompileFor(flags_, *options, module.get(), nullptr, &diagnostics_));
  EXPECT_TRUE(module->header().is_scheduled);
  flags_.pipeline = "";
  const std::unique_ptr<Module> other = Parse(kAdd);
  EXPECT_TRUE(CompileFor(flags_, *options, other.get(), nullptr, &diagnostics_));
  EXPECT_FALSE(other->header().is_scheduled);
}

TEST_F(DeviceOptionsTest, PatternsOfPassesAreChecked) {
  const std::optional<tpu::SimulationOptions> options = Options();
  flags_.print_hlo = "(";
  const std::unique_ptr<Module> module = Parse(kAdd);
  const std::string text =
      StderrOf([&] { EXPECT_FALSE(CompileFor(flags_, *options, module.get(), nullptr, &diagnostics_)); });
  EXPECT_NE(text.find("--print-after"), std::string::npos) << text;
}

}  // namespace
}  // namespace hlokit::run
