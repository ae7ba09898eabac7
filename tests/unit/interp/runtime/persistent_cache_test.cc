#include "interp/runtime/persistent_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ir/str_cat.h"

namespace hlokit::runtime {
namespace {

namespace fs = std::filesystem;

class PersistentCacheTest : public ::testing::Test {
 protected:
  PersistentCacheTest() {
    std::string pattern = (fs::temp_directory_path() / "hlokit-cache-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~PersistentCacheTest() override {
    std::error_code ignored;
    fs::permissions(folder, fs::perms::owner_all, ignored);
    fs::remove_all(folder, ignored);
  }
  std::string folder;
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
  const Digest key = DigestOf("graph");
  PersistentCache writer({folder}, &metrics);
  EXPECT_EQ(writer.Get(key, "graph"), std::nullopt);
  writer.Put(key, "graph", "program");
  PersistentCache reader({folder}, &metrics);
  EXPECT_EQ(reader.Get(key, "graph"), "program");
  EXPECT_EQ(metrics.counter("PersistentCacheHit"), 1);
  EXPECT_EQ(metrics.counter("PersistentCacheMiss"), 1);
  EXPECT_EQ(reader.warning(), "");
}

TEST_F(PersistentCacheTest, OtherContentsUnderTheSameDigestAreAMiss) {
  const Digest key = DigestOf("graph");
  PersistentCache cache({folder}, &metrics);
  cache.Put(key, "graph", "program");
  EXPECT_EQ(cache.Get(key, "another graph that collides"), std::nullopt);
}

TEST_F(PersistentCacheTest, AnEntryCutAnywhereIsAMiss) {
  const Digest key = DigestOf("graph");
  const std::string entry = EncodeEntry(key, "graph", "program");
  ASSERT_EQ(DecodeEntry(entry, key, "graph"), "program");
  for (size_t size = 0; size < entry.size(); ++size) {
    EXPECT_EQ(DecodeEntry(entry.substr(0, size), key, "graph"), std::nullopt) << size;
  }
}

TEST_F(PersistentCacheTest, AnEntryWithAnyBitChangedIsAMiss) {
  const Digest key = DigestOf("graph");
  const std::string entry = EncodeEntry(key, "graph", "program");
  for (size_t i = 0; i < entry.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = entry;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_EQ(DecodeEntry(changed, key, "graph"), std::nullopt) << i;
    }
  }
}

TEST_F(PersistentCacheTest, ADamagedEntryIsRemovedWithOneWarning) {
  const Digest key = DigestOf("graph");
  PersistentCache cache({folder}, &metrics);
  cache.Put(key, "graph", "program");
  const std::string path = cache.PathOf(key);
  std::string bytes = ReadAll(path);
  bytes[bytes.size() / 2] ^= 1;
  WriteFile(path, bytes);
  EXPECT_EQ(cache.Get(key, "graph"), std::nullopt);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_NE(cache.warning(), "");
  EXPECT_EQ(metrics.counter("PersistentCacheDeserializeFailure"), 1);
  cache.Put(key, "graph", "program");
  EXPECT_EQ(cache.Get(key, "graph"), "program");
}

TEST_F(PersistentCacheTest, AFolderThatCannotBeWrittenWarnsAndGoesOn) {
  const std::string file = folder + "/file";
  WriteFile(file, "");
  PersistentCache cache({file + "/below"}, &metrics);
  EXPECT_EQ(cache.Get(DigestOf("g"), "g"), std::nullopt);
  cache.Put(DigestOf("g"), "g", "p");
  EXPECT_NE(cache.warning(), "");
}

TEST_F(PersistentCacheTest, AReadOnlyCacheChangesNothing) {
  const Digest key = DigestOf("graph");
  PersistentCache({folder}, &metrics).Put(key, "graph", "program");
  PersistentCache reader({folder, /*read_only=*/true}, &metrics);
  EXPECT_EQ(reader.Get(key, "graph"), "program");
  reader.Put(DigestOf("other"), "other", "p");
  EXPECT_FALSE(fs::exists(reader.PathOf(DigestOf("other"))));
}

TEST_F(PersistentCacheTest, TheOldestEntriesGoWhenTheFolderIsFull) {
  PersistentCache cache({folder, false, 20000}, &metrics);
  const std::string program(1000, 'x');
  for (int i = 0; i < 100; ++i) {
    const std::string name = StrCat("graph", i);
    cache.Put(DigestOf(name), name, program);
  }
  int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) total += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(total, 22000);
  EXPECT_EQ(cache.Get(DigestOf("graph99"), "graph99"), program);
}

// Sixteen processes write and read the same entries while some of them are killed: what is read is always right.
TEST_F(PersistentCacheTest, ManyProcessesShareAFolder) {
  std::vector<pid_t> children;
  for (int p = 0; p < 16; ++p) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      Metrics own;
      PersistentCache cache({folder}, &own);
      int wrong = 0;
      for (int i = 0; i < 60; ++i) {
        const std::string name = StrCat("graph", i % 7);
        const std::string program(static_cast<size_t>(1000 * (i % 7 + 1)), static_cast<char>('a' + i % 7));
        if (std::optional<std::string> got = cache.Get(DigestOf(name), name); got && *got != program) ++wrong;
        cache.Put(DigestOf(name), name, program);
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
  PersistentCache cache({folder}, &metrics);
  for (int i = 0; i < 7; ++i) {
    const std::string name = StrCat("graph", i);
    EXPECT_EQ(cache.Get(DigestOf(name), name),
              std::string(static_cast<size_t>(1000 * (i + 1)), static_cast<char>('a' + i)));
  }
  EXPECT_EQ(cache.warning(), "");
}

}  // namespace
}  // namespace hlokit::runtime
