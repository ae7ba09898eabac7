// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/shape_detector.h"

#include "ir/core/str_cat.h"
#include "tracer/step/device_state.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {

void ShapeDetector::Begin() {
  at_ = 0;
  fresh_ = false;
  failed_ = false;
}

absl::Status ShapeDetector::Add(DeviceState& device, uint32_t node) {
  const Graph& graph = device.graph();
  if (failed_ || graph.node(node).op == Op::constant) return absl::OkStatus();
  const std::string text = NodeString(device, node, /*places=*/true);
  // Which nodes the operands are counts too: by how long ago they were recorded.
  std::string key = NodeString(device, node, /*places=*/false);
  for (const IrRef& operand : graph.operands(node)) {
    const Op op = graph.node(operand.node).op;
    if (op != Op::device_data && op != Op::constant) StrAppend(&key, " ", node - operand.node, ".", operand.output);
  }
  if (const auto it = places_[at_].next.find(key); it != places_[at_].next.end()) {
    at_ = it->second;
    return absl::OkStatus();
  }
  // The first graph of all leaves nothing behind; any other does so at most once.
  if (!fresh_ && graphs_ >= max_graphs_) {
    failed_ = true;
    return TooMany(text);
  }
  fresh_ = true;
  const uint32_t id = static_cast<uint32_t>(places_.size());
  places_[at_].next.emplace(std::move(key), id);
  places_.push_back({text, {}, false});
  at_ = id;
  return absl::OkStatus();
}

absl::Status ShapeDetector::End() {
  if (failed_ || places_[at_].ends) return absl::OkStatus();
  if (graphs_ >= max_graphs_) {
    failed_ = true;
    return TooMany("");
  }
  places_[at_].ends = true;
  ++graphs_;
  return absl::OkStatus();
}

absl::Status ShapeDetector::TooMany(const std::string& got) const {
  std::string message = StrCat("Maximum number of different graphs allowed per function exceeded: ", max_graphs_, "\n");
  if (got.empty()) {
    StrAppend(&message, "Reached the end of the function at: ", places_[at_].text);
  } else {
    StrAppend(&message, "Got: ", got);
  }
  const auto& next = places_[at_].next;
  if (next.empty()) {
    StrAppend(&message, "\nExpected: the end of the function, after: ", places_[at_].text);
  } else if (next.size() == 1 && !places_[at_].ends) {
    StrAppend(&message, "\nExpected: ", places_[next.begin()->second].text);
  } else {
    StrAppend(&message, "\nExpected either of:");
    for (const auto& entry : next) StrAppend(&message, "\n  - ", places_[entry.second].text);
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace hlokit::lazy
