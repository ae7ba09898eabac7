// SPDX-License-Identifier: Apache-2.0
// Memory of array values: reference-counted blocks from a pool with a byte budget.
//
// A block without references returns to a free list of its size class, or to the arena of large blocks, so that loops
// which allocate the same arrays in every iteration neither call the system allocator nor touch fresh pages. Counts are
// not atomic: only the virtual machine's thread adds and drops references; kernel threads read and write bytes.
#ifndef HLOKIT_INTERP_EXACT_MEMORY_BUFFER_POOL_H_
#define HLOKIT_INTERP_EXACT_MEMORY_BUFFER_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interp/exact/memory/memory_arena.h"

namespace hlokit::interp {

class BufferPool;

// The header of a block; its bytes follow at data().
struct alignas(16) PoolBlock {
  uint32_t refs;
  uint32_t size_class;
  union {
    PoolBlock* next_free;
    int64_t bytes;  // that were asked for, while it is in use
  };

  // Blocks of at least kAlignedFrom bytes begin on a cache line, smaller ones right after the header.
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + header_bytes(size_class); }

  static constexpr int64_t kAlignedFrom = 256;
  static constexpr uint32_t kFirstAlignedClass = 6;
  // The size class of a block that stands for memory outside of the pool: an argument, a result.
  static constexpr uint32_t kOutside = 0xffffffffu;
  static constexpr uint32_t kInArena = 0xfffffffeu;
  bool is_outside() const { return size_class == kOutside; }
  static constexpr int64_t header_bytes(uint32_t size_class) { return size_class < kFirstAlignedClass ? 16 : 64; }
};
static_assert(sizeof(PoolBlock) == 16);

