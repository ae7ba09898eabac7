// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "check/isolation/value_directory.h"
#include "tests/unit/check/isolation/isolation_text.h"

namespace hlokit::interp {
namespace {

constexpr char kBefore[] = R"(HloModule m
ENTRY e {
  x = s32[4] parameter(0)
  two = s32[] constant(2)
  twos = s32[4] broadcast(two), dimensions={}
  n = s32[4] add(x, twos)
  r = s32[4] subtract(n, twos)
  a = s32[4] multiply(x, x)
  three = s32[] constant(3)
  threes = s32[4] broadcast(three), dimensions={}
  b = s32[4] multiply(a, threes)
  ROOT t = (s32[4], s32[4]) tuple(r, b)
})";

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class ReplayTest : public ::testing::Test {
 protected:
  // Records a run of kBefore.
  void SetUp() override {
    before_ = ParseForIsolation(kBefore);
    recorder_ = std::make_unique<ValueRecorder>(*before_, 10, 1 << 20);
    ObservationRequest request;
    request.instructions.assign(before_->instruction_id_bound(), true);
    ASSERT_TRUE(RunObserved(*before_, EngineKind::kExact, request, recorder_.get()));
  }

  absl::StatusOr<IsolationResult> ReplayText(std::string_view text, const ReplayOptions& options = {}) {
    after_ = ParseForIsolation(text, before_->shared_context());
    return Replay(*after_, *before_, *recorder_, FindCounterparts(*before_, *after_), options);
  }

  std::unique_ptr<Module> before_, after_;
  std::unique_ptr<ValueRecorder> recorder_;
};

TEST_F(ReplayTest, TheSameModuleComputesTheSame) {
  for (const EngineKind engine : {EngineKind::kExact, EngineKind::kReference}) {
    ReplayOptions options;
    options.engine = engine;
    const absl::StatusOr<IsolationResult> result = ReplayText(kBefore, options);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->equal());
    EXPECT_EQ(result->instructions, 6);
  }
}

TEST_F(ReplayTest, WhatFollowsAChangeIsNotBlamed) {
  const absl::StatusOr<IsolationResult> result = ReplayText(Replaced(kBefore, "multiply(x, x)", "multiply(x, twos)"));
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->differences.size(), 1u);
  EXPECT_EQ(result->differences[0].instruction.name(), "a");
}

// n is another value, but r is what it was.
TEST_F(ReplayTest, ADetourCountsAsIntermediate) {
  const absl::StatusOr<IsolationResult> result = ReplayText(R"(HloModule m
ENTRY e {
  x = s32[4] parameter(0)
  two = s32[] constant(2)
  twos = s32[4] broadcast(two), dimensions={}
  three = s32[] constant(3)
  threes = s32[4] broadcast(three), dimensions={}
  n = s32[4] add(x, threes)
  r = s32[4] subtract(n, threes)
  a = s32[4] multiply(x, x)
  b = s32[4] multiply(a, threes)
  ROOT t = (s32[4], s32[4]) tuple(r, b)
})");
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->equal());
  EXPECT_EQ(result->intermediate, 1);
}

TEST_F(ReplayTest, InstructionsWithoutCounterpartAreCounted) {
  const absl::StatusOr<IsolationResult> result = ReplayText(
      Replaced(kBefore, "b = s32[4] multiply(a, threes)", "c = s32[4] negate(a)\n  b = s32[4] multiply(c, threes)"));
  ASSERT_TRUE(result.ok());
  EXPECT_GE(result->omitted[static_cast<size_t>(Omission::kNoCounterpart)], 1);
}

TEST_F(ReplayTest, HasTheBudgetOfIsolation) {
  ReplayOptions options;
  options.isolation.max_seconds = -1;
  absl::StatusOr<IsolationResult> result = ReplayText(kBefore, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->instructions, 0);
  EXPECT_EQ(result->omitted[static_cast<size_t>(Omission::kTime)], 6);
  options.isolation = {};
  options.poll = [] { return absl::CancelledError("stop"); };
  result = ReplayText(kBefore, options);
  EXPECT_TRUE(absl::IsCancelled(result.status()));
}

