// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace hlokit::interp {

BufferPool::~BufferPool() { DropFreeBlocks(); }

PoolBlock* BufferPool::AllocateSlow(int64_t bytes, uint32_t size_class) {
  if (bytes < 0 || bytes > max_bytes_ || size_class >= kClasses) return nullptr;
  const int64_t block = ClassBytes(size_class);
  if (block > max_bytes_ - bytes_in_use_) return nullptr;
  // Free blocks count against the budget: release them before the budget is exhausted.
  if (block > max_bytes_ - bytes_in_use_ - bytes_free_) DropFreeBlocks();
  const size_t total = static_cast<size_t>((PoolBlock::header_bytes(size_class) + block + 63) / 64 * 64);
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
  b->refs = 1;
  b->size_class = size_class;
  b->next_free = nullptr;
  bytes_in_use_ += block;
  peak_bytes_ = std::max(peak_bytes_, bytes_in_use_);
  return b;
}

void BufferPool::Free(PoolBlock* b) {
  const int64_t block = ClassBytes(b->size_class);
  bytes_in_use_ -= block;
  // Free blocks are limited to half of the peak, so that a shrinking program returns memory.
  if (!keeps_all_ && block > 4096 && bytes_free_ + block > peak_bytes_ / 2 + (int64_t{64} << 20)) {
    std::free(b);
    return;
  }
  b->next_free = free_[b->size_class];
  free_[b->size_class] = b;
  bytes_free_ += block;
}

void BufferPool::TakeFreeBlocks(BufferPool* from) {
  keeps_all_ = true;
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
