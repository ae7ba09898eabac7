// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code/engine_modules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace hlokit::interp::compiled {
namespace {

// The file of a module that was built beside this test.
bool IsBuilt(const char* name) {
  return std::filesystem::exists(std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() /
                                 "lib/hlokit" / name);
}

TEST(EngineModulesTest, WhatIsBuiltCanBeLoaded) {
  if (IsBuilt("libhlokit_llvm.so")) {
    EXPECT_TRUE(Generator().ok()) << Generator().status();
  }
  if (IsBuilt("libhlokit_onednn.so")) {
    EXPECT_TRUE(ProductLibrary().ok()) << ProductLibrary().status();
  }
  EXPECT_EQ(HasEngineModules(), IsBuilt("libhlokit_llvm.so") || IsBuilt("libhlokit_onednn.so"));
}

TEST(EngineModulesTest, AFileThatIsNoModuleIsRefusedWithTheReason) {
  const absl::StatusOr<void*> address = LoadModule("/proc/self/exe/no-such-file.so", "f");
  ASSERT_FALSE(address.ok());
  EXPECT_NE(address.status().message().find("no-such-file.so"), std::string::npos) << address.status();
}

}  // namespace
}  // namespace hlokit::interp::compiled
