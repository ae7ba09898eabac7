// SPDX-License-Identifier: Apache-2.0
// Compiled loops on disk: found by text, instruction set and build only, and never damaged or another's.
#include "interp/compiled/code/code_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::interp::compiled {
namespace {

namespace fs = std::filesystem;

GeneratedCode Code(size_t bytes) {
  GeneratedCode code;
  code.image.assign(bytes, std::byte{0xc3});
  code.entry = 3;
  code.saved_values = 2;
  return code;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class CodeStoreTest : public testing::Test {
 protected:
  void TearDown() override { SetProcessCodeStore({}); }

  const TemporaryFolder temporary_;
  const std::string directory_ = (temporary_.path() / "code").string();
};

TEST_F(CodeStoreTest, CodeComesBackForItsTextAndInstructionsOnly) {
  CodeStore({directory_}).Put("loop", InstructionSet::kAvx2, Code(100));
  CodeStore reader({directory_});
  const std::optional<GeneratedCode> code = reader.Get("loop", InstructionSet::kAvx2);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->image, Code(100).image);
  EXPECT_EQ(code->entry, 3);
  EXPECT_EQ(code->saved_values, 2);
  EXPECT_FALSE(reader.Get("loop", InstructionSet::kSse4));
  EXPECT_FALSE(reader.Get("loop2", InstructionSet::kAvx2));
}

TEST_F(CodeStoreTest, ADamagedEntryIsAMissAndIsReplaced) {
  CodeStore store({directory_, /*quiet=*/true});
  store.Put("loop", InstructionSet::kAvx2, Code(100));
  const std::string path = store.PathOf("loop", InstructionSet::kAvx2), good = ReadAll(path);
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    WriteFile(path, bad);
    EXPECT_FALSE(store.Get("loop", InstructionSet::kAvx2)) << "byte " << i;
    WriteFile(path, good.substr(0, i));
    EXPECT_FALSE(store.Get("loop", InstructionSet::kAvx2)) << "cut at " << i;
  }
  store.Put("loop", InstructionSet::kAvx2, Code(100));
  EXPECT_TRUE(store.Get("loop", InstructionSet::kAvx2));
}

TEST_F(CodeStoreTest, ADirectoryOfTheUserThatOthersMayWriteIsNotUsed) {
  CodeStoreOptions options = {directory_, /*quiet=*/true};
  CodeStore(options).Put("loop", InstructionSet::kAvx2, Code(100));
  EXPECT_TRUE(CodeStore(options).Get("loop", InstructionSet::kAvx2));
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_FALSE(CodeStore(options).Get("loop", InstructionSet::kAvx2));
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  const std::string link = directory_ + "-link";
  fs::create_symlink(directory_, link);
  options.directory = link;
  EXPECT_FALSE(CodeStore(options).Get("loop", InstructionSet::kAvx2));
}

// Some other user, if this process may act as one.
constexpr uid_t kOther = 65534;

