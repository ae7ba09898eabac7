// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/graph.h"

namespace hlokit::lazy {

const std::vector<NodeId>& Graph::PostOrder(absl::Span<const NodeOutput> roots) {
  constexpr uint32_t kNew = 0xffffffffu;
  constexpr uint32_t kOpen = 0xfffffffeu;
  position_.assign(nodes_.size(), kNew);
  // Each node is emitted once, and each operand of a node is pushed at most once.
  order_.resize(nodes_.size());
  if (stack_.size() <= operands_.size()) stack_.resize(operands_.size() + 1);
  uint32_t* const position = position_.data();
  NodeId* const bottom = stack_.data();
  NodeId* top = bottom;
  uint32_t count = 0;
  for (const NodeOutput& root : roots) {
    if (position[root.node] != kNew) continue;
    *top++ = root.node;
    while (top != bottom) {
      const NodeId id = top[-1];
      if (position[id] == kNew) {
        position[id] = kOpen;
        for (const NodeOutput& operand : operands(id)) {
          if (position[operand.node] == kNew) *top++ = operand.node;
        }
        continue;
      }
      --top;
      if (position[id] != kOpen) continue;  // reached from two users before it was emitted
      position[id] = count;
      order_[count++] = id;
    }
  }
  order_.resize(count);
  return order_;
}

}  // namespace hlokit::lazy
