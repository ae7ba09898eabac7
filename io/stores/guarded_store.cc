// SPDX-License-Identifier: Apache-2.0
#include "io/stores/guarded_store.h"

#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

const absl::Status& ResultStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& ResultStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace

GuardedStore::GuardedStore(std::unique_ptr<ByteStore> store) : ByteStore(store->url()), store_(std::move(store)) {}

template <typename Operation>
auto GuardedStore::Guard(std::string_view key, const Operation& operation) -> decltype(operation()) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!breaker_.Allows(CircuitBreaker::Clock::now())) {
    return absl::CancelledError(StrCat(AddressOf(key), ": left out after an error"));
  }
  auto result = operation();
  breaker_.Record(ResultStatus(result), CircuitBreaker::Clock::now());
  return result;
}

absl::StatusOr<std::string> GuardedStore::Get(std::string_view key, uint64_t max_bytes, bool first_bytes) {
  return Guard(key, [&] { return store_->Get(key, max_bytes, first_bytes); });
}

absl::Status GuardedStore::Put(std::string_view key, std::string_view bytes) {
  return Guard(key, [&] { return store_->Put(key, bytes); });
}

absl::StatusOr<bool> GuardedStore::Exists(std::string_view key) {
  return Guard(key, [&] { return store_->Exists(key); });
}

absl::StatusOr<std::vector<std::string>> GuardedStore::List(std::string_view prefix, size_t max_keys) {
  return Guard(prefix, [&] { return store_->List(prefix, max_keys); });
}

absl::Status GuardedStore::Remove(std::string_view key) {
  return Guard(key, [&] { return store_->Remove(key); });
}

}  // namespace hlokit
