// SPDX-License-Identifier: Apache-2.0
#include "io/cache/persistent_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::runtime {
namespace {

namespace fs = std::filesystem;

CompilationCacheKey Key(std::string contents, std::string pipeline = "default") {
  return {std::move(contents), {{"target", "CPU"}, {"pipeline", std::move(pipeline)}}, {}};
}
std::optional<std::string> Text(const std::optional<SerializedExecutable>& program) {
  if (!program) return std::nullopt;
  return std::string(program->text());
}

class PersistentCacheTest : public ::testing::Test {
 protected:
  const TemporaryFolder temporary;
  const std::string directory = temporary.path().string();
  Metrics metrics;
};

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST_F(PersistentCacheTest, WhatOneWritesAnotherReads) {
  const CompilationCacheKey key = Key("graph");
  PersistentCache writer({directory}, &metrics);
  EXPECT_EQ(Text(writer.Get(key)), std::nullopt);
  writer.Put(key, "program");
  PersistentCache reader({directory}, &metrics);
  EXPECT_EQ(Text(reader.Get(key)), "program");
  EXPECT_EQ(metrics.counter("PersistentCacheHit"), 1);
  EXPECT_EQ(metrics.counter("PersistentCacheMiss"), 1);
  EXPECT_EQ(reader.warning(), "");
}

TEST_F(PersistentCacheTest, OtherContentsUnderTheSameDigestAreAMiss) {
  const CompilationCacheKey key = Key("graph");
  PersistentCache cache({directory}, &metrics);
  cache.Put(key, "program");
  EXPECT_EQ(Text(cache.Get(Key("another graph that collides"))), std::nullopt);
}

TEST_F(PersistentCacheTest, AProgramOfOtherSettingsIsAMissThatNamesTheSetting) {
  PersistentCache cache({directory}, &metrics);
  EXPECT_EQ(cache.ExplainMiss(Key("graph")), "");
  cache.Put(Key("graph", "cse"), "program");
  EXPECT_EQ(Text(cache.Get(Key("graph"))), std::nullopt);
  EXPECT_EQ(cache.ExplainMiss(Key("graph")), "pipeline is `default`, it was `cse`");
  cache.Put(Key("graph"), "other program");
  EXPECT_EQ(Text(cache.Get(Key("graph", "cse"))), "program");
  EXPECT_EQ(Text(cache.Get(Key("graph"))), "other program");
}

TEST_F(PersistentCacheTest, AMissNamesAllSettingsThatDiffer) {
  PersistentCache cache({directory}, &metrics);
  cache.Put({"graph", {{"target", "TPU"}, {"pipeline", "cse"}}, {}}, "program");
  EXPECT_EQ(cache.ExplainMiss(Key("graph")), "target is `CPU`, it was `TPU`; pipeline is `default`, it was `cse`");
  cache.Put(Key("graph", "dce"), "program");  // fewer
  EXPECT_EQ(cache.ExplainMiss(Key("graph")), "pipeline is `default`, it was `dce`");
}

TEST_F(PersistentCacheTest, AMissNamesOptionsThatMadeAnotherGraphOfTheSame) {
  // A graph with a canonical digest; numbers and donations depend on the options.
  const auto key = [](std::string contents, std::string bare, std::string numbers, std::string donated, bool special,
                      bool donates, std::string pipeline = "default") {
    CompilationCacheKey made = Key(std::move(contents), std::move(pipeline));
    made.components.canonical_digest = DigestOf(bare);
    made.components.options = {{"special", special ? "1" : "0", DigestOf(numbers)},
                               {"donate", donates ? "1" : "0", DigestOf(donated)}};
    return made;
  };
  PersistentCache cache({directory}, &metrics);
  const CompilationCacheKey wanted = key("graph", "bare", "constants", "0", true, true);
  EXPECT_EQ(cache.ExplainMiss(wanted), "");
  // Other graphs, and one whose numbers differ although the option does not.
  cache.Put(key("a", "another", "parameters", "0", false, true), "program");
  cache.Put(key("b", "bare", "parameters", "0", true, true), "program");
  cache.Put(key("c", "bare", "parameters", "", true, false), "program");
  cache.Put(Key("d"), "program");  // no key components
  EXPECT_EQ(cache.ExplainMiss(wanted), "");
  cache.Put(key("e", "bare", "parameters", "", false, false, "cse"), "program");
  EXPECT_EQ(cache.ExplainMiss(wanted),
            "special is `1`, it was `0`; donate is `1`, it was `0`; pipeline is `default`, it was `cse`");
  // An option without an effect on the key is not a reason.
  cache.Put(key("f", "bare", "constants", "", false, false), "program");
  EXPECT_EQ(cache.ExplainMiss(wanted), "donate is `1`, it was `0`");
  // The same contents take precedence, whatever options they were traced with.
  cache.Put(key("graph", "bare", "constants", "0", false, false, "dce"), "program");
  EXPECT_EQ(cache.ExplainMiss(wanted), "pipeline is `default`, it was `dce`");
  cache.Put(key("graph", "bare", "constants", "0", false, false), "program");
  EXPECT_EQ(Text(cache.Get(wanted)), "program");
}

TEST_F(PersistentCacheTest, DamagedEntriesAreNoExplanation) {
  CompilationCacheKey wanted = Key("graph"), stored = Key("other");
  wanted.components = {DigestOf("bare"), {{"donate", "1", DigestOf("a")}}};
  stored.components = {DigestOf("bare"), {{"donate", "0", DigestOf("b")}}};
  PersistentCache cache({directory}, &metrics);
  cache.Put(stored, "program");
  ASSERT_EQ(cache.ExplainMiss(wanted), "donate is `1`, it was `0`");
  const std::string path = cache.PathOf(stored), bytes = ReadAll(path);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x80);
    WriteFile(path, changed);
    (void)cache.ExplainMiss(wanted);  // any contents end
    WriteFile(path, bytes.substr(0, i));
    (void)cache.ExplainMiss(wanted);
  }
}

