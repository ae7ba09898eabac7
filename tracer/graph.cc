#include "tracer/graph.h"

namespace hlokit::lazy {

const std::vector<NodeId>& Graph::PostOrder(absl::Span<const IrRef> roots) {
  constexpr uint32_t kNew = 0xffffffffu;
  constexpr uint32_t kOpen = 0xfffffffeu;
  order_.clear();
  position_.assign(nodes_.size(), kNew);
  for (const IrRef& root : roots) {
    if (position_[root.node] != kNew) continue;
    stack_.push_back(root.node);
    while (!stack_.empty()) {
      const NodeId id = stack_.back();
      if (position_[id] == kNew) {
        position_[id] = kOpen;
        for (const IrRef& operand : operands(id)) {
          if (position_[operand.node] == kNew) stack_.push_back(operand.node);
        }
        continue;
      }
      stack_.pop_back();
      if (position_[id] != kOpen) continue;  // met by two users before it was emitted
      position_[id] = static_cast<uint32_t>(order_.size());
      order_.push_back(id);
    }
  }
  return order_;
}

}  // namespace hlokit::lazy
