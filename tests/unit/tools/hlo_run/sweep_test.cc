// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/sweep.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/unit/captured_stderr.h"
#include "tests/unit/parsed_module.h"

namespace hlokit::run {
namespace {

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() { flags_.device = "v5e"; }

  static std::unique_ptr<Module> Program(const std::string&) {
    return Parse("HloModule m\nENTRY e {\n  p = f32[1024,4096] parameter(0)\n  ROOT a = f32[1024,4096] add(p, p)\n}\n");
  }
  nlohmann::json Rows(const std::string& sweep) {
    flags_.sweep = sweep;
    flags_.json = true;
    const std::optional<std::string> text = Sweep(flags_, Program, false, &diagnostics_);
    return text ? nlohmann::json::parse(*text) : nlohmann::json();
  }
  std::string Rejection(const std::string& sweep) {
    flags_.sweep = sweep;
    cli::DiagnosticReporter diagnostics{cli::InputOptions()};
    const std::string text = StderrOf([&] { EXPECT_FALSE(Sweep(flags_, Program, false, &diagnostics)); });
    EXPECT_EQ(diagnostics.exit_code(), cli::kUsage);
    return text;
  }

  SimulationFlags flags_;
  cli::DiagnosticReporter diagnostics_{cli::InputOptions()};
};

// An addition of arrays in HBM is bound by memory: half the rate, twice the time.
TEST_F(SweepTest, RowsFollowTheParameter) {
  const nlohmann::json rows = Rows("hbm=1,0.5");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["hbm"], "1");
  EXPECT_NEAR(rows[1]["device_time_us"].get<double>() / rows[0]["device_time_us"].get<double>(), 2, 0.2);
}

TEST_F(SweepTest, TypesChangeTheProgram) {
  const nlohmann::json rows = Rows("dtype=f32,bf16");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[0]["peak_bytes"].get<double>() / rows[1]["peak_bytes"].get<double>(), 2, 0.2);
}

TEST_F(SweepTest, TableHasARowAndABarForEachValue) {
  flags_.sweep = "device=v4,v5p";
  const std::optional<std::string> text = Sweep(flags_, Program, false, &diagnostics_);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("bound by"), std::string::npos) << *text;
  EXPECT_NE(text->find("\n v4  |"), std::string::npos) << *text;
  EXPECT_NE(text->find("\nv5p  |"), std::string::npos) << *text;
}

TEST_F(SweepTest, Mistakes) {
  for (const std::string sweep : {"", "hbm", "hbm=", "=1"}) {
    EXPECT_NE(Rejection(sweep).find("expected WHAT=VALUE,VALUE"), std::string::npos) << sweep;
  }
  EXPECT_NE(Rejection("chip=1,2").find("cannot sweep `chip`"), std::string::npos);
  EXPECT_NE(Rejection("batch=1,2").find("a program has one batch"), std::string::npos);
  EXPECT_NE(Rejection("dtype=s32").find("expected dtype f32, bf16, f16 or f64"), std::string::npos);
}

}  // namespace
}  // namespace hlokit::run
