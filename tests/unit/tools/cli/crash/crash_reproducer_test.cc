// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/crash/crash_reproducer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "tests/unit/files.h"
#include "tests/unit/parsed_module.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::cli {
namespace {

constexpr char kText[] = R"(HloModule doubled
ENTRY e {
  p = f32[4] parameter(0)
  dead = f32[4] negate(p)
  a = f32[4] exponential(p)
  b = f32[4] exponential(p)
  ROOT r = f32[4] add(a, b)
}
)";

// Stops the pipeline after the pass of this number.
class StopAfter : public PassInstrumentation {
 public:
  explicit StopAfter(int64_t number) : number_(number) {}
  absl::Status RunAfterPass(const PassRun& run, const Module&, bool) override {
    return run.number == number_ ? absl::InternalError("stop") : absl::OkStatus();
  }

 private:
  const int64_t number_;
};

TEST(CrashReproducerTest, HoldsTheModuleBeforeThePassAndItsCommand) {
  const TemporaryFolder directory;
  const std::string path = (directory.path() / "crash.hlo").string();
  CrashReproducer reproducer(path);
  StopAfter stop(2);
  PassInstrumentation* const instruments[] = {&reproducer, &stop};
  const std::unique_ptr<Module> module = Parse(kText);
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("dce,fusion{max-operands=3},cse");
  ASSERT_TRUE(pipeline.ok());
  ASSERT_FALSE(pipeline->Run(*module, {}, instruments).ok());
  ASSERT_TRUE(reproducer.Write().ok());

  const std::string text = ReadFile(path);
  EXPECT_TRUE(text.starts_with(StrCat("// hlo-opt --passes='fusion{max-operands=3}' ", path, "\nHloModule doubled")))
      << text;
  // After dce, before fusion.
  const std::unique_ptr<Module> saved = Parse(text);
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(saved->instruction_count(), 4u);
}

TEST(CrashReproducerTest, NothingIsWrittenBeforeTheFirstPass) {
  const TemporaryFolder directory;
  const std::string path = (directory.path() / "crash.hlo").string();
  const CrashReproducer reproducer(path);
  EXPECT_TRUE(reproducer.Write().ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(CrashReproducerTest, FailedWriteNamesTheFile) {
  const TemporaryFolder directory;
  const std::string path = (directory.path() / "none" / "crash.hlo").string();
  CrashReproducer reproducer(path);
  PassInstrumentation* const instruments[] = {&reproducer};
  const std::unique_ptr<Module> module = Parse(kText);
  ASSERT_TRUE(Pipeline::Parse("dce")->Run(*module, {}, instruments).ok());
  const absl::Status status = reproducer.Write();
  EXPECT_TRUE(std::string(status.message()).starts_with(StrCat(path, ": "))) << status;
}

// Raises a fatal signal in the pass.
class Crash : public PassInstrumentation {
 public:
  absl::Status RunAfterPass(const PassRun&, const Module&, bool) override {
    std::raise(SIGSEGV);
    return absl::OkStatus();
  }
};

TEST(CrashReproducerDeathTest, FatalSignalWritesTheFile) {
  const TemporaryFolder directory;
  const std::string path = (directory.path() / "crash.hlo").string();
  const auto run = [&path] {
    CrashReproducer reproducer(path);
    Crash crash;
    PassInstrumentation* const instruments[] = {&reproducer, &crash};
    const std::unique_ptr<Module> module = Parse(kText);
    (void)Pipeline::Parse("cse")->Run(*module, {}, instruments);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_TRUE(ReadFile(path).starts_with(StrCat("// hlo-opt --passes='cse' ", path, "\nHloModule doubled")));
}

}  // namespace
}  // namespace hlokit::cli
