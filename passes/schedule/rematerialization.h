// SPDX-License-Identifier: Apache-2.0
// Computing a value a second time instead of keeping it, where a schedule needs more memory than there is.
#ifndef HLOKIT_PASSES_SCHEDULE_REMATERIALIZATION_H_
#define HLOKIT_PASSES_SCHEDULE_REMATERIALIZATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

struct RematerializationCounts {
  int64_t instructions = 0;  // computed again
  int64_t peak_before = 0;   // bytes, as MemoryAnalysis has them
  int64_t peak_after = 0;
};

// While the schedule needs more than `limit_bytes` at its peak: takes a value that is alive there, is not used there
// and is used later, and computes it again before that use. Of those the one that saves most bytes for what computing
// it reads and counts. A value qualifies if it has no effect, calls nothing but what a fusion holds, and its operands
// are alive at the later use anyway or take less than half of what it saves. Products and convolutions count their
// operations like others and so come last. What was computed again once is not again. Modules without a schedule are
// left alone.
//
// Each round looks at the module once and there are at most 64 of them, each mending the peak of one computation.
absl::StatusOr<RematerializationCounts> Rematerialize(Module& module, int64_t limit_bytes);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_REMATERIALIZATION_H_
