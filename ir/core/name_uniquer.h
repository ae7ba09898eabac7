// SPDX-License-Identifier: Apache-2.0
// Unique names, numbered as XLA numbers them: a name is a root and an optional number behind a dot ("add.5"). Asking
// for a taken name gives the root with the smallest number not yet given out. "add" and "add.0" are the same name, and
// so are "add.5" and "add.05"; what is handed out has no leading zeros.
//
// A taken name is a bit at its place in the string pool, so that adding the names of a module hashes nothing.
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
  // The pool must outlive this.
  explicit NameUniquer(StringPool* strings) : strings_(strings) {}

  // Marks a name as taken that is as GetUniqueName would give it.
  void Add(StringId name);

  // Returns `name` if it is free, else root.N; either way the result is taken afterwards.
  StringId GetUniqueName(std::string_view name);
  StringId GetUniqueName(StringId name);

 private:
  bool IsTaken(StringId name) const {
    const size_t word = name.value / 64;
    return word < taken_.size() && (taken_[word] >> (name.value % 64) & 1) != 0;
  }
  // "root.number", until the next call.
  std::string_view Numbered(std::string_view root, int64_t number);
  // Whether there is the root without a number, or with zero. `root_id`: none if there is no such string.
  bool IsRootTaken(std::string_view root, StringId root_id);
  // The root with the smallest number not yet given out; `numbered` is what zero looks like. `root_id` if it is known.
  // `root` is a string of the pool, or part of one.
  StringId TakeNext(std::string_view root, StringId root_id, bool numbered);

  StringPool* strings_;
  std::vector<uint64_t> taken_;                  // a bit for each name of the pool
  absl::flat_hash_map<uint32_t, int64_t> next_;  // by root: lower numbers have been given out
  std::vector<char> candidate_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_NAME_UNIQUER_H_
