// SPDX-License-Identifier: Apache-2.0
// Lazy graphs as text and DOT, in PyTorch/XLA's form:
//
//   IR {
//     %0 = f32[2]{0} xla::device_data(), xla_shape=f32[2]{0}, device=CPU:0
//     %1 = f32[2]{0} aten::relu(%0), xla_shape=f32[2]{0}, ROOT=0
//   }
#ifndef HLOKIT_TRACER_TEXT_IR_TEXT_H_
#define HLOKIT_TRACER_TEXT_IR_TEXT_H_

#include <string>

#include "absl/types/span.h"
#include "tracer/graph/tensor.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

struct IrTextOptions {
  // Omits op attributes, like PyTorch/XLA since 2.2.
  bool torch_xla_quirks = false;
  // Shows which leaves are the same parameter, and which are donated.
  bool parameters = true;
};

std::string GraphToString(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options = {});
std::string GraphDot(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options = {});

// Returns one node as in PyTorch/XLA's messages: "[] aten::add, xla_shape=f32[5]{0}, dynamic_dims: ()" and its
// attributes. `places`: with scope and location if the node has them.
std::string NodeString(DeviceState& device, NodeId id, bool places);

// Returns the graph that the tensors depend on.
std::string TensorsToString(absl::Span<const Tensor> tensors, const IrTextOptions& options = {});
std::string TensorsDot(absl::Span<const Tensor> tensors, const IrTextOptions& options = {});
// Collects the subgraph of the tensors; skips undefined ones.
PendingSubgraph CollectSubgraphOfTensors(absl::Span<const Tensor> tensors, const SubgraphOptions& options = {});

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_IR_TEXT_H_
