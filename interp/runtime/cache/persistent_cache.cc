// SPDX-License-Identifier: Apache-2.0
#include "interp/runtime/cache/persistent_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ir/core/str_cat.h"
#include "parser/files/atomic_file_writer.h"

namespace hlokit::runtime {
namespace {

namespace fs = std::filesystem;

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

// Contents of a file.
struct FileBytes {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  std::string_view view() const { return {bytes.get(), size}; }
};

std::string ErrorMessage(int error) { return std::system_category().message(error); }

// Returns a random name, so that two writers never share a temporary file.
std::string TemporaryEntryName() {
  static std::atomic<uint64_t> serial{0};
  thread_local std::random_device random;
  return StrCat("tmp-", getpid(), "-", static_cast<uint64_t>(random()), "-", serial.fetch_add(1));
}

// Reads the file, at most `most` bytes of it; nullopt with errno on failure. Reads a copy: truncation of a mapped file
// by another process would raise SIGBUS.
std::optional<FileBytes> ReadFile(const std::string& path, size_t most = SIZE_MAX) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat info;
  FileBytes file;
  size_t size = 0;
  bool ok = fstat(fd, &info) == 0;
  if (ok && !S_ISREG(info.st_mode)) {
    errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    ok = false;
  }
  if (ok) {
    size = std::min(static_cast<size_t>(info.st_size), most);
    file.bytes = std::make_unique_for_overwrite<char[]>(size);
  }
  while (ok && file.size < size) {
    const ssize_t n = read(fd, file.bytes.get() + file.size, size - file.size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ok = false;
    if (n == 0) break;
    if (n > 0) file.size += static_cast<size_t>(n);
  }
  const int error = errno;
  close(fd);
  errno = error;
  if (!ok) return std::nullopt;
  return file;
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

PersistentCache::PersistentCache(const PersistentCacheOptions& options, Metrics* metrics)
    : options_(options), metrics_(metrics) {
  if (options_.read_only) return;
  std::error_code error;
  fs::create_directories(options_.directory, error);
  if (error) Warn(StrCat("cannot create directory ", options_.directory, ": ", error.message()));
}

std::string PersistentCache::warning() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return warning_;
}

void PersistentCache::Warn(std::string text) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!warning_.empty()) return;
  warning_ = StrCat("program cache: ", text);
  std::fprintf(stderr, "%s\n", warning_.c_str());
}

std::string PersistentCache::DirectoryOf(const Digest& contents) const {
  return StrCat(options_.directory, "/", ToString(contents).substr(0, 2));
}

std::string PersistentCache::PathOf(const CompilationCacheKey& key) const {
  const Digest contents = DigestOf(key.contents);
  return StrCat(DirectoryOf(contents), "/", ToString(contents), "-",
                ToString(DigestOf(SettingsToString(key))).substr(0, 16));
}

std::optional<SerializedExecutable> PersistentCache::Get(const CompilationCacheKey& key) {
  TimedSection timed(metrics_, "PersistentCacheLoad");
  const std::string path = PathOf(key);
  std::optional<FileBytes> entry = ReadFile(path);
  if (!entry) {
    if (errno != ENOENT && errno != ENOTDIR) Warn(StrCat("cannot read ", path, ": ", ErrorMessage(errno)));
    metrics_->Add("PersistentCacheMiss");
    return std::nullopt;
  }
  const std::optional<std::string_view> program = DecodeEntry(entry->view(), key);
  if (!program) {
    metrics_->Add("PersistentCacheDeserializeFailure");
    metrics_->Add("PersistentCacheMiss");
    Warn(StrCat(path, " is corrupt or not a cache entry"));
    if (!options_.read_only) unlink(path.c_str());
    return std::nullopt;
  }
  metrics_->Add("PersistentCacheHit");
  if (!options_.read_only) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // updates the eviction order
  return SerializedExecutable(std::move(entry->bytes), *program);
}

