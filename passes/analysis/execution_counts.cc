// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/execution_counts.h"

#include <optional>

#include "ir/core/saturating.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/trip_count.h"

namespace hlokit {

ExecutionCounts CountExecutions(const Module& module, bool trip_counts) {
  const CallGraph calls(module);
  ExecutionCounts counts;
  counts.computations.resize(module.computation_id_bound());
  counts.computations[module.entry().id().value].times = 1;
  const absl::Span<const ComputationId> order = calls.PostOrder();
  for (size_t k = order.size(); k-- > 0;) {
    const ExecutionCounts::Of here = counts.computations[order[k].value];
    if (here.times == 0) continue;
    for (const CallSite& site : calls.callsites(module.computation(order[k]))) {
      if (site.context == CallContext::kEmbedded) continue;  // counted with the caller
      const Instruction caller = module.instruction(site.caller);
      int64_t times = here.times;
      if (trip_counts && caller.opcode() == Opcode::kWhile) {
        const std::optional<int64_t> known = TripCount(caller);
        const int64_t trip_count = known.value_or(1);
        const bool is_test = caller.computation_attr(Attr::kCondition).id() == site.callee;
        times = SaturatingMultiply(times, is_test ? SaturatingAdd(trip_count, 1) : trip_count);
        if (!known && !is_test) counts.uncounted.push_back(caller);
      }
      ExecutionCounts::Of& callee = counts.computations[site.callee.value];
      callee.times = SaturatingAdd(callee.times, times);
      callee.fused |= here.fused || site.context == CallContext::kFused;
    }
  }
  return counts;
}

}  // namespace hlokit
