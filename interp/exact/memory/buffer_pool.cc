// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/memory/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace hlokit::interp {

BufferPool::~BufferPool() { DropFreeBlocks(); }

PoolBlock* BufferPool::AllocateSlow(int64_t bytes, uint32_t size_class) {
  if (bytes < 0 || bytes > max_bytes_ || size_class >= kClasses) return nullptr;
  const int64_t block = ClassBytes(size_class);
  if (block > max_bytes_ - bytes_in_use_) return nullptr;
  // Free blocks count against the budget: release them before the budget is exhausted.
  if (block > max_bytes_ - bytes_in_use_ - bytes_free_) DropFreeBlocks();
  const size_t total = TotalBytes(size_class);
  // Pages of 2 MiB take a third of the time of small ones to be touched first.
  constexpr size_t kHugePage = size_t{2} << 20;
  void* memory;
  if (total >= 2 * kHugePage) {
    const size_t pages = (total + kHugePage - 1) / kHugePage * kHugePage;
    memory = std::aligned_alloc(kHugePage, pages);
    if (memory != nullptr) madvise(memory, pages, MADV_HUGEPAGE);
  } else {
    memory = std::aligned_alloc(64, total);
  }
  if (memory == nullptr) return nullptr;
  PoolBlock* b = static_cast<PoolBlock*>(memory);
  ++system_allocations_;
  b->size_class = size_class;
  LimitAccess(b, bytes);
  BeginUse(b, bytes, block);
  return b;
}

#if defined(__SANITIZE_ADDRESS__)
void BufferPool::LimitAccess(PoolBlock* b, int64_t bytes) {
  const size_t total = TotalBytes(b->size_class);
  std::byte* const begin = reinterpret_cast<std::byte*>(b);
  __asan_unpoison_memory_region(begin, total);
  __asan_poison_memory_region(b->data() + bytes, static_cast<size_t>(begin + total - (b->data() + bytes)));
}
#endif

void BufferPool::BeginUse(PoolBlock* b, int64_t bytes, int64_t block) {
  b->refs = 1;
  b->bytes = bytes;
  bytes_in_use_ += block;
  peak_bytes_ = std::max(peak_bytes_, bytes_in_use_);
  live_bytes_ += bytes;
  peak_live_bytes_ = std::max(peak_live_bytes_, live_bytes_);
  const int64_t large = arena_ == nullptr ? large_in_use_ : arena_->high_water();
  peak_held_bytes_ = std::max(peak_held_bytes_, large + bytes_in_use_ - large_in_use_ + bytes_free_);
}

PoolBlock* BufferPool::AllocateLarge(int64_t bytes, int64_t offset) {
#if defined(__SANITIZE_ADDRESS__)
  // Blocks of the system's allocator have boundaries that are checked.
  has_no_arena_ = true;
#endif
  if (arena_ == nullptr && keeps_all_ && !has_no_arena_) {
    arena_ = MemoryArena::Create(max_bytes_);
    has_no_arena_ = arena_ == nullptr;
    if (arena_ != nullptr) ++system_allocations_;
  }
  if (arena_ == nullptr) {
    const uint32_t c = SizeClass(bytes);
    PoolBlock* const b = c < kClasses ? free_[c] : nullptr;
    if (b == nullptr || ClassBytes(c) > max_bytes_ - bytes_in_use_) return AllocateSlow(bytes, c);
    free_[c] = b->next_free;
    bytes_free_ -= ClassBytes(c);
    LimitAccess(b, bytes);
    BeginUse(b, bytes, ClassBytes(c));
    return b;
  }
  if (bytes > max_bytes_) return nullptr;
  const int64_t block = MemoryArena::Rounded(bytes);
  if (block > max_bytes_ - bytes_in_use_) return nullptr;
  const int64_t before = arena_->high_water();
  const int64_t placed = PlacedBytes(bytes);
  std::byte* memory = offset < 0 ? nullptr : arena_->AllocateAt(offset, placed);
  if (memory == nullptr) memory = arena_->Allocate(placed);
  if (memory == nullptr) return nullptr;
  if (arena_->high_water() > before) {
    ++system_allocations_;
    // The pages between blocks count against the budget.
    if (arena_->high_water() - large_in_use_ - block > max_bytes_ - bytes_in_use_ - block) arena_->ReleasePages();
  }
  PoolBlock* const b = reinterpret_cast<PoolBlock*>(memory);
  b->size_class = PoolBlock::kInArena;
  large_in_use_ += block;
  BeginUse(b, bytes, block);
  return b;
}

PoolBlock* BufferPool::AllocateOutside(int64_t bytes) {
  if (bytes < 0 || bytes > max_bytes_ - bytes_in_use_) return nullptr;
  if (bytes > max_bytes_ - bytes_in_use_ - bytes_free_) DropFreeBlocks();
  PoolBlock* const b = static_cast<PoolBlock*>(std::malloc(sizeof(PoolBlock)));
  if (b == nullptr) return nullptr;
  b->size_class = PoolBlock::kOutside;
  BeginUse(b, bytes, bytes);
  return b;
}

void BufferPool::Free(PoolBlock* b) {
  live_bytes_ -= b->bytes;
  if (b->is_outside()) {
    bytes_in_use_ -= b->bytes;
    std::free(b);
    return;
  }
  if (b->size_class == PoolBlock::kInArena) {
    const int64_t rounded = MemoryArena::Rounded(b->bytes);
    bytes_in_use_ -= rounded;
    large_in_use_ -= rounded;
    arena_->Free(reinterpret_cast<std::byte*>(b), PlacedBytes(b->bytes));
    return;
  }
  const int64_t block = ClassBytes(b->size_class);
  bytes_in_use_ -= block;
  // Free blocks are limited to half of the peak, so that a shrinking program returns memory.
  if (!keeps_all_ && block > 4096 && bytes_free_ + block > peak_bytes_ / 2 + (int64_t{64} << 20)) {
    std::free(b);
    return;
  }
  LimitAccess(b, 0);
  b->next_free = free_[b->size_class];
  free_[b->size_class] = b;
  bytes_free_ += block;
}

void BufferPool::TakeFreeBlocks(BufferPool* from) {
  keeps_all_ = true;
  if (from->arena_ != nullptr && from->large_in_use_ == 0 && arena_ == nullptr) arena_ = std::move(from->arena_);
  for (uint32_t c = 0; c < kClasses; ++c) {
    while (PoolBlock* const block = from->free_[c]) {
      from->free_[c] = block->next_free;
      block->next_free = free_[c];
      free_[c] = block;
    }
  }
  bytes_free_ += std::exchange(from->bytes_free_, 0);
}

void BufferPool::DropFreeBlocks() {
  for (PoolBlock*& head : free_) {
    while (head != nullptr) {
      PoolBlock* next = head->next_free;
      std::free(head);
      head = next;
    }
  }
  bytes_free_ = 0;
}

}  // namespace hlokit::interp
