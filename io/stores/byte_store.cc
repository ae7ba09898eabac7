// SPDX-License-Identifier: Apache-2.0
#include "io/stores/byte_store.h"

#include <algorithm>
#include <cstdlib>

#include "io/stores/azure_store.h"
#include "io/stores/directory_store.h"
#include "io/stores/redis_store.h"
#include "io/stores/s3_store.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

// Returns HLOKIT_STORE_TIMEOUT in milliseconds, or 0.
int64_t TimeoutOfEnvironment() {
  const char* const text = std::getenv("HLOKIT_STORE_TIMEOUT");
  if (text == nullptr) return 0;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  constexpr double kMaxSeconds = 86400;
  if (end == text || *end != '\0' || !(seconds > 0) || seconds > kMaxSeconds) return 0;
  return std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000));
}

}  // namespace

StoreOptions StoreOptions::ForFiles() {
  StoreOptions options;
  if (const int64_t timeout = TimeoutOfEnvironment(); timeout > 0) {
    options.connect_timeout_ms = options.stall_timeout_ms = timeout;
  }
  return options;
}

StoreOptions StoreOptions::ForCache() {
  StoreOptions options{.connect_timeout_ms = 1000, .stall_timeout_ms = 3000, .deadline_ms = 5000, .attempts = 3};
  if (const int64_t timeout = TimeoutOfEnvironment(); timeout > 0) {
    options.connect_timeout_ms = options.stall_timeout_ms = options.deadline_ms = timeout;
  }
  return options;
}

absl::StatusOr<std::unique_ptr<ByteStore>> ByteStore::Open(const StoreUrl& url, const StoreOptions& options) {
  switch (url.kind) {
    case StoreKind::kDirectory:
      return std::make_unique<DirectoryStore>(url);
    case StoreKind::kRedis:
      return OpenRedisStore(url, options);
    case StoreKind::kS3:
    case StoreKind::kGcs:
      return OpenS3Store(url, options);
    case StoreKind::kAzure:
      return OpenAzureStore(url, options);
  }
  return absl::InternalError("kind of store");
}

std::string ByteStore::FullKey(std::string_view key) const {
  if (key.empty()) return url_.path;
  return StrCat(url_.path, url_.path.empty() ? "" : "/", key);
}

std::string ByteStore::AddressOf(std::string_view key) const {
  const std::string address = ToString(url_);
  return key.empty() ? address : StrCat(address, address.ends_with('/') ? "" : "/", key);
}

}  // namespace hlokit
