// SPDX-License-Identifier: Apache-2.0
// Computes pending tensors: collects the graph they depend on and its key, lowers it or finds a cached program,
// executes.
#ifndef HLOKIT_TRACER_STEP_EXECUTOR_H_
#define HLOKIT_TRACER_STEP_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/cache/persistent_cache.h"
#include "ir/graph/module.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor.h"
#include "tracer/step/device_state.h"
#include "tracer/step/graph_cache.h"

namespace hlokit::lazy {

// A part of the graph to be keyed, printed or lowered. Contains ids of the device's graph, so that it requires the
// mutex.
struct PendingSubgraph {
  std::vector<NodeOutput> roots;
  std::vector<NodeId> order;                                   // post-order
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs;  // by parameter number
  std::vector<NodeId> input_nodes;                             // the first node of each
  std::vector<int64_t> donated;                                // parameter numbers
};

struct SubgraphOptions {
  bool force = false;  // a step or a print: part of the key, since it determines reuse
  bool donate = false;
};

// Collects the subgraph that computes `tensors`.
PendingSubgraph CollectSubgraph(DeviceState& device, absl::Span<TensorData* const> tensors,
                                const SubgraphOptions& options);
// Lowers the subgraph to a module with a context of its own.
absl::StatusOr<std::unique_ptr<Module>> LowerSubgraph(DeviceState& device, const PendingSubgraph& slice,
                                                      std::string_view name);

// The execution of a subgraph: the program and its pending results, by root.
struct LaunchResult {
  std::shared_ptr<CompiledGraph> program;
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> results;
};
// Runs the subgraph's program, compiling it if it is not cached. Launch and the functions below require the device's
// mutex.
absl::StatusOr<LaunchResult> Launch(DeviceState& device, PendingSubgraph slice, const SubgraphOptions& options,
                                    SyncReason cause);
// Runs a known program on the caller's buffers.
absl::StatusOr<std::vector<std::shared_ptr<runtime::DeviceBuffer>>> Replay(
    DeviceState& device, const std::shared_ptr<CompiledGraph>& program,
    std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs, SyncReason cause);
// Sets the computed value of a tensor.
void Materialize(TensorData* data, std::shared_ptr<runtime::DeviceBuffer> buffer);
// Returns the live tensors without a value, oldest first.
std::vector<TensorData*> PendingTensors(DeviceState& device);

// Executes a full step of the device.
absl::Status SyncLiveTensors(DeviceState& device, SyncReason cause, bool wait);
// Materializes these tensors of the device in one program without donation; others stay pending.
absl::Status SyncTensors(DeviceState& device, absl::Span<const Tensor> tensors, bool wait);
// Starts the computation that FetchTensor waits for.
absl::Status ComputeTensor(const Tensor& t);
// Returns the value and materializes the tensor.
absl::StatusOr<Literal> FetchTensor(const Tensor& t);
// Returns the value and keeps the graph.
absl::StatusOr<Literal> FetchWithoutMaterializing(const Tensor& t);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_EXECUTOR_H_
