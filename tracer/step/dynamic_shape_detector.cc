// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/dynamic_shape_detector.h"

#include "ir/core/str_cat.h"
#include "tracer/step/device_state.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {

void DynamicShapeDetector::Begin() {
  at_ = 0;
  fresh_ = false;
  failed_ = false;
}

absl::Status DynamicShapeDetector::Add(DeviceState& device, uint32_t node) {
  const Graph& graph = device.graph();
  if (failed_ || graph.node(node).op == Op::constant) return absl::OkStatus();
  const std::string text = NodeString(device, node, /*places=*/true);
  // Operands are identified by their distance in recording order.
  std::string key = NodeString(device, node, /*places=*/false);
  for (const NodeOutput& operand : graph.operands(node)) {
    const Op op = graph.node(operand.node).op;
    if (op != Op::device_data && op != Op::constant) StrAppend(&key, " ", node - operand.node, ".", operand.output);
  }
  if (const auto it = nodes_[at_].next.find(key); it != nodes_[at_].next.end()) {
    at_ = it->second;
    return absl::OkStatus();
  }
  // Nodes of new graphs beyond the limit are not added to the trie.
  if (!fresh_ && graphs_ >= max_graphs_) {
    failed_ = true;
    return TooMany(text);
  }
  fresh_ = true;
  const uint32_t id = static_cast<uint32_t>(nodes_.size());
  nodes_[at_].next.emplace(std::move(key), id);
  nodes_.push_back({text, {}, false});
  at_ = id;
  return absl::OkStatus();
}

absl::Status DynamicShapeDetector::End() {
  if (failed_ || nodes_[at_].ends) return absl::OkStatus();
  if (graphs_ >= max_graphs_) {
    failed_ = true;
    return TooMany("");
  }
  nodes_[at_].ends = true;
  ++graphs_;
  return absl::OkStatus();
}

absl::Status DynamicShapeDetector::TooMany(const std::string& got) const {
  std::string message = StrCat("Maximum number of different graphs allowed per function exceeded: ", max_graphs_, "\n");
  if (got.empty()) {
    StrAppend(&message, "Reached the end of the function at: ", nodes_[at_].text);
  } else {
    StrAppend(&message, "Got: ", got);
  }
  const auto& next = nodes_[at_].next;
  if (next.empty()) {
    StrAppend(&message, "\nExpected: the end of the function, after: ", nodes_[at_].text);
  } else if (next.size() == 1 && !nodes_[at_].ends) {
    StrAppend(&message, "\nExpected: ", nodes_[next.begin()->second].text);
  } else {
    StrAppend(&message, "\nExpected either of:");
    for (const auto& entry : next) StrAppend(&message, "\n  - ", nodes_[entry.second].text);
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace hlokit::lazy
