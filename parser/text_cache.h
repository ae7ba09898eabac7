// What a piece of text was read as, remembered by the text itself. Dumps repeat few shapes, lists and annotations very
// often, and comparing a text with the one before is a fraction of reading it.
//
// Each text has one place in the table; a newcomer takes it over. So a table of fixed size serves texts of any length,
// and finding nothing costs one comparison.
#ifndef HLOKIT_PARSER_TEXT_CACHE_H_
#define HLOKIT_PARSER_TEXT_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/hashing.h"

namespace hlokit {

// The texts belong to the caller and must outlive the cache. `Value` is small and trivially copyable.
template <typename Value, size_t kSlots>
class TextCache {
  static_assert((kSlots & (kSlots - 1)) == 0, "the number of slots is a power of two");

 public:
  struct Slot {
    const char* text = nullptr;
    uint32_t size = 0;
    uint32_t kind = 0;
    Value value{};

    // If so, it is the text's latest place that is remembered: comparing with that reads what was read not long ago.
    bool Holds(std::string_view other, uint32_t other_kind) {
      if (size != other.size() || kind != other_kind || text == nullptr || !SameBytes(text, other.data(), size)) {
        return false;
      }
      text = other.data();
      return true;
    }
    void Set(std::string_view new_text, uint32_t new_kind, Value new_value) {
      *this = {new_text.data(), static_cast<uint32_t>(new_text.size()), new_kind, new_value};
    }
  };

  // The only place where `text`, read as `kind`, can be: the same text may mean different things.
  Slot& At(std::string_view text, uint32_t kind) {
    return slots_[Fold(HashBytes(KeyBytes(text)) + kind * uint64_t{0x9e3779b97f4a7c15u}) & (kSlots - 1)];
  }

 private:
  // Long texts differ at their end, so that is what tells them apart.
  static std::string_view KeyBytes(std::string_view text) {
    constexpr size_t kLong = 48;
    return text.size() <= kLong ? text : text.substr(text.size() - kLong);
  }
  static size_t Fold(uint64_t hash) { return static_cast<size_t>(hash ^ hash >> 32); }

  std::array<Slot, kSlots> slots_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_CACHE_H_
