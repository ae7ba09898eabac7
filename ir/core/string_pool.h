// SPDX-License-Identifier: Apache-2.0
// Interned strings. The bytes are either copied into the pool's arena or belong to a buffer that lives as long as the
// pool (the source text of a module), in which case nothing is copied.
#ifndef HLOKIT_IR_CORE_STRING_POOL_H_
#define HLOKIT_IR_CORE_STRING_POOL_H_

#include <cstdint>
#include <string_view>

#include "ir/core/arena.h"
#include "ir/core/hashing.h"
#include "ir/core/ids.h"
#include "ir/core/intern_index.h"
#include "ir/core/record_array.h"

namespace hlokit {

class StringPool {
 public:
  explicit StringPool(Arena* arena) : arena_(arena) { Intern(""); }

  // Returns the id of `s`, copying `s` if it is new. Strings are at most 4 GiB.
  StringId Intern(std::string_view s) {
    return StringId(index_.FindOrInsert(
        Hash(s), [&](uint32_t id) { return Is(id, s); }, [&] { return Add(arena_->CopyString(s)); }));
  }

  // As Intern, but keeps a reference to the caller's bytes, which must outlive the pool.
  StringId InternStable(std::string_view s) {
    return StringId(index_.FindOrInsert(
        Hash(s), [&](uint32_t id) { return Is(id, s); }, [&] { return Add(s); }));
  }

  // Returns the id of `s`, or an invalid id if it was never interned.
  StringId Find(std::string_view s) const {
    return StringId(index_.Find(Hash(s), [&](uint32_t id) { return Is(id, s); }));
  }

  std::string_view operator[](StringId id) const { return id.valid() ? Get(id.value) : std::string_view(); }

  size_t size() const { return entries_.size(); }
  void Reserve(size_t n) {
    entries_.reserve(n);
    index_.Reserve(n);
  }
  // Releases memory reserved for growth.
  void ShrinkToFit() { entries_.shrink_to_fit(); }

 private:
  struct Entry {
    const char* data;
    uint32_t size;
  } __attribute__((packed, aligned(4)));  // 12 bytes: names are the most numerous objects of a module

  // Strings that differ in their last character are neighbors in the index.
  static uint64_t Hash(std::string_view s) {
    if (s.empty()) return 0;
    const uint64_t h = HashBytes(s.data(), s.size() - 1);
    return (h & ~(uint64_t{15} << 32)) | uint64_t{static_cast<unsigned char>(s.back()) & 15u} << 32;
  }
  std::string_view Get(uint32_t id) const {
    const Entry& e = entries_[id];
    return {e.data, e.size};
  }
  bool Is(uint32_t id, std::string_view s) const {
    const Entry& e = entries_[id];
    return e.size == s.size() && SameBytes(e.data, s.data(), s.size());
  }
  uint32_t Add(std::string_view s) {
    entries_.push_back({s.data(), static_cast<uint32_t>(s.size())});
    return static_cast<uint32_t>(entries_.size() - 1);
  }

  Arena* arena_;
  RecordArray<Entry> entries_;
  InternIndex index_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_STRING_POOL_H_
