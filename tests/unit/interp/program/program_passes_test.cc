// SPDX-License-Identifier: Apache-2.0
// Passes before a run end with it: they are canceled and out of time as the run is.
#include "interp/program/program_passes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "ir/core/source_buffer.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {
namespace {

TEST(ProgramPassesTest, StopWithTheRun) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(std::make_shared<const SourceBuffer>("m.hlo", R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] add(x, x)
  ROOT z = f32[8] add(y, y)
})"),
                                                     ParseOptions(), &sink);
  ASSERT_NE(module, nullptr);
  std::atomic<bool> cancel = false;
  EvaluatorOptions options;
  options.cancel = &cancel;
  const auto run = [&](const std::string& passes, const EvaluatorOptions& of) {
    Module copy = module->Clone();
    return RunProgramPasses(passes, of, nullptr, &copy);
  };
  EXPECT_TRUE(run("cpu", options).ok());
  cancel = true;
  const absl::Status canceled = run("cpu", options);
  EXPECT_TRUE(IsStopped(canceled));
  EXPECT_EQ(canceled.message(), "interrupted");
  cancel = false;
  options.limits.max_seconds = 0;
  const absl::Status late = run("cpu", options);
  EXPECT_TRUE(IsStopped(late));
  EXPECT_EQ(late.message(), "the run exceeded the time limit of 0 s (--max-seconds)");
  EXPECT_FALSE(IsStopped(run("no-such-pass", EvaluatorOptions())));
}

}  // namespace
}  // namespace hlokit::interp
