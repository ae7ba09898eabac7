// SPDX-License-Identifier: Apache-2.0
// Azure Blob Storage: block blobs.
#ifndef HLOKIT_IO_STORES_AZURE_STORE_H_
#define HLOKIT_IO_STORES_AZURE_STORE_H_

#include <memory>

#include "io/stores/byte_store.h"

namespace hlokit {

absl::StatusOr<std::unique_ptr<ByteStore>> OpenAzureStore(const StoreUrl& url, const StoreOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_AZURE_STORE_H_
