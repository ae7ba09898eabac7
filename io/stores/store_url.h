// SPDX-License-Identifier: Apache-2.0
// Addresses of remote stores:
//
//   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=PREFIX]   a Redis server; ?PREFIX is the same
//   s3://BUCKET[/KEY]                                                   Amazon S3, and servers with its interface
//   gs://BUCKET[/KEY]                                                   Google Cloud Storage
//   az://CONTAINER[/BLOB]                                               Azure Blob Storage
//
// Keys are literal, as the clouds' own tools take them; user, password and prefix of Redis are percent-encoded.
#ifndef HLOKIT_IO_STORES_STORE_URL_H_
#define HLOKIT_IO_STORES_STORE_URL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit {

enum class StoreKind : uint8_t { kDirectory, kRedis, kS3, kGcs, kAzure };

// Returns "directory", "redis", "s3", "gs" or "az".
std::string_view ToString(StoreKind kind);

struct StoreUrl {
  StoreKind kind = StoreKind::kDirectory;
  std::string container;  // bucket or container; of a directory its path
  std::string path;       // key below it; of Redis the prefix of keys; without slashes at its ends
  std::string host;       // of Redis, as are the following
  int port = 6379;
  int database = 0;
  std::string user, password;  // not for messages
};

// Returns whether a path names a store: begins with a scheme, as in "s3://".
bool IsStoreUrl(std::string_view path);

// Parses an address. A path without a scheme is a directory. Errors name neither user nor password.
absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view text);

// Returns the address without user and password.
std::string ToString(const StoreUrl& url);
// Returns the text with what stands between "://" and "@" replaced, for any text that a user may have typed; all after
// "://" if what should be a host, bucket or container is none, as it may be a password.
std::string WithoutPassword(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_STORE_URL_H_
