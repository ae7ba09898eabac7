// SPDX-License-Identifier: Apache-2.0
#include "io/stores/object.h"

#include "ir/core/str_cat.h"

namespace hlokit {

absl::StatusOr<std::unique_ptr<ByteStore>> OpenObject(const std::string& address) {
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl(address);
  if (!url.ok()) return url.status();
  if (url->kind == StoreKind::kRedis) {
    return absl::InvalidArgumentError(StrCat(
        WithoutPassword(address), ": redis:// holds a compilation cache, not files; those are in s3, gs and az"));
  }
  if (url->path.empty()) {
    return absl::InvalidArgumentError(StrCat(address, ": expected the name of a file after the bucket or container"));
  }
  absl::StatusOr<std::unique_ptr<ByteStore>> store = ByteStore::Open(*url, StoreOptions::ForFiles());
  if (store.ok()) return store;
  return absl::Status(store.status().code(), StrCat(address, ": ", std::string(store.status().message())));
}

absl::StatusOr<std::string> ReadObject(const std::string& address, uint64_t max_bytes) {
  const absl::StatusOr<std::unique_ptr<ByteStore>> store = OpenObject(address);
  if (!store.ok()) return store.status();
  return (*store)->Get("", max_bytes);
}

}  // namespace hlokit
