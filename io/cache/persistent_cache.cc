// SPDX-License-Identifier: Apache-2.0
#include "io/cache/persistent_cache.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "io/stores/guarded_store.h"
#include "ir/core/str_cat.h"

namespace hlokit::runtime {
namespace {

constexpr char kCacheMagic[8] = {'h', 'l', 'o', 'k', 'i', 't', 'C', '\0'};
constexpr uint64_t kFormat = 4;

struct EntryHeader {
  char magic[8];
  uint64_t format;
  Digest contents;
  uint64_t settings;  // count; their digests follow the header, then their text
  uint64_t settings_size;
  Digest canonical_digest;
  uint64_t form_size;  // text too
  uint64_t contents_size;
  uint64_t program_size;
};
static_assert(sizeof(EntryHeader) == 88);
static_assert(sizeof(Digest) == 16);
constexpr size_t kTrailer = sizeof(Digest);

// Returns "name=value" lines.
std::string SettingsToString(const CompilationCacheKey& key) {
  std::string text;
  for (const auto& [name, value] : key.settings) StrAppend(&text, name, "=", value, "\n");
  return text;
}

// Returns "name=value part" lines.
std::string ComponentsToString(const GraphKeyComponents& form) {
  std::string text;
  for (const GraphKeyComponents::Option& o : form.options)
    StrAppend(&text, o.name, "=", o.value, " ", ToString(o.digest), "\n");
  return text;
}

// Returns the value of a setting or an option in the text of either function.
std::optional<std::string_view> FindSetting(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t eq = line.find('=');
    if (eq != std::string_view::npos && line.substr(0, eq) == name) return line.substr(eq + 1);
  }
  return std::nullopt;
}

std::string DigestsOfSettings(const CompilationCacheKey& key) {
  std::string digests;
  for (const auto& [name, value] : key.settings) {
    const Digest digest = DigestOf(value);
    digests.append(reinterpret_cast<const char*>(&digest), sizeof(digest));
  }
  return digests;
}

// Returns the key of an entry in the store.
std::string KeyPrefixOf(const Digest& contents) {
  const std::string digits = ToString(contents);
  return StrCat(digits.substr(0, 2), "/", digits, "-");
}
std::string StoreKeyOf(const CompilationCacheKey& key) {
  return StrCat(KeyPrefixOf(DigestOf(key.contents)), ToString(DigestOf(SettingsToString(key))).substr(0, 16));
}

std::string_view CounterOf(StoreKind kind) {
  switch (kind) {
    case StoreKind::kDirectory:
      return "";
    case StoreKind::kRedis:
      return "PersistentCacheRedis";
    case StoreKind::kS3:
      return "PersistentCacheS3";
    case StoreKind::kGcs:
      return "PersistentCacheGcs";
    case StoreKind::kAzure:
      return "PersistentCacheAzure";
  }
  return "";
}

}  // namespace

std::vector<std::pair<std::string, Digest>> KeyComponents(const CompilationCacheKey& key) {
  std::vector<std::pair<std::string, Digest>> ingredients = {{"graph", DigestOf(key.contents)}};
  for (const auto& [name, value] : key.settings) ingredients.emplace_back(name, DigestOf(value));
  return ingredients;
}

std::string EncodeEntry(const CompilationCacheKey& key, std::string_view program) {
  const std::string settings = SettingsToString(key), digests = DigestsOfSettings(key),
                    form = ComponentsToString(key.components);
  EntryHeader header;
  std::memcpy(header.magic, kCacheMagic, sizeof(kCacheMagic));
  header.format = kFormat;
  header.contents = DigestOf(key.contents);
  header.settings = key.settings.size();
  header.settings_size = settings.size();
  header.canonical_digest = key.components.canonical_digest;
  header.form_size = form.size();
  header.contents_size = key.contents.size();
  header.program_size = program.size();
  std::string entry;
  entry.reserve(sizeof(header) + digests.size() + settings.size() + form.size() + key.contents.size() + program.size() +
                kTrailer);
  entry.append(reinterpret_cast<const char*>(&header), sizeof(header));
  entry.append(digests).append(settings).append(form).append(key.contents).append(program);
  const Digest sum = DigestOf(entry);
  entry.append(reinterpret_cast<const char*>(&sum), kTrailer);
  return entry;
}

