// SPDX-License-Identifier: Apache-2.0
// A directory as a byte store: a key is the path of a file below it, written to a temporary file there and renamed.
//
// A private one holds what will be executed. It is opened once, and everything in it is reached through that
// descriptor; each directory and file is checked when it is opened (private_directory.h): PermissionDenied, if another
// user can change it.
#ifndef HLOKIT_IO_STORES_DIRECTORY_STORE_H_
#define HLOKIT_IO_STORES_DIRECTORY_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "io/stores/byte_store.h"
#include "io/stores/private_directory.h"

namespace hlokit {

class DirectoryStore : public ByteStore {
 public:
  // Begin of the names of temporary files, which are no keys.
  static constexpr std::string_view kTemporaryPrefix = "tmp-";

  explicit DirectoryStore(StoreUrl url) : ByteStore(std::move(url)) {}
  // Opens a private directory, and creates it if `create`. Errors are those of OpenPrivateDirectory.
  static absl::StatusOr<std::unique_ptr<DirectoryStore>> OpenPrivate(StoreUrl url, bool create);

  // Creates the directory and those it is in.
  absl::Status Create() const;

  absl::StatusOr<std::string> Get(std::string_view key, uint64_t max_bytes, bool first_bytes = false) override;
  absl::Status Put(std::string_view key, std::string_view bytes) override;
  absl::StatusOr<bool> Exists(std::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) override;
  absl::Status Remove(std::string_view key) override;

  std::string PathOf(std::string_view key) const { return AddressOf(key); }

  // Makes a file the youngest.
  void Touch(std::string_view key);
  // Returns the bytes of the files in the directory that holds this one.
  int64_t BytesBeside(std::string_view key);
  // Removes the oldest files until those that are left, in the directories of this one, have `max_bytes` at most; and
  // temporary files of writers that died. One process does so at a time: removals by several would be too many.
  void Evict(int64_t max_bytes);

 private:
  // A file of the store, to be opened by name in a directory.
  struct Place {
    FileDescriptor directory;  // not open: the name is a path
    std::string name;
    int at() const;
  };
  struct File {
    std::string directory;  // in the store; empty: the store itself
    std::string name;
    int64_t size = 0;
    int64_t time_ns = 0;  // of its last change
  };

  // Of the process that evicts.
  static constexpr char kLock[] = "evicting";

  // Finds the place of a file, and creates its directory if `create`.
  absl::StatusOr<Place> Locate(std::string_view key, bool create) const;
  FileDescriptor OpenRoot() const;
  // Calls `visit` for each file in the store and in its directories, or in this one `only`, which hold no further ones.
  void ForEachFile(const std::string& only, absl::FunctionRef<void(int directory, const File& file)> visit) const;

  FileDescriptor private_root_;  // not open: paths are used
};

// Reads a regular file, `max_bytes` at most: a longer one is an error, or cut off there if `first_bytes`. Messages do
// not contain the path.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, uint64_t max_bytes, bool first_bytes = false);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_DIRECTORY_STORE_H_
