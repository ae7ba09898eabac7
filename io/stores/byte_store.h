// SPDX-License-Identifier: Apache-2.0
// Byte stores: named byte strings in a directory, on a Redis server or in a cloud's object store.
//
// A value is written whole or not at all, and the last of concurrent writers wins. Clients of Redis and HTTP are
// libraries that are loaded when the first such store is opened (shared_library.h), so that programs that use none do
// not load them.
//
// Errors: NotFound: no such key. PermissionDenied: credentials missing or rejected. Unavailable: the server cannot be
// reached, does not answer in time or is overloaded, after retries. DataLoss: the value differs from what was written.
// ResourceExhausted: larger than the limit. Unimplemented: this build, or this machine, lacks a library. Messages begin
// with the address of the value and hold no credentials.
#ifndef HLOKIT_IO_STORES_BYTE_STORE_H_
#define HLOKIT_IO_STORES_BYTE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/stores/store_url.h"

namespace hlokit {

struct StoreOptions {
  int64_t connect_timeout_ms = 5000;
  int64_t stall_timeout_ms = 20000;  // of a connection without progress: of HTTP, below 1000 bytes/s
  int64_t deadline_ms = 0;           // of one operation with its retries; 0: none
  int attempts = 4;                  // of one operation

  // For whole files, that a user waits for; for a cache, which is not worth a long wait. The environment variable
  // HLOKIT_STORE_TIMEOUT, in seconds, replaces the times.
  static StoreOptions ForFiles();
  static StoreOptions ForCache();
};

// Thread-safe; a store does one operation at a time.
class ByteStore {
 public:
  virtual ~ByteStore() = default;
  ByteStore(const ByteStore&) = delete;
  ByteStore& operator=(const ByteStore&) = delete;

  // Opens the store at an address; keys are below its path. Does not contact the server.
  static absl::StatusOr<std::unique_ptr<ByteStore>> Open(const StoreUrl& url, const StoreOptions& options);

  // Returns the value of a key, or its first `max_bytes` bytes if `first_bytes`. The empty key is the path of the
  // address itself.
  virtual absl::StatusOr<std::string> Get(std::string_view key, uint64_t max_bytes, bool first_bytes = false) = 0;
  virtual absl::Status Put(std::string_view key, std::string_view bytes) = 0;
  virtual absl::StatusOr<bool> Exists(std::string_view key) = 0;
  // Returns the keys that begin with `prefix`, in order, `max_keys` at most.
  virtual absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) = 0;
  // Removes a key; one that does not exist is no error.
  virtual absl::Status Remove(std::string_view key) = 0;

  const StoreUrl& url() const { return url_; }
  // Returns the address of a key, for messages.
  std::string AddressOf(std::string_view key) const;

 protected:
  explicit ByteStore(StoreUrl url) : url_(std::move(url)) {}
  // Returns the key with the path of the address before it.
  std::string FullKey(std::string_view key) const;

 private:
  const StoreUrl url_;
};

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_BYTE_STORE_H_