std::optional<std::string_view> DecodeEntry(std::string_view entry, const CompilationCacheKey& key) {
  EntryHeader header;
  if (entry.size() < sizeof(header) + kTrailer) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof(header));
  const std::string settings = SettingsToString(key), digests = DigestsOfSettings(key);
  const uint64_t body = entry.size() - sizeof(header) - kTrailer;
  const uint64_t key_size = digests.size() + settings.size() + key.contents.size();
  if (std::memcmp(header.magic, kCacheMagic, sizeof(kCacheMagic)) != 0 || header.format != kFormat ||
      header.settings != key.settings.size() || header.settings_size != settings.size() ||
      header.contents_size != key.contents.size() || key_size > body || header.form_size > body - key_size ||
      header.program_size != body - key_size - header.form_size) {
    return std::nullopt;
  }
  // Compares contents and settings too, since digests may collide.
  std::string_view rest = entry.substr(sizeof(header));
  for (const std::string_view part : {std::string_view(digests), std::string_view(settings)}) {
    if (!rest.starts_with(part)) return std::nullopt;
    rest.remove_prefix(part.size());
  }
  rest.remove_prefix(header.form_size);
  if (!rest.starts_with(key.contents)) return std::nullopt;
  rest.remove_prefix(key.contents.size());
  Digest sum;
  std::memcpy(&sum, entry.data() + entry.size() - kTrailer, kTrailer);
  if (DigestOf(entry.substr(0, entry.size() - kTrailer)) != sum) return std::nullopt;
  return rest.substr(0, header.program_size);
}

namespace {

// What follows from an error, in its warning.
constexpr std::string_view kNothing = "; nothing is read from it or kept in it";
constexpr std::string_view kCompiled = "; it is compiled again";
constexpr std::string_view kNotKept = "; what was compiled is not kept";

absl::Status Followed(const absl::Status& status, std::string_view by) {
  return status.ok() ? status : absl::Status(status.code(), StrCat(std::string(status.message()), by));
}

}  // namespace

PersistentCache::PersistentCache(const PersistentCacheOptions& options, Metrics* metrics)
    : options_(options), metrics_(metrics) {
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl(options_.location);
  if (!url.ok()) {
    WarnOf(Followed(url.status(), kNothing));
    return;
  }
  remote_counter_ = CounterOf(url->kind);
  if (url->kind == StoreKind::kDirectory) {
    auto directory = std::make_unique<DirectoryStore>(*url);
    directory_ = directory.get();
    store_ = std::move(directory);
    if (!options_.read_only) WarnOf(Followed(directory_->Create(), kNothing));
    return;
  }
  absl::StatusOr<std::unique_ptr<ByteStore>> store = ByteStore::Open(*url, StoreOptions::ForCache());
  if (!store.ok()) {
    Warn(StrCat(ToString(*url), ": ", std::string(store.status().message()), kNothing), options_.quiet);
    return;
  }
  store_ = std::make_unique<GuardedStore>(*std::move(store));
}

PersistentCache::PersistentCache(const PersistentCacheOptions& options, std::unique_ptr<DirectoryStore> directory,
                                 Metrics* metrics)
    : options_(options), metrics_(metrics), store_(std::move(directory)) {
  directory_ = static_cast<DirectoryStore*>(store_.get());
}

std::string PersistentCache::warning() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return warning_;
}

void PersistentCache::Warn(std::string text, bool quiet) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!warning_.empty()) return;
  warning_ = StrCat(options_.name, ": ", text);
  if (quiet) return;
  std::fprintf(stderr, "hlokit: warning: %s\n", warning_.c_str());
}

void PersistentCache::WarnOf(const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) return;
  // What another user can change is left out, which nothing else would tell.
  const bool quiet = options_.quiet && !absl::IsPermissionDenied(status);
  Warn(std::string(status.message()), quiet);
}

void PersistentCache::CountRemote(std::string_view event) {
  if (!remote_counter_.empty()) metrics_->Add(StrCat(remote_counter_, event));
}

uint64_t PersistentCache::MaxEntryBytes() const {
  // What a server sends takes memory before anything of it is known to be right.
  constexpr int64_t kMaxRemoteBytes = int64_t{512} << 20;
  return static_cast<uint64_t>(directory_ != nullptr ? options_.max_bytes
                                                     : std::min(options_.max_bytes, kMaxRemoteBytes));
}

