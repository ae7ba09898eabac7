// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as an entry of the program cache, of a fixed key, and looks for reasons of a miss in them.
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "io/cache/persistent_cache.h"
#include "io/metrics/metrics.h"

namespace {

namespace fs = std::filesystem;
using hlokit::runtime::CompilationCacheKey;

// Directory of one entry, in memory where the system has such a file system.
const fs::path& Directory() {
  static const fs::path* const path = [] {
    std::string name = fs::exists("/dev/shm") ? "/dev/shm/hlokit-XXXXXX" : "/tmp/hlokit-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    std::atexit([] { fs::remove_all(Directory()); });
    return new fs::path(name);
  }();
  return *path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit::runtime;
  if (size > 1 << 14) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const CompilationCacheKey key = {"contents", {{"pipeline", "default"}, {"threads", "1"}}, {}};
  static const CompilationCacheKey other = {"contents", {{"pipeline", "cse"}, {"threads", "1"}}, {}};
  static Metrics metrics;
  static PersistentCache cache({.location = Directory().string(), .read_only = true}, &metrics);
  const std::optional<std::string_view> program = DecodeEntry(bytes, key);
  // Only what EncodeEntry wrote is accepted: a checksum that fits by chance is not to be expected.
  if (program && EncodeEntry(key, *program) != bytes) std::abort();
  const fs::path path = cache.PathOf(key);
  static const bool created = fs::create_directories(path.parent_path());
  (void)created;
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  cache.ExplainMiss(other);
  return 0;
}
