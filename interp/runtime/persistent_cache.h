// Compiled programs kept in a folder, for other processes and other days.
//
// An entry is one file: a header (magic, format, lengths, the digest it is filed under), the contents of what was
// compiled, the program, and a checksum over all of it. A reader trusts nothing: wrong magic, format, length or
// checksum, or contents other than those asked for, is a miss. A writer fills a temporary file of its own and renames
// it, so a reader sees an entry whole or not at all, however many processes write. No lock is needed for that; one
// guards eviction alone, and a lock that nobody refreshed for ten seconds is broken.
//
// Whatever goes wrong (no permission, no space, a folder that vanished) makes a miss and, once, a warning.
#ifndef HLOKIT_INTERP_RUNTIME_PERSISTENT_CACHE_H_
#define HLOKIT_INTERP_RUNTIME_PERSISTENT_CACHE_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "interp/runtime/metrics.h"
#include "ir/digest.h"

namespace hlokit::runtime {

struct PersistentCacheOptions {
  std::string folder;
  bool read_only = false;
  int64_t max_bytes = int64_t{4} << 30;  // of all entries; the oldest go first
};

class PersistentCache {
 public:
  // Counts PersistentCacheHit, PersistentCacheMiss and PersistentCacheDeserializeFailure in `metrics`.
  PersistentCache(const PersistentCacheOptions& options, Metrics* metrics);

  // The program that was filed under `key` for exactly these contents.
  std::optional<std::string> Get(const Digest& key, std::string_view contents);
  void Put(const Digest& key, std::string_view contents, std::string_view program);

  // The first thing that went wrong; empty if nothing did.
  std::string warning() const;

  std::string PathOf(const Digest& key) const;

 private:
  void Warn(std::string text);
  void Evict();

  const PersistentCacheOptions options_;
  Metrics* metrics_;
  mutable std::mutex mutex_;
  std::string warning_;
  int64_t written_ = 0;  // bytes since the last eviction
};

// The file contents of an entry, and back; nullopt if it is damaged or made for something else.
std::string EncodeEntry(const Digest& key, std::string_view contents, std::string_view program);
std::optional<std::string> DecodeEntry(std::string_view entry, const Digest& key, std::string_view contents);

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_PERSISTENT_CACHE_H_
