// SPDX-License-Identifier: Apache-2.0
#include "interp/program/compile.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/program/engine_table.h"
#include "ir/core/first_error.h"
#include "ir/text/literal_text.h"
#include "tests/unit/parsed_module.h"

namespace hlokit::interp {
namespace {

constexpr const char* kSharded = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[4] add(x, x), sharding={devices=[2]<=[2]}
})";

Literal Values(const Module& module, std::vector<float> values) {
  const Shape shape = module.entry().parameter(0).shape();
  Literal literal = Literal::Zeros(shape);
  for (size_t i = 0; i < values.size(); ++i) literal.values<float>()[i] = values[i];
  return literal;
}

TEST(CompileTest, RunsWholeArraysOfAPartitionedProgram) {
  const std::unique_ptr<Module> module = Parse(kSharded);
  EvaluatorOptions options;
  options.num_partitions = 2;
  for (const EngineRow& row : Engines()) {
    CompileOptions compile;
    compile.engine = row.kind;
    DiagnosticSink sink;
    absl::StatusOr<LoweredProgram> lowered = Lower(*module, compile, options, &sink);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_TRUE(lowered->division);
    const std::unique_ptr<Executable> executable = Compile(*std::move(lowered), compile, options, &sink);
    ASSERT_NE(executable, nullptr) << row.name;
    EXPECT_EQ(executable->argument_devices(), 1);
    const std::vector<Literal> arguments = {Values(*module, {1, 2, 3, 4})};
    const std::optional<std::vector<Literal>> results = executable->Run(arguments, &sink);
    ASSERT_TRUE(results) << FirstErrorOf(sink);
    EXPECT_EQ((*results)[0].values<float>()[3], 8) << row.name;
  }
}

TEST(CompileTest, ReturnsTheResultsOfEachDeviceIfAsked) {
  const std::unique_ptr<Module> module = Parse(kSharded);
  EvaluatorOptions options;
  options.num_partitions = 2;
  CompileOptions compile;
  compile.results_by_device = true;
  DiagnosticSink sink;
  absl::StatusOr<LoweredProgram> lowered = Lower(*module, compile, options, &sink);
  ASSERT_TRUE(lowered.ok());
  const std::unique_ptr<Executable> executable = Compile(*std::move(lowered), compile, options, &sink);
  ASSERT_NE(executable, nullptr);
  const std::vector<Literal> arguments = {Values(*module, {1, 2, 3, 4})};
  const std::optional<std::vector<Literal>> results = executable->Run(arguments, &sink);
  ASSERT_TRUE(results);
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ((*results)[1].shape().dim(0), 2);
  EXPECT_EQ((*results)[1].values<float>()[0], 6);
}

TEST(CompileTest, LeavesAWholeProgramIfAsked) {
  const std::unique_ptr<Module> module = Parse(kSharded);
  EvaluatorOptions options;
  options.num_partitions = 2;
  CompileOptions compile;
  compile.partition = false;
  DiagnosticSink sink;
  const absl::StatusOr<LoweredProgram> lowered = Lower(*module, compile, options, &sink);
  ASSERT_TRUE(lowered.ok());
  EXPECT_FALSE(lowered->division);
  EXPECT_EQ(lowered->module, module.get());
}

TEST(CompileTest, AnInvalidModuleIsAnInvalidArgument) {
  const std::unique_ptr<Module> module = Parse("ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[5] add(x, x)\n}");
  CompileOptions compile;
  compile.verification = Verification::kVerify;
  DiagnosticSink sink;
  const absl::Status status = Lower(*module, compile, EvaluatorOptions(), &sink).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(std::string(status.message()).starts_with("invalid program: "));
  EXPECT_TRUE(sink.has_errors());
}

TEST(CompileTest, AnErrorOfPassesNamesTheirFlag) {
  const std::unique_ptr<Module> module = Parse("ENTRY e {\n  ROOT x = f32[4] parameter(0)\n}");
  CompileOptions compile;
  compile.passes = "no-such-pass";
  compile.passes_flag = "--passes";
  DiagnosticSink sink;
  EXPECT_FALSE(Lower(*module, compile, EvaluatorOptions(), &sink).ok());
  EXPECT_TRUE(FirstErrorOf(sink).starts_with("--passes: ")) << FirstErrorOf(sink);
}

// Of the fast engine: it changes what is not shown, and was verified.
TEST(CompileTest, PassesOfTheEngineAreLeftOutWhereInstructionsAreShown) {
  const std::unique_ptr<Module> module = Parse(
      "ENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] add(x, x)\n  z = f32[4] add(x, x)\n"
      "  ROOT w = f32[4] multiply(y, z)\n}");
  CompileOptions compile;
  compile.engine = EngineKind::kFast;
  DiagnosticSink sink;
  EXPECT_NE(Lower(*module, compile, EvaluatorOptions(), &sink)->module, module.get());
  compile.shows_instructions = true;
  EXPECT_EQ(Lower(*module, compile, EvaluatorOptions(), &sink)->module, module.get());
  compile.shows_instructions = false;
  compile.verification = Verification::kUnverified;
  EXPECT_EQ(Lower(*module, compile, EvaluatorOptions(), &sink)->module, module.get());
}

TEST(CompileTest, AModuleThatIsGivenAwayChangesInPlace) {
  std::unique_ptr<Module> module =
      Parse("ENTRY e {\n  x = f32[4] parameter(0)\n  unused = f32[4] add(x, x)\n  ROOT y = f32[4] negate(x)\n}");
  const Module* const before = module.get();
  CompileOptions compile;
  compile.passes = "dce";
  DiagnosticSink sink;
  const absl::StatusOr<LoweredProgram> lowered = Lower(std::move(module), compile, EvaluatorOptions(), &sink);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->module, before);
  EXPECT_EQ(lowered->module->entry().instruction_count(), 2);
}

TEST(EngineTableTest, NamesAndKindsAreOneToOne) {
  for (const EngineRow& row : Engines()) {
    EXPECT_EQ(EngineKindOf(row.name), row.kind);
    EXPECT_EQ(&RowOf(row.kind), &row);
    EXPECT_NE(row.compared_with, row.kind);
  }
  // Others may follow.
  EXPECT_TRUE(EngineNamesWith(&EngineRow::generates_code).starts_with("fast"));
  EXPECT_TRUE(EngineNamesWith(&EngineRow::runs_in_processes).starts_with("exact or fast"));
  EXPECT_FALSE(EngineKindOf("quick"));
  EXPECT_TRUE(UnknownEngineMessage("quick").starts_with("engine: \"quick\" is none of exact, fast"));
}

}  // namespace
}  // namespace hlokit::interp