std::string PersistentCache::PathOf(const CompilationCacheKey& key) const {
  return store_ == nullptr ? "" : store_->AddressOf(StoreKeyOf(key));
}

std::optional<SerializedExecutable> PersistentCache::Get(const CompilationCacheKey& key) {
  return Get(key, [](std::string_view) { return absl::OkStatus(); });
}

std::optional<SerializedExecutable> PersistentCache::Get(
    const CompilationCacheKey& key, absl::FunctionRef<absl::Status(std::string_view program)> check) {
  TimedSection timed(metrics_, "PersistentCacheLoad");
  if (store_ == nullptr) {
    CountRemote("Skipped");
    metrics_->Add("PersistentCacheMiss");
    return std::nullopt;
  }
  const std::string name = StoreKeyOf(key);
  absl::StatusOr<std::string> entry = store_->Get(name, MaxEntryBytes());
  if (!entry.ok()) {
    const bool missing = absl::IsNotFound(entry.status());
    CountRemote(missing ? "Miss" : absl::IsCancelled(entry.status()) ? "Skipped" : "Error");
    if (!missing) WarnOf(Followed(entry.status(), kCompiled));
    metrics_->Add("PersistentCacheMiss");
    return std::nullopt;
  }
  const std::optional<std::string_view> program = DecodeEntry(*entry, key);
  const absl::Status checked = program ? check(*program) : absl::DataLossError("");
  if (!checked.ok()) {
    metrics_->Add("PersistentCacheDeserializeFailure");
    metrics_->Add("PersistentCacheMiss");
    CountRemote("Miss");
    Warn(StrCat(store_->AddressOf(name),
                program ? StrCat(" is not used: ", std::string(checked.message())) : " is corrupt or not a cache entry",
                kCompiled),
         options_.quiet);
    if (!options_.read_only) (void)store_->Remove(name);
    return std::nullopt;
  }
  metrics_->Add("PersistentCacheHit");
  CountRemote("Hit");
  if (directory_ != nullptr && !options_.read_only) directory_->Touch(name);  // updates the eviction order
  const size_t begin = static_cast<size_t>(program->data() - entry->data()), size = program->size();
  return SerializedExecutable(*std::move(entry), begin, size);
}

