// SPDX-License-Identifier: Apache-2.0
// The index behind every intern table: an open-addressing set of 32-bit ids with 32 bits of each hash. The table that
// owns the contents compares candidates. 8 bytes per slot, load factor at most 5/8 (power-of-two growth): most lookups
// of generated names miss, and misses are slow in a fuller table.
#ifndef HLOKIT_IR_CORE_INTERN_INDEX_H_
#define HLOKIT_IR_CORE_INTERN_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hlokit {

class InternIndex {
 public:
  // Returns the id whose contents `same(id)` accepts, or inserts `make()`'s id. The hash only determines the slot.
  template <typename Same, typename Make>
  uint32_t FindOrInsert(uint64_t hash, Same same, Make make) {
    if ((count_ + 1) * 8 > slots_.size() * 5) Grow();
    const uint32_t tag = static_cast<uint32_t>(hash >> 32);
    const size_t mask = slots_.size() - 1;
    for (size_t i = Start(tag, mask);; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.id == kEmpty) {
        slot.tag = tag;
        slot.id = make();
        ++count_;
        return slot.id;
      }
      if (slot.tag == tag && same(slot.id)) return slot.id;
    }
  }

  // Returns the id whose contents `same(id)` accepts, or 0xffffffff.
  template <typename Same>
  uint32_t Find(uint64_t hash, Same same) const {
    if (slots_.empty()) return kEmpty;
    const uint32_t tag = static_cast<uint32_t>(hash >> 32);
    const size_t mask = slots_.size() - 1;
    for (size_t i = Start(tag, mask);; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.id == kEmpty) return kEmpty;
      if (slot.tag == tag && same(slot.id)) return slot.id;
    }
  }

  // Prefetches the slot where a later lookup of `hash` starts, to hide a cache miss.
  void Prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[Start(static_cast<uint32_t>(hash >> 32), slots_.size() - 1)]);
  }

  void Reserve(size_t n) {
    size_t want = 16;
    while (want * 5 < n * 8) want *= 2;
    if (want > slots_.size()) Rehash(want);
  }

  size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  static constexpr uint32_t kEmpty = 0xffffffffu;
  struct Slot {
    uint32_t tag = 0;
    uint32_t id = kEmpty;
  };

  static constexpr size_t kNeighbors = 16;

  static size_t Start(uint32_t tag, size_t mask) {
    const size_t block = ((tag / kNeighbors) * size_t{0x9e3779b1u} >> 7) & (mask / kNeighbors);
    // If two families of names share a block, they begin at different slots of it.
    return block * kNeighbors + ((tag ^ tag >> 28) % kNeighbors);
  }

  void Grow() { Rehash(slots_.empty() ? 16 : slots_.size() * 2); }

  void Rehash(size_t size) {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(size, Slot{});
    const size_t mask = size - 1;
    for (const Slot& s : old) {
      if (s.id == kEmpty) continue;
      size_t i = Start(s.tag, mask);
      while (slots_[i].id != kEmpty) i = (i + 1) & mask;
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_INTERN_INDEX_H_
