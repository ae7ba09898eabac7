// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/memory/memory_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace hlokit::interp {
namespace {

// Pages of 2 MiB take a third of the time of small ones to be touched first; the first ones are small, for programs
// with little data.
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kSmallPages = int64_t{4} << 20;
constexpr int64_t kPage = 4096;

}  // namespace

std::unique_ptr<MemoryArena> MemoryArena::Create(int64_t max_bytes) {
  // Fragments between blocks need addresses too. Addresses alone cost nothing.
  constexpr int64_t kMaxReserved = int64_t{1} << 42;
  const int64_t reserved = (std::min(max_bytes, kMaxReserved / 2) * 2 + kSmallPages) / kHugePage * kHugePage;
  void* const memory = mmap(nullptr, static_cast<size_t>(reserved + kHugePage), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Aligned to a large page; what precedes and follows goes back.
  std::byte* const mapped = static_cast<std::byte*>(memory);
  const int64_t before =
      (kHugePage - static_cast<int64_t>(reinterpret_cast<uintptr_t>(mapped) % kHugePage)) % kHugePage;
  if (before != 0) munmap(mapped, static_cast<size_t>(before));
  std::byte* const begin = mapped + before;
  if (before != kHugePage) munmap(begin + reserved, static_cast<size_t>(kHugePage - before));
  madvise(begin, kSmallPages, MADV_NOHUGEPAGE);  // hints
  if (reserved > kSmallPages) {
    madvise(begin + kSmallPages, static_cast<size_t>(reserved - kSmallPages), MADV_HUGEPAGE);
  }
  return std::unique_ptr<MemoryArena>(new MemoryArena(begin, reserved));
}

MemoryArena::~MemoryArena() { munmap(begin_, static_cast<size_t>(reserved_)); }

void MemoryArena::RemoveExtent(int64_t offset, int64_t bytes) {
  by_offset_.erase(offset);
  by_size_.erase({bytes, offset});
}

void MemoryArena::AddExtent(int64_t offset, int64_t bytes) {
  by_offset_[offset] = bytes;
  by_size_.insert({bytes, offset});
}

std::byte* MemoryArena::Allocate(int64_t bytes) {
  bytes = Rounded(bytes);
  int64_t offset;
  if (const auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end()) {
    const auto [extent, at] = *fit;
    RemoveExtent(at, extent);
    if (extent > bytes) AddExtent(at + bytes, extent - bytes);
    offset = at;
  } else {
    if (bytes > reserved_ - end_) return nullptr;
    offset = end_;
    end_ += bytes;
  }
  high_water_ = std::max(high_water_, offset + bytes);
  return begin_ + offset;
}

std::byte* MemoryArena::AllocateAt(int64_t offset, int64_t bytes) {
  bytes = Rounded(bytes);
  if (offset >= end_) {
    if (offset > reserved_ || bytes > reserved_ - offset) return nullptr;
    if (offset > end_) AddExtent(end_, offset - end_);
    end_ = offset + bytes;
  } else {
    auto extent = by_offset_.upper_bound(offset);
    if (extent == by_offset_.begin()) return nullptr;
    const auto [begin, size] = *std::prev(extent);
    if (offset + bytes > begin + size) return nullptr;
    RemoveExtent(begin, size);
    if (offset > begin) AddExtent(begin, offset - begin);
    if (begin + size > offset + bytes) AddExtent(offset + bytes, begin + size - offset - bytes);
  }
  high_water_ = std::max(high_water_, end_);
  return begin_ + offset;
}

void MemoryArena::Free(std::byte* memory, int64_t bytes) {
  bytes = Rounded(bytes);
  int64_t offset = memory - begin_;
  const auto after = by_offset_.lower_bound(offset);
  const int64_t next = after == by_offset_.end() ? -1 : after->first;
  const int64_t next_bytes = after == by_offset_.end() ? 0 : after->second;
  int64_t previous = -1, previous_bytes = 0;
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    previous = before->first;
    previous_bytes = before->second;
  }
  if (next == offset + bytes) {
    RemoveExtent(next, next_bytes);
    bytes += next_bytes;
  }
  if (previous >= 0 && previous + previous_bytes == offset) {
    RemoveExtent(previous, previous_bytes);
    offset = previous;
    bytes += previous_bytes;
  }
  if (offset + bytes == end_) {
    end_ = offset;
  } else {
    AddExtent(offset, bytes);
  }
}

void MemoryArena::ReleasePages() {
  const auto release = [&](int64_t begin, int64_t end) {
    begin = (begin + kPage - 1) / kPage * kPage;
    end = end / kPage * kPage;
    if (begin < end) madvise(begin_ + begin, static_cast<size_t>(end - begin), MADV_DONTNEED);
  };
  for (const auto& [offset, bytes] : by_offset_) release(offset, offset + bytes);
  release(end_, (high_water_ + kPage - 1) / kPage * kPage);
  high_water_ = end_;
}

void MemoryArena::ReleaseBeyond(int64_t offset) {
  const int64_t begin = (std::max(offset, end_) + kHugePage - 1) / kHugePage * kHugePage;
  const int64_t end = (high_water_ + kPage - 1) / kPage * kPage;
  if (end - begin < kHugePage) return;
  madvise(begin_ + begin, static_cast<size_t>(end - begin), MADV_DONTNEED);
  high_water_ = begin;
}

}  // namespace hlokit::interp
