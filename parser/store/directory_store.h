// SPDX-License-Identifier: Apache-2.0
// A directory as a byte store: a key is the path of a file below it, written to a temporary file there and renamed.
#ifndef HLOKIT_PARSER_STORE_DIRECTORY_STORE_H_
#define HLOKIT_PARSER_STORE_DIRECTORY_STORE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/store/byte_store.h"

namespace hlokit {

class DirectoryStore : public ByteStore {
 public:
  // Begin of the names of temporary files, which are no keys.
  static constexpr std::string_view kTemporaryPrefix = "tmp-";

  explicit DirectoryStore(StoreUrl url) : ByteStore(std::move(url)) {}

  // Creates the directory and those it is in.
  absl::Status Create() const;

  absl::StatusOr<std::string> Get(std::string_view key, uint64_t max_bytes, bool first_bytes = false) override;
  absl::Status Put(std::string_view key, std::string_view bytes) override;
  absl::StatusOr<bool> Exists(std::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) override;
  absl::Status Remove(std::string_view key) override;

  std::string PathOf(std::string_view key) const { return AddressOf(key); }
};

// Reads a regular file, `max_bytes` at most: a longer one is an error, or cut off there if `first_bytes`. Messages do
// not contain the path.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, uint64_t max_bytes, bool first_bytes = false);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_STORE_DIRECTORY_STORE_H_
