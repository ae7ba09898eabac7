// SPDX-License-Identifier: Apache-2.0
// Depth-first traversal of the call graph: the basis of all orders with callees before callers. Iterative.
#ifndef HLOKIT_IR_GRAPH_CALL_WALK_H_
#define HLOKIT_IR_GRAPH_CALL_WALK_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"

namespace hlokit {

// `callee_at(ComputationId, uint32_t)` returns the callee of a computation by index, an invalid id after the last.
// Callees may repeat.
template <typename CalleeAt>
class CallWalk {
 public:
  struct Frame {
    ComputationId id;
    uint32_t next = 0;  // index of the next callee
  };

  CallWalk(size_t computation_id_bound, CalleeAt callee_at)
      : callee_at_(std::move(callee_at)), states_(computation_id_bound, kNew) {}

  // Calls `visit(ComputationId)` for `root` and each reachable computation, callees before callers, except those
  // visited before.
  template <typename Visit>
  void From(ComputationId root, Visit visit) {
    From(root, visit, [](ComputationId) { return true; });
  }
  // As above, with cycles: when the last computation of path() calls one on the path, `on_cycle(callee)` returns
  // whether to continue. Returns false if the traversal stopped.
  template <typename Visit, typename OnCycle>
  bool From(ComputationId root, Visit visit, OnCycle on_cycle) {
    if (states_[root.value] != kNew) return true;
    Open(root);
    while (!path_.empty()) {
      Frame& top = path_.back();
      const ComputationId callee = callee_at_(top.id, top.next++);
      if (!callee.valid()) {
        states_[top.id.value] = kDone;
        visit(top.id);
        path_.pop_back();
      } else if (states_[callee.value] == kNew) {
        Open(callee);
      } else if (states_[callee.value] == kOpen && !on_cycle(callee)) {
        return false;
      }
    }
    return true;
  }

  // Returns the path from the root to the current computation; `next` of each frame is one past the call that continues
  // the path.
  absl::Span<const Frame> path() const { return path_; }

 private:
  enum State : uint8_t { kNew, kOpen, kDone };

  void Open(ComputationId id) {
    states_[id.value] = kOpen;
    path_.push_back({id});
  }

  CalleeAt callee_at_;
  std::vector<State> states_;  // by ComputationId
  std::vector<Frame> path_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_CALL_WALK_H_
