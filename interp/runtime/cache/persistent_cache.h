// SPDX-License-Identifier: Apache-2.0
// Compiled programs kept in a folder, for other processes and other days.
//
// An entry is one file: a header (magic, format, lengths, digest of the contents and of the bare graph), the digest of
// each setting that the program was compiled under, the settings, the form of the graph, the contents of what was
// compiled, the program, and a checksum over all of it. Its name is made of the digests of the contents and of the
// settings, so that the programs one graph became under several settings lie side by side, and a miss can name the
// setting that differs; where options made other contents of the same graph, its form names them. A reader trusts
// nothing: wrong magic, format, length or checksum, or contents or settings other than those asked for, is a miss. A
// writer fills a temporary file of its own and renames it, so a
// reader sees an entry whole or not at all, however many processes write. No lock is needed for that; one guards
// eviction alone, and a lock that nobody refreshed for ten seconds is broken.
//
// Whatever goes wrong (no permission, no space, a folder that vanished) makes a miss and, once, a warning.
#ifndef HLOKIT_INTERP_RUNTIME_CACHE_PERSISTENT_CACHE_H_
#define HLOKIT_INTERP_RUNTIME_CACHE_PERSISTENT_CACHE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/runtime/observe/metrics.h"
#include "ir/digest/digest.h"

namespace hlokit::runtime {

struct PersistentCacheOptions {
  std::string folder;
  bool read_only = false;
  int64_t max_bytes = int64_t{4} << 30;  // of all entries; the oldest go first
};

// What is the same of a graph whatever options make of it, and what each of them does.
struct GraphKeyComponents {
  struct Option {
    std::string name, value;
    Digest digest;  // of what the option decides in this graph
  };
  Digest canonical_digest;  // of the graph without that; 0: not known
  std::vector<Option> options;
};

// What a compiled program follows from.
struct CompilationCacheKey {
  // The canonical form of what is compiled, the same bytes in every process. Compared on every hit.
  std::string contents;
  // What else decides the program, by name. Compared on every hit too.
  std::vector<std::pair<std::string, std::string>> settings;
  // Of the contents: to explain misses. It decides nothing, and Get does not need it.
  GraphKeyComponents components;
};

// The digest of each thing that the key is made of, by name: "graph" for the contents, then the settings.
std::vector<std::pair<std::string, Digest>> KeyComponents(const CompilationCacheKey& key);

// A program as it lies in the folder, checked.
class SerializedExecutable {
 public:
  SerializedExecutable() = default;
  SerializedExecutable(std::unique_ptr<char[]> bytes, std::string_view text) : bytes_(std::move(bytes)), text_(text) {}
  std::string_view text() const { return text_; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::string_view text_;
};

class PersistentCache {
 public:
  // Counts PersistentCacheHit, PersistentCacheMiss and PersistentCacheDeserializeFailure in `metrics`, and times Get as
  // PersistentCacheLoad.
  PersistentCache(const PersistentCacheOptions& options, Metrics* metrics);

  // The program that was filed under exactly this key.
  std::optional<SerializedExecutable> Get(const CompilationCacheKey& key);
  void Put(const CompilationCacheKey& key, std::string_view program);
  // For a key that is not there: the settings in which a program of the same contents differs, as in
  // "pipeline is `default`, it was `cse`", with "; " between them. If there is none, the same of a program of the same
  // bare graph, if its contents differ by nothing but options: all of them, then. Empty if there is no such program
  // either. Looks at every entry.
  std::string ExplainMiss(const CompilationCacheKey& key) const;

  // The first thing that went wrong; empty if nothing did.
  std::string warning() const;

  std::string PathOf(const CompilationCacheKey& key) const;

 private:
  std::string FolderOf(const Digest& contents) const;
  void Warn(std::string text);
  void Evict();

  const PersistentCacheOptions options_;
  Metrics* metrics_;
  mutable std::mutex mutex_;
  std::string warning_;
  int64_t written_ = 0;  // bytes since the last eviction
};

// The file contents of an entry, and the program in it; nullopt if it is damaged or made for something else.
std::string EncodeEntry(const CompilationCacheKey& key, std::string_view program);
std::optional<std::string_view> DecodeEntry(std::string_view entry, const CompilationCacheKey& key);

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_CACHE_PERSISTENT_CACHE_H_
