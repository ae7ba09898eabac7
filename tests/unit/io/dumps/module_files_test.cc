// SPDX-License-Identifier: Apache-2.0
#include "io/dumps/module_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/dumps/dump_files.h"
#include "tests/unit/files.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit {
namespace {

TEST(DumpFilesTest, NamesSayWhatFilesHold) {
  DumpFile file;
  ASSERT_TRUE(ParseDumpName("a.module_0012.jit_f.0003.pipe.after_dce.before_cse.hlo.pb", &file));
  EXPECT_EQ(file.kind, DumpFile::Kind::kPass);
  EXPECT_EQ(file.module, "a.module_0012");
  EXPECT_EQ(file.prefix, "a");
  EXPECT_EQ(file.number, 12);
  EXPECT_EQ(file.pass_number, 3);
  EXPECT_EQ(file.pipeline, "pipe");
  EXPECT_EQ(file.pass, "dce");
  EXPECT_EQ(file.next, "cse");
  EXPECT_TRUE(file.is_proto);
  EXPECT_FALSE(ParseDumpName("module_12.txt", &file));
  ASSERT_TRUE(ParseDumpName("module_0012.f.cpu_after_optimizations-buffer-assignment.txt", &file));
  EXPECT_TRUE(IsKnownSideFile(file));
}

TEST(ModuleFilesTest, OneFormOfEachSelectedStage) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  for (const char* name :
       {"module_0001.f.before_optimizations.txt", "module_0001.f.before_optimizations.hlo.pb",
        "module_0001.f.after_optimizations.txt", "module_0001.f.after_optimizations-buffer-assignment.txt", "b.hlo"}) {
    WriteFile(folder.path() / name, "HloModule m\n");
  }
  const std::vector<std::string> all = FindModuleFiles({folder.path().string()}, DumpedStages::kAll);
  EXPECT_EQ(all, (std::vector<std::string>{path("b.hlo"), path("module_0001.f.after_optimizations.txt"),
                                           path("module_0001.f.before_optimizations.hlo.pb")}));
  const std::vector<std::string> after = FindModuleFiles({"x.hlo", folder.path().string()}, DumpedStages::kAfter);
  EXPECT_EQ(after, (std::vector<std::string>{"x.hlo", path("b.hlo"), path("module_0001.f.after_optimizations.txt")}));
}

}  // namespace
}  // namespace hlokit
