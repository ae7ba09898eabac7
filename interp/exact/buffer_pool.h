// SPDX-License-Identifier: Apache-2.0
// Memory of array values: reference-counted blocks from a pool with a byte budget.
//
// A block without references returns to a free list of its size class, so that loops which allocate the same arrays in
// every iteration neither call the system allocator nor touch fresh pages. Counts are not atomic: only the virtual
// machine's thread adds and drops references; kernel threads read and write bytes.
#ifndef HLOKIT_INTERP_EXACT_BUFFER_POOL_H_
#define HLOKIT_INTERP_EXACT_BUFFER_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace hlokit::interp {

class BufferPool;

// The header of a block; its bytes follow at data().
struct alignas(16) PoolBlock {
  uint32_t refs;
  uint32_t size_class;
  PoolBlock* next_free;

  // Blocks of at least kAlignedFrom bytes begin on a cache line, smaller ones right after the header.
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + header_bytes(size_class); }

  static constexpr int64_t kAlignedFrom = 256;
  static constexpr uint32_t kFirstAlignedClass = 6;
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
  PoolBlock* Allocate(int64_t bytes) {
    const uint32_t c = SizeClass(bytes);
    if (c < kClasses) {
      if (PoolBlock* b = free_[c]; b != nullptr && bytes_in_use_ + ClassBytes(c) <= max_bytes_) {
        free_[c] = b->next_free;
        bytes_free_ -= ClassBytes(c);
        bytes_in_use_ += ClassBytes(c);
        if (bytes_in_use_ > peak_bytes_) peak_bytes_ = bytes_in_use_;
        b->refs = 1;
        return b;
      }
    }
    return AllocateSlow(bytes, c);
  }

  // Drops one reference. Null is ignored.
  void Release(PoolBlock* b) {
    if (b == nullptr || --b->refs != 0) return;
    Free(b);
  }

  // Takes over the free blocks of another pool, and from then on keeps as many as were in use at one time. For pools of
  // runs of one program, one after the other.
  void TakeFreeBlocks(BufferPool* from);

  // Returns the size of the block that Allocate takes for `bytes`, at least 0 and at most 2^50.
  static int64_t BlockBytes(int64_t bytes) { return ClassBytes(SizeClass(bytes)); }

  int64_t bytes_in_use() const { return bytes_in_use_; }
  int64_t peak_bytes() const { return peak_bytes_; }
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

  PoolBlock* AllocateSlow(int64_t bytes, uint32_t size_class);
  void Free(PoolBlock* b);
  void DropFreeBlocks();

  int64_t max_bytes_;
  int64_t bytes_in_use_ = 0;
  int64_t bytes_free_ = 0;
  int64_t peak_bytes_ = 0;
  bool keeps_all_ = false;
  std::array<PoolBlock*, kClasses> free_{};
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUFFER_POOL_H_
