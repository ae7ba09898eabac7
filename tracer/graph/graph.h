// SPDX-License-Identifier: Apache-2.0
// The lazy IR of one device: nodes with 32-bit ids in an append-only array. When no tensor refers to a node, the graph
// is cleared and its epoch increases, so that stale references are detected.
#ifndef HLOKIT_TRACER_GRAPH_GRAPH_H_
#define HLOKIT_TRACER_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/types/shape.h"
#include "runtime/client/device_buffer.h"
#include "tracer/graph/op.h"

namespace hlokit::lazy {

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0xffffffffu;

// One output of a node.
struct NodeOutput {
  NodeId node = kNoNode;
  uint32_t output = 0;

  bool valid() const { return node != kNoNode; }
  friend bool operator==(NodeOutput a, NodeOutput b) { return a.node == b.node && a.output == b.output; }
};

struct NodeRecord {
  Op op;
  uint16_t operand_count = 0;
  uint32_t operand_begin = 0;
  ListId attrs{};      // encoded arguments (encoded_args.h)
  ShapeId shape{};     // a tuple if the node has several outputs
  uint32_t leaf = 0;   // device data: index of its buffer
  uint32_t scope = 0;  // StringId of "A.1/B.2"; 0: none
  uint32_t frame = 0;  // index into the frame table from 1; 0: none
};
static_assert(sizeof(NodeRecord) == 28, "nodes are small and flat");

class Graph {
 public:
  const NodeRecord& node(NodeId id) const { return nodes_[id]; }
  NodeRecord& node(NodeId id) { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }
  uint32_t epoch() const { return epoch_; }
  size_t operand_count() const { return operands_.size(); }  // of all nodes
  // Returns the memory of the pending nodes.
  size_t bytes() const {
    return nodes_.size() * sizeof(NodeRecord) + operands_.size() * sizeof(NodeOutput) +
           leaves_.size() * sizeof(std::shared_ptr<runtime::DeviceBuffer>);
  }

  absl::Span<const NodeOutput> operands(NodeId id) const {
    const NodeRecord& n = nodes_[id];
    return {operands_.data() + n.operand_begin, n.operand_count};
  }
  const std::shared_ptr<runtime::DeviceBuffer>& leaf(NodeId id) const { return leaves_[nodes_[id].leaf]; }

  NodeId Add(NodeRecord record, absl::Span<const NodeOutput> operands) {
    record.operand_begin = static_cast<uint32_t>(operands_.size());
    record.operand_count = static_cast<uint16_t>(operands.size());
    for (const NodeOutput& operand : operands) operands_.push_back(operand);
    nodes_.push_back(record);
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  NodeId AddLeaf(NodeRecord record, std::shared_ptr<runtime::DeviceBuffer> buffer) {
    record.leaf = static_cast<uint32_t>(leaves_.size());
    leaves_.push_back(std::move(buffer));
    return Add(record, {});
  }
  void Clear() {
    nodes_.clear();
    operands_.clear();
    leaves_.clear();
    ++epoch_;
  }

  // Returns the nodes that the roots depend on, operands before users. Traverses with an explicit stack in
  // PyTorch/XLA's order: visiting a node pushes all its operands, so that the last one is emitted first.
  const std::vector<NodeId>& PostOrder(absl::Span<const NodeOutput> roots);
  // Returns the position of a node in the last post-order.
  uint32_t Position(NodeId id) const { return position_[id]; }

 private:
  std::vector<NodeRecord> nodes_;
  std::vector<NodeOutput> operands_;
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> leaves_;
  uint32_t epoch_ = 1;

  // Scratch space of PostOrder.
  std::vector<NodeId> order_;
  std::vector<NodeId> stack_;       // capacity for all nodes that can be pending
  std::vector<uint32_t> position_;  // by node: position + 1 in order_, or a mark
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_GRAPH_H_
