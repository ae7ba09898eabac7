// SPDX-License-Identifier: Apache-2.0
// Assigns addresses in a heap in HBM: first by time, each buffer in the first free block that is large enough, returned
// after its last use; if that needs more than the peak of live bytes, by size, largest first, each at the lowest
// address that is free during its live range. Heap bytes in excess of the peak of live bytes are fragmentation.
#ifndef HLOKIT_SIMULATOR_MEMORY_HEAP_SIMULATOR_H_
#define HLOKIT_SIMULATOR_MEMORY_HEAP_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "simulator/memory/memory_plan.h"

namespace hlokit::tpu {

class HeapAllocator {
 public:
  // Returns the offset of a new block. Requires: `bytes` > 0.
  int64_t Allocate(int64_t bytes);
  void Free(int64_t offset, int64_t bytes);
  // Returns the highest end of any block so far.
  int64_t size() const { return size_; }

 private:
  std::map<int64_t, int64_t> free_;  // size by offset
  int64_t size_ = 0;
};

struct HeapEvent {
  bool allocates = true;  // false: frees
  size_t live_range = 0;  // index into MemoryPlan::live_ranges
  size_t step = 0;        // index into the entry's plan
};

// Sets the offsets of `ranges`, sorted by `from`, in a heap. `peak`: their peak of live bytes. Returns the heap size.
int64_t AssignOffsets(size_t steps, int64_t peak, std::vector<LiveRange>* ranges);

// Calls `event` for each allocation and free of the heap in the order of its `steps` steps. Buffers without bytes have
// none.
void VisitHeap(const MemoryPlan& memory, size_t steps, const std::function<void(const HeapEvent&)>& event);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_MEMORY_HEAP_SIMULATOR_H_
