// SPDX-License-Identifier: Apache-2.0
// Where buffers that come and go lie in HBM: each takes the first free block that is large enough when it is made, and
// gives it back after its last use. What the heap takes beyond the bytes that are alive at their peak is fragmentation.
#ifndef HLOKIT_INTERP_TPU_MEMORY_HEAP_SIMULATOR_H_
#define HLOKIT_INTERP_TPU_MEMORY_HEAP_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "interp/tpu/memory/memory_plan.h"

namespace hlokit::tpu {

class HeapAllocator {
 public:
  // Gives the offset. `bytes` above 0.
  int64_t Allocate(int64_t bytes);
  void Free(int64_t offset, int64_t bytes);
  // Highest end of a block so far.
  int64_t size() const { return size_; }

 private:
  std::map<int64_t, int64_t> free_;  // size by offset
  int64_t size_ = 0;
};

struct HeapEvent {
  bool allocates = true;  // or frees
  size_t live_range = 0;  // index into the plan's lives
  size_t step = 0;        // of the entry's plan
  int64_t offset = 0;
};

// Calls `event` for each buffer of `memory` that is made or freed, in the order of `steps` steps; the size of the heap.
int64_t SimulateHeap(const MemoryPlan& memory, size_t steps, const std::function<void(const HeapEvent&)>& event);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_MEMORY_HEAP_SIMULATOR_H_
