// SPDX-License-Identifier: Apache-2.0
// Selects the arrays that are in VMEM for their whole live interval, if VMEM cannot hold all of them.
#ifndef HLOKIT_PASSES_SCHEDULE_VMEM_INTERVAL_SELECTION_H_
#define HLOKIT_PASSES_SCHEDULE_VMEM_INTERVAL_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace hlokit {

// A position of the schedule.
struct ScheduleSlot {
  int64_t capacity = 0;         // bytes of VMEM available to intervals
  bool runs = false;            // generates code, unlike parameters and aliases
  double compute_seconds = 0;   // overlaps with the transfers
  double transfer_seconds = 0;  // to and from HBM, without intervals in VMEM
};

// A live interval that may be allocated in VMEM.
struct VmemInterval {
  struct SavedTransfer {
    int32_t slot = 0;
    double seconds = 0;  // of its transfers
  };
  int32_t from = 0;  // positions of the definition and the last use
  int32_t to = 0;
  int64_t bytes = 0;
  std::vector<SavedTransfer> saved;  // transfers that the interval saves
};

// Returns the indices of the selected intervals, in the order of selection. The shortest interval goes first, since
// most of those fit; length is counted both in instructions and in instructions that generate code, with larger arrays
// first among equals. The count that yields the shorter computation wins, the first if equal. Linear in the total
// length of the intervals.
std::vector<size_t> SelectVmemIntervals(absl::Span<const VmemInterval> intervals, absl::Span<const ScheduleSlot> slots);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_VMEM_INTERVAL_SELECTION_H_
