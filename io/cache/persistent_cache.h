// SPDX-License-Identifier: Apache-2.0
// Persistent compilation cache: compiled programs in a directory or a remote store, shared by processes.
//
// An entry is one file, or value of the store: a header (magic, format, lengths, digests of the contents and of the
// canonical graph), a digest of each setting, the settings, the components of the graph's key, the contents that were
// compiled, the program, and a checksum of everything. The key consists of the digests of contents and settings, so
// that entries of one graph under several settings sort together and a miss can name the setting that differs; the
// components name options that changed the graph itself. A wrong magic, format, length or checksum, and contents or
// settings that differ from the key, count as misses. Stores write entries whole (io/stores/byte_store.h), so that
// readers never see a partial one. No lock is needed for correctness; in a directory one lock guards eviction and is
// broken after ten seconds without refresh. What a remote store evicts is its server's policy.
//
// I/O errors (permission denied, no space left, directory removed, server down) count as misses; the first one is
// reported as a warning. A server that fails is left out for a while.
#ifndef HLOKIT_IO_CACHE_PERSISTENT_CACHE_H_
#define HLOKIT_IO_CACHE_PERSISTENT_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "io/metrics/metrics.h"
#include "io/stores/byte_store.h"
#include "io/stores/directory_store.h"
#include "ir/digest/digest.h"

namespace hlokit::runtime {

struct PersistentCacheOptions {
  std::string location;  // directory, or address of a store (io/stores/store_url.h)
  bool read_only = false;
  bool quiet = false;                    // warning() has the first error, standard error does not
  int64_t max_bytes = int64_t{4} << 30;  // total size of a directory; the oldest entries are evicted first
  std::string name = "program cache";    // in messages
};

// Components of the key of a graph: a part that no option changes, and the effect of each option.
struct GraphKeyComponents {
  struct Option {
    std::string name, value;
    Digest digest;  // the effect of the option on this graph
  };
  Digest canonical_digest;  // of the graph without option effects; 0: unknown
  std::vector<Option> options;
};

// Identity of a compiled program.
struct CompilationCacheKey {
  // Canonical form of the compiled graph, equal in every process. Compared on every hit.
  std::string contents;
  // Other inputs of compilation, by name. Compared on every hit.
  std::vector<std::pair<std::string, std::string>> settings;
  // Components of the contents, to explain misses. Not compared.
  GraphKeyComponents components;
};

// Returns the digest of each component of the key by name: "graph" for the contents, then the settings.
std::vector<std::pair<std::string, Digest>> KeyComponents(const CompilationCacheKey& key);

// A verified entry.
class SerializedExecutable {
 public:
  SerializedExecutable() = default;
  explicit SerializedExecutable(std::string text) : bytes_(std::move(text)), size_(bytes_.size()) {}
  SerializedExecutable(std::string entry, size_t begin, size_t size)
      : bytes_(std::move(entry)), begin_(begin), size_(size) {}
  std::string_view text() const { return std::string_view(bytes_).substr(begin_, size_); }

 private:
  std::string bytes_;
  size_t begin_ = 0, size_ = 0;
};

class PersistentCache {
 public:
  // Counts PersistentCacheHit, PersistentCacheMiss and PersistentCacheDeserializeFailure in `metrics`, and times Get as
  // PersistentCacheLoad. Of a remote store also counts PersistentCacheRedisHit, Miss, Error (failed operations) and
  // Skipped (operations left out after one), or with S3, Gcs or Azure instead of Redis.
  PersistentCache(const PersistentCacheOptions& options, Metrics* metrics);
  // In a directory that is open already; the location is not used.
  PersistentCache(const PersistentCacheOptions& options, std::unique_ptr<DirectoryStore> directory, Metrics* metrics);

  // Returns the program stored under exactly this key. One of which `check` returns an error is no program of that key,
  // whatever its checksum says: it counts as damaged.
  std::optional<SerializedExecutable> Get(const CompilationCacheKey& key,
                                          absl::FunctionRef<absl::Status(std::string_view program)> check);
  std::optional<SerializedExecutable> Get(const CompilationCacheKey& key);
  void Put(const CompilationCacheKey& key, std::string_view program);
  // Explains a miss: returns the settings in which an entry with the same contents differs, e.g. "pipeline is
  // `default`, it was `cse`", separated by "; ". Without such an entry considers entries with the same canonical graph
  // whose contents differ in options only. Returns "" if there are none. Reads every entry.
  std::string ExplainMiss(const CompilationCacheKey& key) const;

  // Returns the first error; empty if there was none.
  std::string warning() const;

  // Returns the path or address of an entry.
  std::string PathOf(const CompilationCacheKey& key) const;

 private:
  uint64_t MaxEntryBytes() const;
  void Warn(std::string text, bool quiet);
  void WarnOf(const absl::Status& status);
  // Counts an event of a remote store.
  void CountRemote(std::string_view event);
  // Returns true if the directory may be full after an entry was written: by the bytes that this process wrote or, for
  // processes that write little each, by the size of the subdirectory of that entry, one of 256 of about the same size.
  bool IsEvictionDue(const std::string& key, size_t entry_bytes);

  const PersistentCacheOptions options_;
  Metrics* metrics_;
  std::unique_ptr<ByteStore> store_;     // null: none could be opened
  DirectoryStore* directory_ = nullptr;  // it, if it is a directory
  std::string remote_counter_;           // begin of the names of its counters; empty: a directory
  mutable std::mutex mutex_;
  std::string warning_;
  int64_t written_ = 0;  // bytes since the last eviction
  int64_t puts_ = 0;
};

// EncodeEntry returns the file contents of an entry. DecodeEntry returns the program in it, or nullopt if
// the entry is damaged or has another key.
std::string EncodeEntry(const CompilationCacheKey& key, std::string_view program);
std::optional<std::string_view> DecodeEntry(std::string_view entry, const CompilationCacheKey& key);

}  // namespace hlokit::runtime

#endif  // HLOKIT_IO_CACHE_PERSISTENT_CACHE_H_
