// SPDX-License-Identifier: Apache-2.0
// Remarks on a schedule: whether asynchronous operations are hidden behind the instructions between start and done.
#ifndef HLOKIT_PASSES_SCHEDULE_OVERLAP_REMARKS_H_
#define HLOKIT_PASSES_SCHEDULE_OVERLAP_REMARKS_H_

#include "absl/types/span.h"
#include "ir/graph/module_fwd.h"
#include "passes/core/pass.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// `latencies`: by InstructionId, as of ScheduleOptions. Requires: the module has a schedule.
void AddOverlapRemarks(const Module& module, absl::Span<const Latency> latencies, RemarkCollector* collector);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_OVERLAP_REMARKS_H_