class BufferPool {
 public:
  // `max_bytes`: limit of the blocks in use at one time.
  explicit BufferPool(int64_t max_bytes) : max_bytes_(max_bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // Returns a block of at least `bytes` with one reference and undefined contents; null if the budget or the system
  // memory is exhausted.
  // `offset`: where a large block should lie in the arena, if that is free; -1: anywhere.
  PoolBlock* Allocate(int64_t bytes, int64_t offset = -1) {
    if (bytes >= kArenaFrom) return AllocateLarge(bytes, offset);
    const uint32_t c = SizeClass(bytes);
    if (c < kClasses) {
      if (PoolBlock* b = free_[c]; b != nullptr && bytes_in_use_ + ClassBytes(c) <= max_bytes_) {
        free_[c] = b->next_free;
        bytes_free_ -= ClassBytes(c);
        bytes_in_use_ += ClassBytes(c);
        if (bytes_in_use_ > peak_bytes_) peak_bytes_ = bytes_in_use_;
        b->refs = 1;
        b->bytes = bytes;
        LimitAccess(b, bytes);
        live_bytes_ += bytes;
        if (live_bytes_ > peak_live_bytes_) peak_live_bytes_ = live_bytes_;
        return b;
      }
    }
    return AllocateSlow(bytes, c);
  }

  // Returns a block for `bytes` bytes of memory outside of the pool, which count as in use; null as Allocate.
  PoolBlock* AllocateOutside(int64_t bytes);

  // Returns memory of the arena beyond the offset that is free to the system.
  void ReleaseArenaBeyond(int64_t offset) {
    if (arena_ != nullptr) arena_->ReleaseBeyond(offset);
  }

  // Drops one reference. Null is ignored.
  void Release(PoolBlock* b) {
    if (b == nullptr || --b->refs != 0) return;
    Free(b);
  }

  // Takes over the free blocks and the arena of another pool, and from then on keeps as many as were in use at one
  // time. For pools of runs of one program, one after the other.
  void TakeFreeBlocks(BufferPool* from);

  // Returns the size of the block that Allocate takes for `bytes`, at least 0 and at most 2^50.
  int64_t BlockBytes(int64_t bytes) const {
    return bytes >= kArenaFrom && arena_ != nullptr ? MemoryArena::Rounded(bytes) : ClassBytes(SizeClass(bytes));
  }

  // Returns true if blocks of this size lie in the arena, and the bytes that they take there.
  static bool IsPlaced(int64_t bytes) { return bytes >= kArenaFrom; }
  static int64_t PlacedBytes(int64_t bytes) {
    return MemoryArena::Rounded(PoolBlock::header_bytes(PoolBlock::kInArena) + bytes);
  }

  int64_t bytes_in_use() const { return bytes_in_use_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  // The most bytes that were asked for and in use at one time; the most memory that was taken from the system for them,
  // and how often it was.
  int64_t peak_live_bytes() const { return peak_live_bytes_; }
  int64_t peak_held_bytes() const { return peak_held_bytes_; }
  int64_t system_allocations() const { return system_allocations_; }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  // Size classes: 16, 32, 64, 128, 192, 240, then four sizes for each power of two from 256 bytes.
  static constexpr uint32_t kClasses = PoolBlock::kFirstAlignedClass + 4 * 40;

  static uint32_t SizeClass(int64_t bytes) {
    if (bytes <= 64) return bytes <= 16 ? 0 : bytes <= 32 ? 1 : 2;
    if (bytes <= 240) return bytes <= 128 ? 3 : bytes <= 192 ? 4 : 5;
    if (bytes <= PoolBlock::kAlignedFrom) return PoolBlock::kFirstAlignedClass;
    const int log = 63 - __builtin_clzll(static_cast<uint64_t>(bytes - 1));  // 2^log < bytes <= 2^(log+1), log >= 8
    const uint32_t quarter = static_cast<uint32_t>((static_cast<uint64_t>(bytes - 1) >> (log - 2)) & 3);
    return PoolBlock::kFirstAlignedClass + static_cast<uint32_t>(log - 8) * 4 + quarter + 1;
  }
  static int64_t ClassBytes(uint32_t c) {
    constexpr int64_t kSmall[] = {16, 32, 64, 128, 192, 240};
    if (c < PoolBlock::kFirstAlignedClass) return kSmall[c];
    if (c == PoolBlock::kFirstAlignedClass) return PoolBlock::kAlignedFrom;
    const uint32_t i = c - PoolBlock::kFirstAlignedClass - 1;
    return (int64_t{64} << (i / 4)) * (5 + i % 4);
  }

  static constexpr int64_t kArenaFrom = 64 << 10;  // bytes

  // With the address sanitizer, lets no one access more than the first `bytes` bytes of a block outside of the arena.
#if defined(__SANITIZE_ADDRESS__)
  static void LimitAccess(PoolBlock* b, int64_t bytes);
#else
  static void LimitAccess(PoolBlock* /*b*/, int64_t /*bytes*/) {}
#endif
  // Bytes of a block with its header.
  static size_t TotalBytes(uint32_t size_class) {
    return static_cast<size_t>((PoolBlock::header_bytes(size_class) + ClassBytes(size_class) + 63) / 64 * 64);
  }

  PoolBlock* AllocateSlow(int64_t bytes, uint32_t size_class);
  PoolBlock* AllocateLarge(int64_t bytes, int64_t offset);
  // Counts a block that is in use from now on, of `block` bytes.
  void BeginUse(PoolBlock* b, int64_t bytes, int64_t block);
  void Free(PoolBlock* b);
  void DropFreeBlocks();

  int64_t max_bytes_;
  int64_t bytes_in_use_ = 0;
  int64_t bytes_free_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t large_in_use_ = 0;  // of bytes_in_use_
  int64_t live_bytes_ = 0;
  int64_t peak_live_bytes_ = 0;
  int64_t peak_held_bytes_ = 0;
  int64_t system_allocations_ = 0;
  bool keeps_all_ = false;
  std::unique_ptr<MemoryArena> arena_;
  bool has_no_arena_ = false;  // the system gave no addresses
  std::array<PoolBlock*, kClasses> free_{};
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MEMORY_BUFFER_POOL_H_
