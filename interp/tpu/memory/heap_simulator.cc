// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/memory/heap_simulator.h"

#include <iterator>
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

int64_t SimulateHeap(const MemoryPlan& memory, size_t steps, const std::function<void(const HeapEvent&)>& event) {
  HeapAllocator heap;
  std::vector<std::vector<size_t>> dies(steps);
  std::vector<int64_t> offsets(memory.live_ranges.size(), 0);
  size_t next = 0;
  for (size_t s = 0; s < steps; ++s) {
    const auto free_dead = [&] {
      for (size_t life : dies[s]) {
        event({false, life, s, offsets[life]});
        heap.Free(offsets[life], memory.live_ranges[life].bytes);
      }
      dies[s].clear();
    };
    for (; next < memory.live_ranges.size() && memory.live_ranges[next].from == s; ++next) {
      const LiveRange& life = memory.live_ranges[next];
      if (life.bytes <= 0) continue;
      if (life.in_place) free_dead();
      offsets[next] = heap.Allocate(life.bytes);
      event({true, next, s, offsets[next]});
      if (life.to < steps) dies[life.to].push_back(next);
    }
    free_dead();
  }
  return heap.size();
}

}  // namespace hlokit::tpu
