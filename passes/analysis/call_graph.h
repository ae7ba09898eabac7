// SPDX-License-Identifier: Apache-2.0
// Who calls whom, and in which order computations can be handled so that each one's callees are done before it.
#ifndef HLOKIT_PASSES_ANALYSIS_CALL_GRAPH_H_
#define HLOKIT_PASSES_ANALYSIS_CALL_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// How a callee runs.
enum class CallContext : uint8_t {
  kControlFlow,  // call, while, conditional, async-start: its instructions run one by one on whole arrays
  kFused,        // fusion: as one kernel
  kEmbedded,     // to elements: reduce, map, sort, scatter, custom-call, ...
};

struct CallSite {
  InstructionId caller;
  ComputationId callee;
  CallContext context;
};

class CallGraph {
 public:
  explicit CallGraph(const Module& module);

  // All computations, callees before callers; those on a cycle of calls, which verified modules have not, in any order.
  absl::Span<const ComputationId> PostOrder() const { return order_; }
  // In the order of the computation's instructions and their attributes.
  absl::Span<const CallSite> callsites(Computation caller) const;
  // In the order of the module.
  absl::Span<const CallSite> caller_callsites(Computation callee) const {
    const uint32_t begin = caller_begin_[callee.id().value];
    return absl::MakeConstSpan(callers_).subspan(begin, caller_begin_[callee.id().value + 1] - begin);
  }
  // Called from sequential code only, or the entry: its instructions are what a schedule orders.
  bool IsSequential(Computation computation) const { return sequential_[computation.id().value] != 0; }
  // Reached from the entry.
  bool IsLive(Computation computation) const { return live_[computation.id().value] != 0; }

 private:
  std::vector<ComputationId> order_;
  std::vector<CallSite> sites_;       // by caller
  std::vector<uint32_t> site_begin_;  // by ComputationId
  std::vector<uint32_t> site_end_;
  std::vector<CallSite> callers_;       // by callee
  std::vector<uint32_t> caller_begin_;  // by ComputationId
  std::vector<uint8_t> sequential_;
  std::vector<uint8_t> live_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_CALL_GRAPH_H_
