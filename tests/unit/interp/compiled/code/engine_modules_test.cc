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
  std::string why;
  if (IsBuilt("libhlokit_llvm.so")) {
    EXPECT_NE(Generator(&why), nullptr) << why;
  }
  if (IsBuilt("libhlokit_onednn.so")) {
    EXPECT_NE(ProductLibrary(&why), nullptr) << why;
  }
  EXPECT_EQ(HasEngineModules(), IsBuilt("libhlokit_llvm.so") || IsBuilt("libhlokit_onednn.so"));
}

TEST(EngineModulesTest, AFileThatIsNoModuleIsRefusedWithTheReason) {
  std::string why;
  EXPECT_EQ(LoadModule("/proc/self/exe/no-such-file.so", "f", &why), nullptr);
  EXPECT_NE(why.find("no-such-file.so"), std::string::npos) << why;
}

}  // namespace
}  // namespace hlokit::interp::compiled
