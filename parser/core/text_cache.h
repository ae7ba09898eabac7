// SPDX-License-Identifier: Apache-2.0
// What a piece of text was read as, remembered by the text itself. Dumps repeat few shapes, lists and annotations very
// often, and comparing a text with the one before is a fraction of reading it.
//
// Each text has two places in the table, and a newcomer takes over the one whose text came earlier. So a table of fixed
// size serves texts of any length, and finding nothing costs two comparisons.
#ifndef HLOKIT_PARSER_CORE_TEXT_CACHE_H_
#define HLOKIT_PARSER_CORE_TEXT_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/core/hashing.h"

namespace hlokit {

// The texts belong to the caller and must outlive the cache. `Value` is small and trivially copyable.
template <typename Value, size_t kSlots>
class TextCache {
  static_assert(kSlots >= 2 && (kSlots & (kSlots - 1)) == 0, "the number of slots is a power of two");

 public:
  // What `text`, read as `kind`, was remembered as, until the next Set; null: not known. The same text may mean
  // different things, which the caller numbers.
  const Value* Find(std::string_view text, uint32_t kind) {
    Slot* const pair = PairOf(text, kind);
    for (Slot* slot = pair; slot != pair + 2; ++slot) {
      if (slot->size != text.size() || slot->kind != kind || slot->text == nullptr) continue;
      if (!SameBytes(slot->text, text.data(), text.size())) continue;
      // From now on its latest place is compared with, which is still in a cache of the processor.
      slot->text = text.data();
      return &slot->value;
    }
    return nullptr;
  }

  // `text` is not known as `kind`.
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
    // Long texts differ at their end, so that is what tells them apart.
    constexpr size_t kLong = 48;
    const std::string_view key = text.size() <= kLong ? text : text.substr(text.size() - kLong);
    const uint64_t hash = HashBytes(key) + kind * uint64_t{0x9e3779b97f4a7c15u};
    return &slots_[((hash ^ hash >> 32) & (kSlots / 2 - 1)) * 2];
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_CORE_TEXT_CACHE_H_
