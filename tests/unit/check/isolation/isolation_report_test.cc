// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/isolation_report.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/unit/check/isolation/isolation_text.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kProgram = R"(HloModule m
ENTRY e {
  x = s32[4] parameter(0)
  two = s32[] constant(2)
  twos = s32[4] broadcast(two), dimensions={}
  ROOT y = s32[4] add(x, twos), metadata={op_name="jit(f)/add" source_file="f.py" source_line=3}
})";

class IsolationReportTest : public ::testing::Test {
 protected:
  // Compares kProgram with the module in which `from` is `to`.
  IsolatedRun RunWith(std::string_view from, std::string_view to) {
    before_ = ParseForIsolation(kProgram);
    std::string text(kProgram);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    source_ = std::make_unique<SourceBuffer>("after.hlo", text);
    after_ = ParseForIsolation(text, before_->shared_context());
    DiagnosticSink sink;
    absl::StatusOr<IsolatedRun> run = IsolateInModules(*before_, *after_, EngineKind::kExact, IsolationOptions(),
                                                       MakeFakeArguments(*before_, 1), &sink);
    EXPECT_TRUE(run.ok()) << run.status();
    return *std::move(run);
  }
  std::string Text(const IsolatedRun& run) {
    std::string text;
    TextWriter out(&text);
    PrintIsolation(run, *source_, &out);
    out.Flush();
    return text;
  }
  nlohmann::json Json(const IsolatedRun& run) {
    std::string text;
    TextWriter out(&text);
    WriteIsolationJson(run, *after_, *source_, &out);
    out.Flush();
    return nlohmann::json::parse(text);
  }

  std::unique_ptr<Module> before_, after_;
  std::unique_ptr<SourceBuffer> source_;
};

TEST_F(IsolationReportTest, AnInstructionThatDiffersHasItsPlaces) {
  const IsolatedRun run = RunWith("add(x, twos)", "subtract(x, twos)");
  const std::string text = Text(run);
  EXPECT_NE(text.find("after against before: 1 differ\n"), std::string::npos) << text;
  EXPECT_NE(text.find("y = s32[4] subtract, after.hlo:6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  f.py:3, scope jit(f)/add\n"), std::string::npos) << text;
  const nlohmann::json json = Json(run);
  EXPECT_EQ(json["mode"], "modules");
  ASSERT_EQ(json["differences"].size(), 1u);
  EXPECT_EQ(json["differences"][0]["instruction"], "y");
  EXPECT_EQ(json["differences"][0]["line"], 6);
  EXPECT_EQ(json["differences"][0]["source"], "f.py:3");
  EXPECT_EQ(json["differences"][0]["different_elements"], 4);
}

TEST_F(IsolationReportTest, EqualModulesHaveNone) {
  const IsolatedRun run = RunWith("add(x, twos)", "add(twos, x)");
  EXPECT_NE(Text(run).find("none differs\n"), std::string::npos) << Text(run);
  EXPECT_TRUE(Json(run)["differences"].empty());
}

TEST_F(IsolationReportTest, ARunThatFailsSaysWhy) {
  before_ = ParseForIsolation(kProgram);
  IsolationOptions options;
  options.run.limits.max_bytes = 1;
  DiagnosticSink sink;
  EXPECT_FALSE(IsolateInEngines(*before_, EngineKind::kExact, options, MakeFakeArguments(*before_, 1), &sink).ok());
  EXPECT_TRUE(sink.has_errors());
}

}  // namespace
}  // namespace hlokit::interp
