// SPDX-License-Identifier: Apache-2.0
// Memory of a program's large blocks: one range of addresses from which blocks are taken by best fit, so that the pages
// that are ever touched are few more than the blocks that are live at one time.
#ifndef HLOKIT_INTERP_EXACT_MEMORY_MEMORY_ARENA_H_
#define HLOKIT_INTERP_EXACT_MEMORY_MEMORY_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"

namespace hlokit::interp {

class MemoryArena {
 public:
  // Reserves addresses for blocks of `max_bytes` at one time. Returns null if the system has none.
  static std::unique_ptr<MemoryArena> Create(int64_t max_bytes);
  ~MemoryArena();
  MemoryArena(const MemoryArena&) = delete;
  MemoryArena& operator=(const MemoryArena&) = delete;

  static constexpr int64_t Rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  // Returns memory aligned to 64 with undefined contents; null if the addresses are used up. Requires: bytes > 0.
  std::byte* Allocate(int64_t bytes);
  // Returns the memory at this offset, a multiple of 64; null if it is not free.
  std::byte* AllocateAt(int64_t offset, int64_t bytes);
  // `bytes` as in Allocate.
  void Free(std::byte* memory, int64_t bytes);
  bool Contains(const std::byte* memory) const { return memory >= begin_ && memory < begin_ + reserved_; }

  // End of the memory that was ever in use.
  int64_t high_water() const { return high_water_; }
  // Returns the pages that are free to the system.
  void ReleasePages();
  // Returns those that are free beyond the offset, unless they are few.
  void ReleaseBeyond(int64_t offset);

 private:
  MemoryArena(std::byte* begin, int64_t reserved) : begin_(begin), reserved_(reserved) {}
  void RemoveExtent(int64_t offset, int64_t bytes);
  void AddExtent(int64_t offset, int64_t bytes);

  std::byte* const begin_;
  const int64_t reserved_;
  int64_t end_ = 0;  // all beyond is free
  int64_t high_water_ = 0;
  absl::btree_map<int64_t, int64_t> by_offset_;  // free extents before end_: bytes by offset
  absl::btree_set<std::pair<int64_t, int64_t>> by_size_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MEMORY_MEMORY_ARENA_H_
