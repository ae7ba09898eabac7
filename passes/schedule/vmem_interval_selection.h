// SPDX-License-Identifier: Apache-2.0
// Which arrays stay in vector memory from the instruction that makes them to their last use, where not all of them fit.
#ifndef HLOKIT_PASSES_SCHEDULE_VMEM_INTERVAL_SELECTION_H_
#define HLOKIT_PASSES_SCHEDULE_VMEM_INTERVAL_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace hlokit {

// An instruction of a computation, in the order in which they run.
struct ScheduleSlot {
  int64_t capacity = 0;         // bytes of vector memory for what stays meanwhile
  bool runs = false;            // takes time, as a parameter or another name for an array does not
  double compute_seconds = 0;   // the two go on beside each other
  double transfer_seconds = 0;  // to and from HBM, if nothing stays
};

// An array that may stay.
struct VmemInterval {
  struct SavedTransfer {
    int32_t slot = 0;
    double seconds = 0;  // of its transfers
  };
  int32_t from = 0;  // the places that make it and use it last
  int32_t to = 0;
  int64_t bytes = 0;
  std::vector<SavedTransfer> saved;  // where a transfer falls away
};

// Indices of those that stay, in the order in which they were taken. The shortest stays first, since most of them fit;
// which those are is counted in two ways, in instructions, and in those that take time, with the larger array first
// among equals. That by which the computation takes less time is chosen, the first if none does. Takes time in the sum
// of the stays' lengths.
std::vector<size_t> SelectVmemIntervals(absl::Span<const VmemInterval> stays, absl::Span<const ScheduleSlot> places);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_VMEM_INTERVAL_SELECTION_H_
