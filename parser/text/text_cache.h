// SPDX-License-Identifier: Apache-2.0
// Cache of parsed values by source text. Dumps repeat few shapes, lists and metadata very often, and comparing a text
// with an earlier one costs a fraction of parsing it.
//
// Each text has two slots in the table, and a new entry replaces the one whose text came earlier. A table of fixed size
// therefore serves texts of any length, and a miss costs two comparisons.
#ifndef HLOKIT_PARSER_TEXT_TEXT_CACHE_H_
#define HLOKIT_PARSER_TEXT_TEXT_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/core/hashing.h"

namespace hlokit {

// Texts are not owned and must outlive the cache. `Value` is small and trivially copyable.
template <typename Value, size_t kSlots>
class TextCache {
  static_assert(kSlots >= 2 && (kSlots & (kSlots - 1)) == 0, "the number of slots is a power of two");

 public:
  // Returns the value of `text` parsed as `kind`, valid until the next Set, or null. Kinds, numbered by the caller,
  // separate the uses of equal texts.
  const Value* Find(std::string_view text, uint32_t kind) {
    Slot* const pair = PairOf(text, kind);
    for (Slot* slot = pair; slot != pair + 2; ++slot) {
      if (slot->size != text.size() || slot->kind != kind || slot->text == nullptr) continue;
      if (!SameBytes(slot->text, text.data(), text.size())) continue;
      // Compare with the latest occurrence next time, which is still in the processor's cache.
      slot->text = text.data();
      return &slot->value;
    }
    return nullptr;
  }

  // Requires: `text` has no value of this `kind`.
  void Set(std::string_view text, uint32_t kind, Value value) {
    Slot* const pair = PairOf(text, kind);
    pair[1] = pair[0];
    pair[0] = {text.data(), static_cast<uint32_t>(text.size()), kind, value};
  }

 private:
  struct Slot {
    const char* text = nullptr;
    uint32_t size = 0;
    uint32_t kind = 0;
    Value value{};
  };

  Slot* PairOf(std::string_view text, uint32_t kind) {
    // Long texts differ at their end: hash that part.
    constexpr size_t kLong = 48;
    const std::string_view key = text.size() <= kLong ? text : text.substr(text.size() - kLong);
    const uint64_t hash = HashBytes(key) + kind * uint64_t{0x9e3779b97f4a7c15u};
    return &slots_[((hash ^ hash >> 32) & (kSlots / 2 - 1)) * 2];
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_TEXT_CACHE_H_