TEST_F(PersistentCacheTest, AnEntryCutAnywhereIsAMiss) {
  CompilationCacheKey key = Key("graph");
  key.components = {DigestOf("bare"), {{"donate", "0", DigestOf("part")}}};
  const std::string entry = EncodeEntry(key, "program");
  ASSERT_EQ(DecodeEntry(entry, key), "program");
  for (size_t size = 0; size < entry.size(); ++size) {
    EXPECT_EQ(DecodeEntry(entry.substr(0, size), key), std::nullopt) << size;
  }
}

TEST_F(PersistentCacheTest, AnEntryWithAnyBitChangedIsAMiss) {
  CompilationCacheKey key = Key("graph");
  key.components = {DigestOf("bare"), {{"donate", "0", DigestOf("part")}}};
  const std::string entry = EncodeEntry(key, "program");
  for (size_t i = 0; i < entry.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = entry;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_EQ(DecodeEntry(changed, key), std::nullopt) << i;
    }
  }
}

TEST_F(PersistentCacheTest, ADamagedEntryIsRemovedWithOneWarning) {
  const CompilationCacheKey key = Key("graph");
  PersistentCache cache({directory}, &metrics);
  cache.Put(key, "program");
  const std::string path = cache.PathOf(key);
  std::string bytes = ReadAll(path);
  bytes[bytes.size() / 2] ^= 1;
  WriteFile(path, bytes);
  EXPECT_EQ(Text(cache.Get(key)), std::nullopt);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_NE(cache.warning(), "");
  EXPECT_EQ(metrics.counter("PersistentCacheDeserializeFailure"), 1);
  cache.Put(key, "program");
  EXPECT_EQ(Text(cache.Get(key)), "program");
}

TEST_F(PersistentCacheTest, ADirectoryThatCannotBeWrittenWarnsAndGoesOn) {
  const std::string file = directory + "/file";
  WriteFile(file, "");
  PersistentCache cache({file + "/below"}, &metrics);
  EXPECT_EQ(Text(cache.Get(Key("g"))), std::nullopt);
  cache.Put(Key("g"), "p");
  EXPECT_NE(cache.warning(), "");
}

TEST_F(PersistentCacheTest, AnEntryThatIsADirectoryWarnsOnceAndIsMissed) {
  PersistentCache writer({directory}, &metrics);
  writer.Put(Key("g"), "p");
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (!file.is_regular_file()) continue;
    std::filesystem::remove(file.path());
    std::filesystem::create_directory(file.path());
    break;
  }
  PersistentCache cache({directory}, &metrics);
  EXPECT_EQ(Text(cache.Get(Key("g"))), std::nullopt);
  EXPECT_TRUE(cache.warning().ends_with(": Is a directory; it is compiled again")) << cache.warning();
  cache.Put(Key("g"), "p");
  EXPECT_EQ(Text(cache.Get(Key("g"))), std::nullopt);
}