namespace {

// Graph and settings of an entry.
struct EntryMetadata {
  std::unique_ptr<const std::string> bytes;
  EntryHeader header;
  std::string_view digests, settings, form;
};

// Reads the metadata of an entry whose header is `wanted`; nullopt if unreadable.
std::optional<EntryMetadata> ReadEntryMetadata(ByteStore* store, const std::string& key,
                                               absl::FunctionRef<bool(const EntryHeader&)> wanted) {
  constexpr size_t kMaxHeaderBytes = 1 << 16;
  absl::StatusOr<std::string> bytes = store->Get(key, sizeof(EntryHeader), /*first_bytes=*/true);
  EntryMetadata head;
  if (!bytes.ok() || bytes->size() < sizeof(EntryHeader)) return std::nullopt;
  std::memcpy(&head.header, bytes->data(), sizeof(EntryHeader));
  if (head.header.format != kFormat || !wanted(head.header)) return std::nullopt;
  bytes = store->Get(key, sizeof(EntryHeader) + kMaxHeaderBytes, /*first_bytes=*/true);
  if (!bytes.ok() || bytes->size() < sizeof(EntryHeader)) return std::nullopt;
  head.bytes = std::make_unique<const std::string>(*std::move(bytes));
  std::string_view rest = std::string_view(*head.bytes).substr(sizeof(EntryHeader));
  const auto take = [&](uint64_t size, std::string_view* to) {
    if (size > rest.size()) return false;
    *to = rest.substr(0, size);
    rest.remove_prefix(size);
    return true;
  };
  if (head.header.settings > kMaxHeaderBytes || !take(head.header.settings * sizeof(Digest), &head.digests) ||
      !take(head.header.settings_size, &head.settings) || !take(head.header.form_size, &head.form)) {
    return std::nullopt;
  }
  return head;
}

std::string DescribeChange(std::string_view name, std::string_view value, std::optional<std::string_view> was) {
  return StrCat(name, " is `", value, was ? StrCat("`, it was `", *was, "`") : "`, it was not there");
}

// Describes how the key differs from the entry; empty if they also differ in anything else.
std::vector<std::string> Differences(const CompilationCacheKey& key, const EntryMetadata& head) {
  std::vector<std::string> differences;
  std::vector<std::string_view> named;
  const bool same_contents = head.header.contents == DigestOf(key.contents);
  if (!same_contents) {
    for (const GraphKeyComponents::Option& option : key.components.options) {
      const std::optional<std::string_view> line = FindSetting(head.form, option.name);
      if (!line) return {};
      const std::string_view was = line->substr(0, line->find(' '));
      const std::string_view part = line->substr(std::min(was.size() + 1, line->size()));
      if (part == ToString(option.digest)) continue;
      if (was == option.value) return {};  // the graph differs in more than the option
      differences.push_back(DescribeChange(option.name, option.value, was));
      named.push_back(option.name);
    }
    if (differences.empty()) return {};
  }
  const std::string wanted = DigestsOfSettings(key);
  for (size_t i = 0; i < key.settings.size(); ++i) {
    const auto digest = [i](std::string_view of) { return of.substr(std::min(i * sizeof(Digest), of.size())); };
    if (digest(head.digests).substr(0, sizeof(Digest)) == digest(wanted).substr(0, sizeof(Digest))) continue;
    const auto& [name, value] = key.settings[i];
    const std::optional<std::string_view> was = FindSetting(head.settings, name);
    if (was == value || std::find(named.begin(), named.end(), name) != named.end()) continue;
    differences.push_back(DescribeChange(name, value, was));
  }
  return differences;
}

// Returns the smallest set of differences over the entries; the first among equals.
std::string FewestDifferences(const CompilationCacheKey& key, ByteStore* store, const std::vector<std::string>& names,
                              absl::FunctionRef<bool(const EntryHeader&)> wanted) {
  std::vector<std::string> fewest;
  for (const std::string& name : names) {
    const std::optional<EntryMetadata> head = ReadEntryMetadata(store, name, wanted);
    if (!head) continue;
    std::vector<std::string> differences = Differences(key, *head);
    if (differences.empty() || (!fewest.empty() && differences.size() >= fewest.size())) continue;
    fewest = std::move(differences);
  }
  std::string text;
  for (const std::string& difference : fewest) StrAppend(&text, text.empty() ? "" : "; ", difference);
  return text;
}

}  // namespace

std::string PersistentCache::ExplainMiss(const CompilationCacheKey& key) const {
  // Each entry is a request.
  const size_t max_keys = directory_ != nullptr ? SIZE_MAX : 1000;
  if (store_ == nullptr) return "";
  const Digest contents = DigestOf(key.contents);
  absl::StatusOr<std::vector<std::string>> names = store_->List(KeyPrefixOf(contents), max_keys);
  if (!names.ok()) return "";
  const auto same_contents = [&](const EntryHeader& h) { return h.contents == contents; };
  if (std::string found = FewestDifferences(key, store_.get(), *names, same_contents); !found.empty()) return found;
  if (key.components.canonical_digest == Digest()) return "";
  names = store_->List("", max_keys);
  if (!names.ok()) return "";
  std::erase_if(*names, [](const std::string& name) { return name.find('/') == std::string::npos; });
  return FewestDifferences(key, store_.get(), *names,
                           [&](const EntryHeader& h) { return h.canonical_digest == key.components.canonical_digest; });
}

void PersistentCache::Put(const CompilationCacheKey& key, std::string_view program) {
  if (options_.read_only || store_ == nullptr) return;
  const std::string entry = EncodeEntry(key, program);
  if (const absl::Status status = store_->Put(StoreKeyOf(key), entry); !status.ok()) {
    CountRemote(absl::IsCancelled(status) ? "Skipped" : "Error");
    return WarnOf(Followed(status, kNotKept));
  }
  if (directory_ != nullptr && IsEvictionDue(StoreKeyOf(key), entry.size())) directory_->Evict(options_.max_bytes);
}

bool PersistentCache::IsEvictionDue(const std::string& key, size_t entry_bytes) {
  constexpr int64_t kSubdirectories = 256, kPutsPerCheck = 16;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    written_ += static_cast<int64_t>(entry_bytes);
    if (written_ >= options_.max_bytes / 16) {
      written_ = 0;
      return true;
    }
    if (puts_++ % kPutsPerCheck != 0) return false;
  }
  return directory_->BytesBeside(key) > options_.max_bytes / kSubdirectories;
}

}  // namespace hlokit::runtime
