// SPDX-License-Identifier: Apache-2.0
// A Redis server, by hiredis, which is loaded by the first use. Keys are PREFIX/KEY.
//
// The password is that of the address, else REDISCLI_AUTH, as for redis-cli. How long values stay is the server's
// policy (maxmemory, maxmemory-policy).
#ifndef HLOKIT_IO_STORES_REDIS_STORE_H_
#define HLOKIT_IO_STORES_REDIS_STORE_H_

#include <memory>

#include "io/stores/byte_store.h"

namespace hlokit {

absl::StatusOr<std::unique_ptr<ByteStore>> OpenRedisStore(const StoreUrl& url, const StoreOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_REDIS_STORE_H_
