// SPDX-License-Identifier: Apache-2.0
#include "interp/observers/profile_report.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/parsed_module.h"

namespace hlokit::interp {
namespace {

class ProfileReportTest : public ::testing::Test {
 protected:
  ProfileReportTest() : profiler_(*module_) {
    for (const Instruction i : module_->entry().instructions()) {
      for (int run = 0; run < (i.opcode() == Opcode::kAdd ? 3 : 1); ++run) {
        profiler_.OnInstructionBegin(i.id());
        profiler_.OnInstructionEnd();
      }
    }
    statistics_.steps = 7;
  }

  const std::unique_ptr<Module> module_ = Parse(
      "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  a = f32[8] add(p, p)\n  ROOT n = f32[8] negate(a)\n}\n");
  InstructionProfiler profiler_;
  RunStatistics statistics_;
};

TEST_F(ProfileReportTest, TablesHaveOpcodesAndInstructions) {
  ProfileReport report = {*module_, profiler_, statistics_, {}};
  const InstructionId root = module_->entry().root().id();
  report.loops[root.value] = {module_->entry().root().operand(0).id(), root};
  std::string text;
  TextWriter out(&text);
  PrintProfile(report, &out);
  out.Flush();
  EXPECT_EQ(text.rfind("profile: ", 0), 0u) << text;
  EXPECT_NE(text.find(" 7 instructions executed"), std::string::npos) << text;
  EXPECT_NE(text.find("  opcode\n"), std::string::npos) << text;
  EXPECT_NE(text.find("n  loop of a, n\n"), std::string::npos) << text;
}

TEST_F(ProfileReportTest, TheJsonHasRunsOfAll) {
  std::string text;
  TextWriter out(&text);
  WriteProfileJson({*module_, profiler_, statistics_, {}}, {0.5, {0.25, 0.125}}, &out);
  out.Flush();
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["module"], "m");
  EXPECT_EQ(json["compile_seconds"], 0.5);
  EXPECT_EQ(json["run_seconds"].size(), 2u);
  int64_t runs = 0;
  for (const nlohmann::json& row : json["instructions"]) {
    if (row["instruction"] == "a") runs = row["runs"];
  }
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace hlokit::interp
