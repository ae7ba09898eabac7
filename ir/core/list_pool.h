// SPDX-License-Identifier: Apache-2.0
// Interned lists of int64: dimensions, slice ranges, windows, computation lists, shardings, ... Every structured
// attribute is stored as one list in a fixed encoding (see attribute.h), so equal attributes have equal ids, and
// hashing, cloning and comparing need no code per attribute.
#ifndef HLOKIT_IR_CORE_LIST_POOL_H_
#define HLOKIT_IR_CORE_LIST_POOL_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/arena.h"
#include "ir/core/hashing.h"
#include "ir/core/ids.h"
#include "ir/core/intern_index.h"

namespace hlokit {

class ListPool {
 public:
  explicit ListPool(Arena* arena) : arena_(arena) { Intern({}); }

  ListId Intern(absl::Span<const int64_t> list) {
    const size_t bytes = list.size() * sizeof(int64_t);
    return ListId(index_.FindOrInsert(
        HashBytes(list.data(), bytes),
        [&](uint32_t id) {
          const Entry& e = entries_[id];
          return e.size == list.size() && (bytes == 0 || std::memcmp(e.data, list.data(), bytes) == 0);
        },
        [&] {
          entries_.push_back({arena_->CopyArray(list.data(), list.size()), list.size()});
          return static_cast<uint32_t>(entries_.size() - 1);
        }));
  }

  absl::Span<const int64_t> operator[](ListId id) const {
    if (!id.valid()) return {};
    return {entries_[id.value].data, entries_[id.value].size};
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    const int64_t* data;
    size_t size;
  };
  Arena* arena_;
  std::vector<Entry> entries_;
  InternIndex index_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_LIST_POOL_H_
