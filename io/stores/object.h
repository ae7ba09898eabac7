// SPDX-License-Identifier: Apache-2.0
// Single values of remote stores, as files: s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/BLOB.
#ifndef HLOKIT_IO_STORES_OBJECT_H_
#define HLOKIT_IO_STORES_OBJECT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "io/stores/byte_store.h"

namespace hlokit {

// Returns the store whose empty key is the value at this address. Messages of errors begin with the address.
absl::StatusOr<std::unique_ptr<ByteStore>> OpenObject(const std::string& address);
absl::StatusOr<std::string> ReadObject(const std::string& address, uint64_t max_bytes);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_OBJECT_H_