namespace {

// Graph and settings of an entry.
struct EntryMetadata {
  FileBytes file;
  EntryHeader header;
  std::string_view digests, settings, form;
};

// Reads the metadata of an entry whose header is `wanted`; nullopt if unreadable.
std::optional<EntryMetadata> ReadEntryMetadata(const fs::path& path,
                                               absl::FunctionRef<bool(const EntryHeader&)> wanted) {
  constexpr size_t kMaxHeaderBytes = 1 << 16;
  std::optional<FileBytes> file = ReadFile(path, sizeof(EntryHeader));
  EntryMetadata head;
  if (!file || file->size < sizeof(EntryHeader)) return std::nullopt;
  std::memcpy(&head.header, file->bytes.get(), sizeof(EntryHeader));
  if (head.header.format != kFormat || !wanted(head.header)) return std::nullopt;
  file = ReadFile(path, sizeof(EntryHeader) + kMaxHeaderBytes);
  if (!file || file->size < sizeof(EntryHeader)) return std::nullopt;
  std::string_view rest = file->view().substr(sizeof(EntryHeader));
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
  head.file = *std::move(file);
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
std::string FewestDifferences(const CompilationCacheKey& key, std::vector<fs::path> paths,
                              absl::FunctionRef<bool(const EntryHeader&)> wanted) {
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> fewest;
  for (const fs::path& path : paths) {
    const std::optional<EntryMetadata> head = ReadEntryMetadata(path, wanted);
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
  const Digest contents = DigestOf(key.contents);
  const std::string prefix = StrCat(ToString(contents), "-");
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(DirectoryOf(contents), error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) paths.push_back(it->path());
  }
  const auto same_contents = [&](const EntryHeader& h) { return h.contents == contents; };
  if (std::string found = FewestDifferences(key, std::move(paths), same_contents); !found.empty()) return found;
  if (key.components.canonical_digest == Digest()) return "";
  paths.clear();
  for (fs::recursive_directory_iterator it(options_.directory, error), end; !error && it != end; it.increment(error)) {
    if (it.depth() == 1 && !it->path().filename().string().starts_with("tmp-")) paths.push_back(it->path());
  }
  return FewestDifferences(key, std::move(paths),
                           [&](const EntryHeader& h) { return h.canonical_digest == key.components.canonical_digest; });
}

void PersistentCache::Put(const CompilationCacheKey& key, std::string_view program) {
  if (options_.read_only) return;
  const std::string path = PathOf(key);
  const std::string directory = path.substr(0, path.rfind('/'));
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return Warn(StrCat("cannot create directory ", directory, ": ", ErrorMessage(errno)));
  }
  const std::string temporary = StrCat(directory, "/", TemporaryEntryName());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return Warn(StrCat("cannot write ", temporary, ": ", ErrorMessage(errno)));
  const std::string entry = EncodeEntry(key, program);
  int error = WriteAll(fd, entry);
  bool ok = error == 0;
  if (close(fd) != 0 && ok) {
    ok = false;
    error = errno;
  }
  if (ok && rename(temporary.c_str(), path.c_str()) != 0) {
    ok = false;
    error = errno;
  }
  if (!ok) {
    unlink(temporary.c_str());
    return Warn(StrCat("cannot write ", path, ": ", ErrorMessage(error)));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    written_ += static_cast<int64_t>(entry.size());
    if (written_ < options_.max_bytes / 16) return;
    written_ = 0;
  }
  Evict();
}

void PersistentCache::Evict() {
  // One process evicts at a time; concurrent evictions would remove too much.
  const std::string lock = StrCat(options_.directory, "/evicting");
  int fd = open(lock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    struct stat info;
    if (stat(lock.c_str(), &info) != 0 || time(nullptr) - info.st_mtime < 10) return;
    unlink(lock.c_str());  // of a process that died
    fd = open(lock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return;
  }
  close(fd);
  struct Entry {
    fs::path path;
    fs::file_time_type time;
    int64_t size;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  const fs::file_time_type now = fs::file_time_type::clock::now();
  std::error_code error;
  for (fs::recursive_directory_iterator it(options_.directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // files may vanish at any time
    if (!it->is_regular_file(ignored) || it->path() == lock) continue;
    const fs::file_time_type time = it->last_write_time(ignored);
    const auto size = it->file_size(ignored);
    if (ignored) continue;
    // Temporary file of a writer that died.
    if (it->path().filename().string().starts_with("tmp-")) {
      if (now - time > std::chrono::hours(1)) fs::remove(it->path(), ignored);
      continue;
    }
    entries.push_back({it->path(), time, static_cast<int64_t>(size)});
    total += static_cast<int64_t>(size);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.time != b.time ? a.time < b.time : a.path < b.path; });
  for (const Entry& entry : entries) {
    if (total <= options_.max_bytes) break;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total -= entry.size;
  }
  unlink(lock.c_str());
}

}  // namespace hlokit::runtime
