// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code/code_store.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "interp/compiled/code/engine_build_id.h"
#include "io/stores/directory_store.h"
#include "io/stores/store_url.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsDirectoryLocation(const std::string& location) {
  if (location.empty()) return false;
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl(location);
  return url.ok() && url->kind == StoreKind::kDirectory;
}

runtime::CompilationCacheKey KeyOf(const std::string& program, InstructionSet set) {
  runtime::CompilationCacheKey key;
  key.contents = program;
  key.settings = {{"code", kEngineBuildId}, {"instructions", std::string(ToString(set))}};
  return key;
}

}  // namespace

CodeStoreOptions CodeStoreOptions::FromEnvironment() {
  CodeStoreOptions options;
  options.directory = Environment("HLOKIT_CODE_CACHE");
  if (absl::EqualsIgnoreCase(options.directory, "off")) {
    options.directory.clear();
    return options;
  }
  if (IsDirectoryLocation(options.directory)) return options;
  options.directory = Environment("XLA_PERSISTENT_CACHE_PATH");
  if (IsDirectoryLocation(options.directory)) {
    options.max_bytes = runtime::PersistentCacheOptions().max_bytes;
    options.read_only = Environment("XLA_PERSISTENT_CACHE_READ_ONLY") == "1";
    options.quiet = true;
    return options;
  }
  options.directory.clear();
  fs::path base = Environment("XDG_CACHE_HOME");
  if (!base.is_absolute()) {
    base = Environment("HOME");
    if (!base.is_absolute()) return options;
    base /= ".cache";
  }
  options.directory = (base / "hlokit" / "code").string();
  options.quiet = true;
  return options;
}

CodeStore::CodeStore(const CodeStoreOptions& options) {
  if (options.directory.empty()) return;
  StoreUrl url;
  url.container = options.directory;
  absl::StatusOr<std::unique_ptr<DirectoryStore>> directory =
      DirectoryStore::OpenPrivate(std::move(url), /*create=*/!options.read_only);
  if (!directory.ok()) {
    // Where nothing can be written, as in a container without a home, there is nothing to say.
    if (options.quiet && !absl::IsPermissionDenied(directory.status())) return;
    std::fprintf(stderr, "hlokit: warning: code cache: %s; compiled loops are not kept on disk\n",
                 std::string(directory.status().message()).c_str());
    return;
  }
  runtime::PersistentCacheOptions cache;
  cache.name = "code cache";
  cache.location = options.directory;
  cache.read_only = options.read_only;
  cache.quiet = options.quiet;
  cache.max_bytes = options.max_bytes;
  cache_ = std::make_unique<runtime::PersistentCache>(cache, *std::move(directory), &metrics_);
}

std::optional<GeneratedCode> CodeStore::Get(const std::string& program, InstructionSet set) {
  if (cache_ == nullptr) return std::nullopt;
  const std::optional<runtime::SerializedExecutable> entry = cache_->Get(KeyOf(program, set));
  if (!entry) return std::nullopt;
  return DecodeCode(entry->text());
}

void CodeStore::Put(const std::string& program, InstructionSet set, const GeneratedCode& code) {
  if (cache_ != nullptr && !code.is_of_process) cache_->Put(KeyOf(program, set), EncodeCode(code));
}

std::string CodeStore::PathOf(const std::string& program, InstructionSet set) const {
  return cache_ == nullptr ? "" : cache_->PathOf(KeyOf(program, set));
}

namespace {

std::unique_ptr<CodeStore>& Store() {
  static auto* const store = new std::unique_ptr<CodeStore>();
  return *store;
}

}  // namespace

CodeStore* ProcessCodeStore() { return Store().get(); }

void SetProcessCodeStore(const CodeStoreOptions& options) { Store() = std::make_unique<CodeStore>(options); }

void UseCodeStoreOfEnvironment() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (ProcessCodeStore() == nullptr) SetProcessCodeStore(CodeStoreOptions::FromEnvironment());
  });
}

// What a thunk needs of the code. Does not compile if a field is added, so that this function is not forgotten.
std::string EncodeCode(const GeneratedCode& code) {
  const auto& [image, entry, saved_values, is_of_process, ir, optimized_ir, assembly] = code;
  const int64_t numbers[] = {entry, saved_values};
  std::string bytes(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  return bytes.append(reinterpret_cast<const char*>(image.data()), image.size());
}

std::optional<GeneratedCode> DecodeCode(std::string_view bytes) {
  int64_t numbers[2];
  if (bytes.size() <= sizeof(numbers)) return std::nullopt;
  std::memcpy(numbers, bytes.data(), sizeof(numbers));
  const std::string_view image = bytes.substr(sizeof(numbers));
  if (numbers[0] < 0 || numbers[0] >= static_cast<int64_t>(image.size()) || numbers[1] < 0) return std::nullopt;
  GeneratedCode code;
  code.image.resize(image.size());
  std::memcpy(code.image.data(), image.data(), image.size());
  code.entry = numbers[0];
  code.saved_values = numbers[1];
  return code;
}

}  // namespace hlokit::interp::compiled
