// SPDX-License-Identifier: Apache-2.0
// Rematerialization: recomputes values before a late use if the schedule exceeds the memory limit.
#ifndef HLOKIT_PASSES_SCHEDULE_REMATERIALIZATION_H_
#define HLOKIT_PASSES_SCHEDULE_REMATERIALIZATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"
#include "passes/remarks/remark.h"

namespace hlokit {

struct RematerializationCounts {
  int64_t instructions = 0;  // number of rematerialized instructions
  int64_t peak_before = 0;   // in bytes, as in MemoryAnalysis
  int64_t peak_after = 0;
};

// Reduces the peak memory of the schedule to `limit_bytes` as far as possible. A candidate is live at the peak, has no
// use there and a use later, before which it is recomputed. The candidate with the lowest recomputation cost per saved
// byte, in bytes accessed and flops, goes first; matmuls and convolutions therefore come last. It must have no side
// effect and no callee but a fusion body, and its operands must be live at the later use or take less than half of the
// saved bytes. A value is rematerialized once. Modules without a schedule do not change.
//
// At most 64 rounds, each of which reduces the highest peaks of one computation and then analyzes it again. `remarks`:
// gets the decisions; null: nobody.
absl::StatusOr<RematerializationCounts> Rematerialize(Module& module, int64_t limit_bytes,
                                                      RemarkCollector* remarks = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_REMATERIALIZATION_H_