TEST_F(CodeStoreTest, WhatItMakesIsTheUsersAlone) {
  const mode_t before = umask(0002);
  CodeStore store({directory_});
  store.Put("loop", InstructionSet::kAvx2, Code(100));
  umask(before);
  const fs::path entry = store.PathOf("loop", InstructionSet::kAvx2);
  struct stat info;
  for (const fs::path& directory : {fs::path(directory_), entry.parent_path()}) {
    ASSERT_EQ(stat(directory.c_str(), &info), 0) << directory;
    EXPECT_EQ(info.st_mode & 0777, 0700u) << directory;
  }
  ASSERT_EQ(stat(entry.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CodeStoreTest, AnEntryThatAnotherUserCanChangeIsNotUsed) {
  CodeStore store({directory_});
  store.Put("loop", InstructionSet::kAvx2, Code(100));
  const fs::path entry = store.PathOf("loop", InstructionSet::kAvx2), folder = entry.parent_path();
  const auto is_found = [&] {
    testing::internal::CaptureStderr();
    const bool found = CodeStore({directory_, /*quiet=*/true}).Get("loop", InstructionSet::kAvx2).has_value();
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_EQ(found, warning.empty()) << warning;
    return found;
  };
  EXPECT_TRUE(is_found());
  for (const auto& [path, mode] : {std::pair{entry, 0600}, {folder, 0700}, {fs::path(directory_), 0700}}) {
    for (const int writable : {0020, 0002, 0022}) {
      ASSERT_EQ(chmod(path.c_str(), static_cast<mode_t>(mode | writable)), 0);
      EXPECT_FALSE(is_found()) << path << " " << writable;
    }
    ASSERT_EQ(chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_TRUE(is_found()) << path;
    // A link to what nobody else can change: it can be made by whoever can write there only, and yet is none of ours.
    const std::string away = StrCat(path.string(), "-away");
    fs::rename(path, away);
    fs::create_symlink(away, path);
    EXPECT_FALSE(is_found()) << path;
    fs::remove(path);
    fs::rename(away, path);
  }
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  for (const fs::path& path : {entry, folder, fs::path(directory_), temporary_.path()}) {
    ASSERT_EQ(chown(path.c_str(), kOther, gid_t(-1)), 0);
    EXPECT_FALSE(is_found()) << path;
    ASSERT_EQ(chown(path.c_str(), 0, gid_t(-1)), 0);
  }
  EXPECT_TRUE(is_found());
}

// Another user who can write to a directory above it exchanges what is there while the process runs.
TEST_F(CodeStoreTest, TheDirectoryThatWasCheckedIsTheOneThatIsUsed) {
  CodeStore store({directory_});
  store.Put("loop", InstructionSet::kAvx2, Code(100));
  GeneratedCode foreign = Code(100);
  foreign.image[3] = std::byte{0xcc};
  CodeStore({directory_ + "-foreign"}).Put("loop", InstructionSet::kAvx2, foreign);
  fs::rename(directory_, directory_ + "-away");
  fs::create_symlink(directory_ + "-foreign", directory_);
  const std::optional<GeneratedCode> code = store.Get("loop", InstructionSet::kAvx2);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->image, Code(100).image);
  store.Put("loop2", InstructionSet::kAvx2, Code(100));
  EXPECT_FALSE(CodeStore({directory_ + "-foreign"}).Get("loop2", InstructionSet::kAvx2));
  EXPECT_TRUE(CodeStore({directory_ + "-away"}).Get("loop2", InstructionSet::kAvx2));
}

TEST_F(CodeStoreTest, BytesThatAreNoCodeAreRejected) {
  const std::string good = EncodeCode(Code(8));
  EXPECT_TRUE(DecodeCode(good));
  EXPECT_FALSE(DecodeCode(""));
  EXPECT_FALSE(DecodeCode(good.substr(0, 16)));
  EXPECT_FALSE(DecodeCode(good.substr(0, 18)));  // the entry is at 3
  GeneratedCode outside = Code(8);
  for (int64_t entry : {int64_t{-1}, int64_t{8}, int64_t{1} << 62}) {
    outside.entry = entry;
    EXPECT_FALSE(DecodeCode(EncodeCode(outside)));
  }
}

TEST_F(CodeStoreTest, TheEnvironmentNamesTheDirectory) {
  const auto with = [](std::vector<std::pair<const char*, const char*>> variables) {
    const char* const names[] = {"HLOKIT_CODE_CACHE", "XLA_PERSISTENT_CACHE_PATH", "XLA_PERSISTENT_CACHE_READ_ONLY",
                                 "XDG_CACHE_HOME", "HOME"};
    std::vector<std::pair<const char*, std::optional<std::string>>> before;
    for (const char* name : names) {
      const char* const value = getenv(name);
      before.emplace_back(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    const CodeStoreOptions options = CodeStoreOptions::FromEnvironment();
    for (const auto& [name, value] : before) {
      if (value) {
        setenv(name, value->c_str(), 1);
      } else {
        unsetenv(name);
      }
    }
    return options;
  };
  EXPECT_EQ(with({}).directory, "");
  EXPECT_EQ(with({{"HOME", "/home/u"}}).directory, "/home/u/.cache/hlokit/code");
  EXPECT_TRUE(with({{"HOME", "/home/u"}}).quiet);
  EXPECT_EQ(with({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/x"}}).directory, "/x/hlokit/code");
  EXPECT_EQ(with({{"HOME", "/home/u"}, {"HLOKIT_CODE_CACHE", "off"}}).directory, "");
  EXPECT_EQ(with({{"HLOKIT_CODE_CACHE", "/c"}, {"XLA_PERSISTENT_CACHE_PATH", "/p"}}).directory, "/c");
  const CodeStoreOptions shared = with({{"XLA_PERSISTENT_CACHE_PATH", "/p"}, {"XLA_PERSISTENT_CACHE_READ_ONLY", "1"}});
  EXPECT_EQ(shared.directory, "/p");
  EXPECT_TRUE(shared.read_only);
  EXPECT_TRUE(shared.quiet);
  // Not from a server.
  EXPECT_EQ(with({{"XLA_PERSISTENT_CACHE_PATH", "redis://host"}, {"XDG_CACHE_HOME", "/x"}}).directory,
            "/x/hlokit/code");
}

constexpr char kTanhModule[] = R"(HloModule m
ENTRY e {
  x = f32[64,1024] parameter(0)
  t = f32[64,1024] tanh(x)
  ROOT y = f32[64,1024] multiply(t, x)
})";

// Prepares and runs the module; returns what became of its loop, and the bytes of the result.
CodeStatistics RunModule(std::string* results) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", kTanhModule), ParseOptions(), &sink);
  const auto kernels = std::make_shared<CompiledKernels>(ObservationRequest());
  const auto fast = Evaluator::Prepare(*module, EvaluatorOptions(), &sink, kernels);
  EXPECT_NE(fast, nullptr);
  if (fast == nullptr) return {};
  auto values = fast->Run(MakeFakeArguments(fast->argument_shapes(), 1), &sink);
  EXPECT_TRUE(values);
  // Literals do not outlive the module.
  if (values) results->assign(reinterpret_cast<const char*>((*values)[0].data()), (*values)[0].size_bytes());
  return kernels->statistics();
}

TEST_F(CodeStoreTest, CodeThatWasFreedIsLoadedNotCompiled) {
  if (!Generator().ok()) GTEST_SKIP() << "the code generator is not built";
  SetProcessCodeStore({directory_});
  std::string first, second;
  const CodeStatistics compiled = RunModule(&first);
  EXPECT_EQ(compiled.compiled, 1);
  EXPECT_EQ(compiled.loaded, 0);
  const CodeStatistics loaded = RunModule(&second);
  EXPECT_EQ(loaded.compiled, 0);
  EXPECT_EQ(loaded.loaded, 1);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace hlokit::interp::compiled
