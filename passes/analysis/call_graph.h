// SPDX-License-Identifier: Apache-2.0
// Call graph: call sites, and an order of the computations with callees first.
#ifndef HLOKIT_PASSES_ANALYSIS_CALL_GRAPH_H_
#define HLOKIT_PASSES_ANALYSIS_CALL_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// How a callee runs.
enum class CallContext : uint8_t {
  kControlFlow,  // call, while, conditional, async-start: instruction by instruction on whole arrays
  kFused,        // fusion: as one kernel
  kEmbedded,     // applied to elements: reduce, map, sort, scatter, custom-call, ...
};

struct CallSite {
  InstructionId caller;
  ComputationId callee;
  CallContext context;
};

class CallGraph {
 public:
  explicit CallGraph(const Module& module);

  // Returns all computations, callees before callers; those on a cycle, which valid modules do not have, in any order.
  absl::Span<const ComputationId> PostOrder() const { return order_; }
  // Returns the call sites in the order of the instructions and their attributes.
  absl::Span<const CallSite> callsites(Computation caller) const;
  // Returns the call sites in module order.
  absl::Span<const CallSite> caller_callsites(Computation callee) const {
    const uint32_t begin = caller_begin_[callee.id().value];
    return absl::MakeConstSpan(callers_).subspan(begin, caller_begin_[callee.id().value + 1] - begin);
  }
  // Returns true for the entry and for computations called only from sequential code: a schedule orders their
  // instructions.
  bool IsSequential(Computation computation) const { return sequential_[computation.id().value] != 0; }
  // Returns true if the computation is reachable from the entry.
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
