// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/values.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interp/program/compile.h"
#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "tests/unit/captured_stderr.h"
#include "tests/unit/files.h"
#include "tests/unit/parsed_module.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::run {
namespace {

class ValuesTest : public ::testing::Test {
 protected:
  ValuesTest() { flags_.options.num_replicas = 2; }

  std::optional<std::vector<Literal>> Arguments() {
    DiagnosticSink sink;
    const std::unique_ptr<interp::Executable> executable =
        interp::Compile(interp::LoweredProgram::Of(*module_), interp::CompileOptions(), flags_.options, &sink);
    return ReadRunArguments(flags_, flags_.options, *module_, *executable, &diagnostics_);
  }
  float At(const Literal& literal, int64_t i) { return reinterpret_cast<const float*>(literal.data())[i]; }

  const std::unique_ptr<Module> module_ =
      Parse("HloModule m, replica_count=2\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n");
  TemporaryFolder folder_;
  Flags flags_;
  cli::DiagnosticReporter diagnostics_{cli::InputOptions()};
};

TEST_F(ValuesTest, ArgumentsOfOneDeviceAreThoseOfAll) {
  flags_.args = WriteFile(folder_.path() / "one.txt", "f32[2] {1, 2}\n");
  const std::optional<std::vector<Literal>> values = Arguments();
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 2u);
  EXPECT_EQ(At((*values)[0], 1), 2);
  EXPECT_EQ(At((*values)[1], 1), 2);
}

TEST_F(ValuesTest, ArgumentsOfEachDevice) {
  flags_.args = WriteFile(folder_.path() / "two.txt", "f32[2] {1, 2}\nf32[2] {3, 4}\n");
  const std::optional<std::vector<Literal>> values = Arguments();
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 2u);
  EXPECT_EQ(At((*values)[0], 0), 1);
  EXPECT_EQ(At((*values)[1], 0), 3);
}

TEST_F(ValuesTest, WrongNumberOfArguments) {
  flags_.args = WriteFile(folder_.path() / "three.txt", "f32[2] {1, 2}\nf32[2] {3, 4}\nf32[2] {5, 6}\n");
  const std::string text = StderrOf([&] { EXPECT_FALSE(Arguments()); });
  EXPECT_NE(text.find("three.txt:"), std::string::npos) << text;
  EXPECT_EQ(diagnostics_.exit_code(), cli::kRejected);
}

TEST_F(ValuesTest, SeededArgumentsDifferByDevice) {
  flags_.seed = flags_.options.seed = 7;
  const std::optional<std::vector<Literal>> first = Arguments(), again = Arguments();
  ASSERT_TRUE(first && again);
  EXPECT_EQ(At((*first)[0], 0), At((*again)[0], 0));
  EXPECT_NE(At((*first)[0], 0), At((*first)[1], 0));
}

TEST_F(ValuesTest, ArgumentsAreRequired) {
  const std::string text = StderrOf([&] { EXPECT_FALSE(Arguments()); });
  EXPECT_NE(text.find("the program has 1 argument: specify --args=FILE, --args-npy=DIR or --seed=N"),
            std::string::npos);
  EXPECT_EQ(diagnostics_.exit_code(), cli::kUsage);
}

TEST_F(ValuesTest, SyntheticArgumentsHaveLimits) {
  flags_.seed = flags_.options.seed = 7;
  flags_.options.limits.max_bytes = 15;  // of 2 arguments of 8 bytes
  EXPECT_NE(
      StderrOf([&] { EXPECT_FALSE(Arguments()); }).find("the arguments take 8 bytes or more; the limit is 7 bytes"),
      std::string::npos);
  flags_.options.limits = interp::Limits();
  flags_.options.limits.max_seconds = 0;
  EXPECT_NE(StderrOf([&] { EXPECT_FALSE(Arguments()); }).find("exceeded the time limit of 0 s (--max-seconds)"),
            std::string::npos);
  flags_.options.limits = interp::Limits();
  const std::atomic<bool> canceled = true;
  flags_.options.cancel = &canceled;
  EXPECT_NE(StderrOf([&] { EXPECT_FALSE(Arguments()); }).find("interrupted"), std::string::npos);
}

// Results written as .npy are read again as arguments.
TEST_F(ValuesTest, NpyDirectoriesRoundTrip) {
  flags_.options.num_replicas = 1;
  flags_.print_results = false;
  Literal value = Literal::Zeros(module_->entry().root().shape());
  reinterpret_cast<float*>(value.data())[1] = -2.5f;
  flags_.results_npy = (folder_.path() / "results").string();
  ASSERT_TRUE(WriteResults(flags_, flags_.options, {value}, {}, /*devices=*/1, /*whole=*/false, &diagnostics_));
  const std::string text = ReadFile(folder_.path() / "results/result0.npy");
  std::filesystem::create_directories(folder_.path() / "arguments/device1");
  flags_.args_npy = (folder_.path() / "arguments").string();
  flags_.options.num_replicas = 2;
  WriteFile(folder_.path() / "arguments/arg0.npy", text);
  const std::optional<std::vector<Literal>> missing = [&] {
    std::optional<std::vector<Literal>> values;
    StderrOf([&] { values = Arguments(); });
    return values;
  }();
  EXPECT_FALSE(missing);  // device 1 has a directory, without the argument
  value.values<float>()[1] = 4;
  flags_.options.num_replicas = 1;
  ASSERT_TRUE(WriteResults(flags_, flags_.options, {value}, {}, /*devices=*/1, /*whole=*/false, &diagnostics_));
  WriteFile(folder_.path() / "arguments/device1/arg0.npy", ReadFile(folder_.path() / "results/result0.npy"));
  flags_.options.num_replicas = 2;
  const std::optional<std::vector<Literal>> read = Arguments();
  ASSERT_TRUE(read);
  EXPECT_EQ(At((*read)[0], 1), -2.5f);
  EXPECT_EQ(At((*read)[1], 1), 4);
}

TEST_F(ValuesTest, ResultsOfDevicesHaveHeadings) {
  flags_.output = (folder_.path() / "results.txt").string();
  const Literal value = Literal::Zeros(module_->entry().root().shape());
  ASSERT_TRUE(WriteResults(flags_, flags_.options, {value, value}, {}, /*devices=*/2, /*whole=*/false, &diagnostics_));
  EXPECT_EQ(ReadFile(flags_.output),
            "// replica 0, partition 0\nf32[2] {0, 0}\n// replica 1, partition 0\nf32[2] {0, 0}\n");
}

TEST_F(ValuesTest, SyntheticArgumentsThatLeadToNansAreReported) {
  Literal value = Literal::Zeros(module_->entry().root().shape());
  reinterpret_cast<float*>(value.data())[0] = std::nanf("");
  DiagnosticSink sink;
  WarnOfNonfinite(flags_, *module_, {value}, &sink);
  EXPECT_TRUE(sink.diagnostics().empty());  // arguments of the user
  flags_.seed = 1;
  WarnOfNonfinite(flags_, *module_, {value}, &sink);
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  EXPECT_EQ(sink.diagnostics()[0].message, "the results of these synthetic arguments have 1 NaN and 0 infinite values");
}

}  // namespace
}  // namespace hlokit::run