TEST(ValueRecorderTest, KeepsTheFirstExecutionsThatHaveRoom) {
  const std::unique_ptr<Module> module = ParseForIsolation(kBefore);
  ValueRecorder recorder(*module, 2, 3 * 4 * sizeof(int32_t));
  const InstructionId n = Named(*module, "n").id(), a = Named(*module, "a").id();
  const std::vector<int32_t> value = {1, 2, 3, 4};
  const auto* const bytes = reinterpret_cast<const std::byte*>(value.data());
  for (int k = 0; k < 3; ++k) ASSERT_TRUE(recorder.OnValue(n, {&bytes, 1}, {}).ok());
  for (int k = 0; k < 2; ++k) ASSERT_TRUE(recorder.OnValue(a, {&bytes, 1}, {}).ok());
  EXPECT_EQ(recorder.Executions(n), 2);
  EXPECT_EQ(recorder.Executions(a), 1);
  EXPECT_EQ(recorder.dropped(), 1);
  const absl::StatusOr<std::vector<Literal>> kept = recorder.Value(n, 2);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ((*kept)[0].values<int32_t>()[3], 4);
}

class ValueDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "hlokit-values-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    scratch_ = name;
    module_ = ParseForIsolation(kBefore);
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  // Runs the module and writes what it computes.
  absl::Status Write(const std::string& path, const ValueDirectoryOptions& options) {
    absl::StatusOr<std::unique_ptr<ValueDirectoryWriter>> writer =
        ValueDirectoryWriter::Create(path, *module_, options);
    if (!writer.ok()) return writer.status();
    ObservationRequest request;
    request.instructions = options.instructions;
    if (!RunObserved(*module_, EngineKind::kExact, request, writer->get()))
      return absl::InternalError("the run failed");
    return (*writer)->Commit();
  }

  std::filesystem::path scratch_;
  std::unique_ptr<Module> module_;
};

TEST_F(ValueDirectoryTest, WhatIsWrittenIsReadAgain) {
  ValueDirectoryOptions options;
  options.instructions.resize(module_->instruction_id_bound());
  for (std::string_view name : {"x", "n", "a"}) options.instructions[Named(*module_, name).id().value] = true;
  const std::string path = scratch_ / "values";
  ASSERT_TRUE(Write(path, options).ok());
  const absl::StatusOr<std::unique_ptr<ValueDirectory>> read = ValueDirectory::Open(path, module_->shared_context());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Module& recorded = (*read)->module();
  EXPECT_EQ((*read)->Executions(Named(recorded, "r").id()), 0);
  const auto values = [&](std::string_view name) {
    const absl::StatusOr<std::vector<Literal>> value = (*read)->Value(Named(recorded, name).id(), 1);
    EXPECT_TRUE(value.ok());
    return value.ok() ? std::vector<int32_t>((*value)[0].values<int32_t>().begin(), (*value)[0].values<int32_t>().end())
                      : std::vector<int32_t>(4);
  };
  const std::vector<int32_t> x = values("x"), n = values("n"), a = values("a");
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(n[k], x[k] + 2);
    EXPECT_EQ(a[k], x[k] * x[k]);
  }
}

TEST_F(ValueDirectoryTest, IsWrittenWholeOrNotAtAll) {
  ValueDirectoryOptions options;
  options.instructions.assign(module_->instruction_id_bound(), true);
  options.max_bytes = 40;
  const std::string path = scratch_ / "large";
  EXPECT_FALSE(Write(path, options).ok());
  EXPECT_TRUE(std::filesystem::is_empty(scratch_));
  std::filesystem::create_directory(path);
  std::ofstream(path + "/file") << "kept";
  options.max_bytes = 1 << 20;
  const absl::Status status = Write(path, options);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("empty"), std::string::npos) << status.message();
  EXPECT_TRUE(std::filesystem::exists(path + "/file"));
}

TEST_F(ValueDirectoryTest, FilesThatAreNotReadableAreNamed) {
  EXPECT_TRUE(absl::IsNotFound(ValueDirectory::Open(scratch_ / "none", module_->shared_context()).status()));
  ValueDirectoryOptions options;
  options.instructions.resize(module_->instruction_id_bound());
  options.instructions[Named(*module_, "n").id().value] = true;
  const std::string path = scratch_ / "values";
  ASSERT_TRUE(Write(path, options).ok());
  std::ofstream(path + "/n.npy") << "not an array";
  const absl::StatusOr<std::unique_ptr<ValueDirectory>> read = ValueDirectory::Open(path, module_->shared_context());
  ASSERT_TRUE(read.ok());
  const absl::StatusOr<std::vector<Literal>> value = (*read)->Value(Named((*read)->module(), "n").id(), 1);
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.status().message().find("n.npy"), std::string::npos) << value.status().message();
  std::ofstream(path + "/index.json") << "{";
  EXPECT_FALSE(ValueDirectory::Open(path, module_->shared_context()).ok());
}

}  // namespace
}  // namespace hlokit::interp
