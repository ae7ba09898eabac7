// SPDX-License-Identifier: Apache-2.0
// A store that may be down: after a failure operations are left out for a while (CircuitBreaker), so that a server that
// does not answer costs little time. Operations that are left out return Cancelled.
#ifndef HLOKIT_IO_STORES_GUARDED_STORE_H_
#define HLOKIT_IO_STORES_GUARDED_STORE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io/stores/byte_store.h"
#include "io/stores/retry.h"

namespace hlokit {

class GuardedStore : public ByteStore {
 public:
  explicit GuardedStore(std::unique_ptr<ByteStore> store);

  absl::StatusOr<std::string> Get(std::string_view key, uint64_t max_bytes, bool first_bytes = false) override;
  absl::Status Put(std::string_view key, std::string_view bytes) override;
  absl::StatusOr<bool> Exists(std::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) override;
  absl::Status Remove(std::string_view key) override;

 private:
  // Calls `operation` unless the breaker is open. Threads wait for each other, so that one alone finds the server down.
  template <typename Operation>
  auto Guard(std::string_view key, const Operation& operation) -> decltype(operation());

  std::mutex mutex_;
  std::unique_ptr<ByteStore> store_;
  CircuitBreaker breaker_;
};

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_GUARDED_STORE_H_
