// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/heap_simulator.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "ir/core/saturating.h"

namespace hlokit::tpu {

int64_t HeapAllocator::Allocate(int64_t bytes) {
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->second < bytes) continue;
    const int64_t offset = block->first;
    const int64_t rest = block->second - bytes;
    free_.erase(block);
    if (rest > 0) free_[offset + bytes] = rest;
    return offset;
  }
  // Extends the last block if it is free.
  int64_t offset = size_;
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second == size_) {
      offset = last->first;
      free_.erase(last);
    }
  }
  size_ = SaturatingAdd(offset, bytes);
  return offset;
}

void HeapAllocator::Free(int64_t offset, int64_t bytes) {
  if (bytes <= 0) return;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && SaturatingAdd(offset, bytes) == next->first) {
    bytes = SaturatingAdd(bytes, next->second);
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second = SaturatingAdd(before->second, bytes);
      return;
    }
  }
  free_[offset] = bytes;
}

namespace {

constexpr size_t kMaxBySize = 4096;  // more buffers are assigned by time only

// Calls `visit(allocates, range)` in the order of the steps: what a step allocates, then what dies with it.
template <typename Visit>
void InOrder(const std::vector<LiveRange>& ranges, size_t steps, const Visit& visit) {
  std::vector<std::vector<size_t>> dies(steps);
  size_t next = 0;
  for (size_t s = 0; s < steps; ++s) {
    for (; next < ranges.size() && ranges[next].from == s; ++next) {
      if (ranges[next].bytes <= 0) continue;
      visit(true, next, s);
      if (ranges[next].to < steps) dies[ranges[next].to].push_back(next);
    }
    for (size_t range : dies[s]) visit(false, range, s);
  }
}

int64_t OffsetsByTime(size_t steps, std::vector<LiveRange>* ranges) {
  HeapAllocator heap;
  InOrder(*ranges, steps, [&](bool allocates, size_t k, size_t) {
    LiveRange& range = (*ranges)[k];
    if (allocates) {
      range.offset = heap.Allocate(range.bytes);
    } else {
      heap.Free(range.offset, range.bytes);
    }
  });
  return heap.size();
}

int64_t OffsetsBySize(std::vector<LiveRange>* ranges) {
  std::vector<size_t> order;
  for (size_t k = 0; k < ranges->size(); ++k) {
    if ((*ranges)[k].bytes > 0) order.push_back(k);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*ranges)[a].bytes > (*ranges)[b].bytes; });
  std::vector<size_t> by_offset;  // assigned ranges
  int64_t size = 0;
  for (size_t k : order) {
    LiveRange& range = (*ranges)[k];
    int64_t offset = 0;
    for (size_t other : by_offset) {
      const LiveRange& placed = (*ranges)[other];
      if (placed.to < range.from || range.to < placed.from) continue;
      if (placed.offset >= SaturatingAdd(offset, range.bytes)) break;
      offset = std::max(offset, SaturatingAdd(placed.offset, placed.bytes));
    }
    range.offset = offset;
    size = std::max(size, SaturatingAdd(offset, range.bytes));
    by_offset.insert(std::upper_bound(by_offset.begin(), by_offset.end(), offset,
                                      [&](int64_t at, size_t other) { return at < (*ranges)[other].offset; }),
                     k);
  }
  return size;
}

}  // namespace

int64_t AssignOffsets(size_t steps, int64_t peak, std::vector<LiveRange>* ranges) {
  const int64_t by_time = OffsetsByTime(steps, ranges);
  if (by_time <= peak || ranges->size() > kMaxBySize) return by_time;
  std::vector<LiveRange> other = *ranges;
  const int64_t by_size = OffsetsBySize(&other);
  if (by_size >= by_time) return by_time;
  *ranges = std::move(other);
  return by_size;
}

void VisitHeap(const MemoryPlan& memory, size_t steps, const std::function<void(const HeapEvent&)>& event) {
  InOrder(memory.live_ranges, steps, [&](bool allocates, size_t range, size_t step) {
    event({allocates, range, step});
  });
}

}  // namespace hlokit::tpu
