// SPDX-License-Identifier: Apache-2.0
// The depth-first walk along calls that is behind each order in which callees come before callers. Iterative.
#ifndef HLOKIT_IR_GRAPH_CALL_WALK_H_
#define HLOKIT_IR_GRAPH_CALL_WALK_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"

namespace hlokit {

// `callee_at(ComputationId, uint32_t)`: the callee of this number of a computation; none behind the last. A callee may
// come more than once.
template <typename CalleeAt>
class CallWalk {
 public:
  struct Frame {
    ComputationId id;
    uint32_t next = 0;  // number of the callee to look at
  };

  CallWalk(size_t computation_id_bound, CalleeAt callee_at)
      : callee_at_(std::move(callee_at)), states_(computation_id_bound, kNew) {}

  // Calls `visit(ComputationId)` for `root` and each computation that it reaches, callees before callers. Those visited
  // before are left out.
  template <typename Visit>
  void From(ComputationId root, Visit visit) {
    From(root, visit, [](ComputationId) { return true; });
  }
  // The same; `on_cycle(callee)` says whether to go on where the last computation of path() calls one that is on it.
  // False if the walk ended so.
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

  // Returns the way from the root to the computation at hand; `next` of each is one behind the call that leads on.
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