// A limit on the size of files simulates a full disk: writes beyond it fail midway.
TEST_F(PersistentCacheTest, AFullDiskLeavesNothingBehindAndWarnsOnce) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    Metrics own;
    PersistentCache cache({directory}, &own);
    cache.Put(Key("small"), "p");
    for (int i = 0; i < 3; ++i) {
      cache.Put(Key(StrCat("large", i)), std::string(100000, 'x'));
      if (cache.Get(Key(StrCat("large", i)))) _exit(2);
    }
    if (Text(cache.Get(Key("small"))) != "p") _exit(3);
    _exit(cache.warning().starts_with("program cache: cannot write ") ? 0 : 4);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

TEST_F(PersistentCacheTest, AReadOnlyCacheChangesNothing) {
  const CompilationCacheKey key = Key("graph");
  PersistentCache({directory}, &metrics).Put(key, "program");
  PersistentCache reader({directory, /*read_only=*/true}, &metrics);
  EXPECT_EQ(Text(reader.Get(key)), "program");
  reader.Put(Key("other"), "p");
  EXPECT_FALSE(fs::exists(reader.PathOf(Key("other"))));
}

TEST_F(PersistentCacheTest, TheOldestEntriesGoWhenTheDirectoryIsFull) {
  PersistentCache cache({directory, false, false, 20000}, &metrics);
  const std::string program(1000, 'x');
  for (int i = 0; i < 100; ++i) {
    const std::string name = StrCat("graph", i);
    cache.Put(Key(name), program);
  }
  int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) total += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(total, 22000);
  EXPECT_EQ(Text(cache.Get(Key("graph99"))), program);
}

TEST_F(PersistentCacheTest, ProcessesThatWriteLittleEachKeepTheLimitToo) {
  constexpr int64_t kMaxBytes = 1 << 20;
  const std::string program(20000, 'x');
  for (int i = 0; i < 100; ++i) {
    PersistentCache cache({directory, false, false, kMaxBytes}, &metrics);
    cache.Put(Key(StrCat("graph", i)), program);
    EXPECT_EQ(Text(cache.Get(Key(StrCat("graph", i)))), program);
  }
  int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) total += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(total, kMaxBytes);
}

TEST_F(PersistentCacheTest, AQuietCacheKeepsItsWarning) {
  const std::string file = directory + "/file";
  WriteFile(file, "");
  testing::internal::CaptureStderr();
  PersistentCache cache({file + "/below", false, /*quiet=*/true}, &metrics);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(cache.warning(), "");
}

// Sixteen processes write and read the same entries while some of them are killed: contents that are read are always
// correct.
TEST_F(PersistentCacheTest, ManyProcessesShareADirectory) {
  std::vector<pid_t> children;
  for (int p = 0; p < 16; ++p) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      Metrics own;
      PersistentCache cache({directory}, &own);
      int wrong = 0;
      for (int i = 0; i < 60; ++i) {
        const std::string name = StrCat("graph", i % 7);
        const std::string program(static_cast<size_t>(1000 * (i % 7 + 1)), static_cast<char>('a' + i % 7));
        if (std::optional<std::string> got = Text(cache.Get(Key(name))); got && *got != program) ++wrong;
        cache.Put(Key(name), program);
      }
      _exit(wrong == 0 ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (size_t p = 0; p < 4; ++p) kill(children[p], SIGKILL);
  for (size_t p = 0; p < children.size(); ++p) {
    int status = 0;
    waitpid(children[p], &status, 0);
    if (p >= 4) {
      EXPECT_EQ(status, 0);
    }
  }
  PersistentCache cache({directory}, &metrics);
  for (int i = 0; i < 7; ++i) {
    const std::string name = StrCat("graph", i);
    EXPECT_EQ(Text(cache.Get(Key(name))), std::string(static_cast<size_t>(1000 * (i + 1)), static_cast<char>('a' + i)));
  }
  EXPECT_EQ(cache.warning(), "");
}

}  // namespace
}  // namespace hlokit::runtime
