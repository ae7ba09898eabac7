// SPDX-License-Identifier: Apache-2.0
// Amazon S3, and Google Cloud Storage by its interface that is compatible with S3's.
#ifndef HLOKIT_IO_STORES_S3_STORE_H_
#define HLOKIT_IO_STORES_S3_STORE_H_

#include <memory>

#include "io/stores/byte_store.h"

namespace hlokit {

absl::StatusOr<std::unique_ptr<ByteStore>> OpenS3Store(const StoreUrl& url, const StoreOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_S3_STORE_H_
