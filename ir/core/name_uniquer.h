// SPDX-License-Identifier: Apache-2.0
// Unique names with XLA's numbering: a name is a root and an optional number after a dot ("add.5"). A request for a
// taken name yields the root with the smallest number not yet returned. "add" and "add.0" are the same name, and so are
// "add.5" and "add.05"; returned names have no leading zeros.
//
// A taken name is a bit indexed by its string id, so that adding the names of a module hashes nothing.
#ifndef HLOKIT_IR_CORE_NAME_UNIQUER_H_
#define HLOKIT_IR_CORE_NAME_UNIQUER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/ids.h"
#include "ir/core/string_pool.h"

namespace hlokit {

class NameUniquer {
 public:
  // Not owned; must outlive this object.
  explicit NameUniquer(StringPool* strings) : strings_(strings) {}

  // Marks a name as taken. Requires: the name is canonical, as returned by GetUniqueName.
  void Add(StringId name);

  // Returns `name` if it is free, else root.N, and marks the result as taken.
  StringId GetUniqueName(std::string_view name);
  StringId GetUniqueName(StringId name);

 private:
  bool IsTaken(StringId name) const {
    const size_t word = name.value / 64;
    return word < taken_.size() && (taken_[word] >> (name.value % 64) & 1) != 0;
  }
  // Returns "root.number", valid until the next call.
  std::string_view Numbered(std::string_view root, int64_t number);
  // Returns true if the root without a number, or with zero, is taken. `root_id` is invalid if there is no such string.
  bool IsRootTaken(std::string_view root, StringId root_id);
  // Returns the root with the smallest number not yet returned; `numbered`: zero is "root.0". `root_id` if it is known.
  // `root` is a string of the pool, or a prefix of one.
  StringId TakeNext(std::string_view root, StringId root_id, bool numbered);

  StringPool* strings_;
  std::vector<uint64_t> taken_;                  // a bit for each string of the pool
  absl::flat_hash_map<uint32_t, int64_t> next_;  // by root: lower numbers are used up
  std::vector<char> candidate_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_NAME_UNIQUER_H_
