// SPDX-License-Identifier: Apache-2.0
// From pending tensors to values: the graph they need, its key, lowering or a cached program, execution.
#ifndef HLOKIT_TRACER_STEP_EXECUTOR_H_
#define HLOKIT_TRACER_STEP_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/runtime/cache/persistent_cache.h"
#include "ir/graph/module.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor.h"
#include "tracer/step/device_state.h"
#include "tracer/step/graph_cache.h"

namespace hlokit::lazy {

// A part of the graph, ready to be keyed, printed or lowered. Holds ids of the device's graph: only under its mutex.
struct PendingSubgraph {
  std::vector<NodeOutput> roots;
  std::vector<NodeId> order;                                   // post-order
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs;  // by parameter number
  std::vector<NodeId> input_nodes;                             // the first node of each
  std::vector<int64_t> donated;                                // parameter numbers
};

struct SubgraphOptions {
  bool force = false;  // a step or a print: in the key, as it decides what may be reused
  bool donate = false;
};

// The slice that computes `tensors`.
PendingSubgraph CollectSubgraph(DeviceState& device, absl::Span<TensorData* const> tensors,
                                const SubgraphOptions& options);
// The slice's key: the graph as words, in device.key_words().
absl::Span<const uint32_t> KeyOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options);
// The same in bytes that do not depend on the process, and their digest.
std::string ContentsOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options);
Digest HashOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options);
// The key under which the folder of programs has the slice's: the contents, and each setting that the program depends
// on under the name of its variable or flag.
runtime::CompilationCacheKey CompilationCacheKeyOf(DeviceState& device, const PendingSubgraph& slice,
                                                   const SubgraphOptions& options);
// The program of the slice, in a context of its own.
absl::StatusOr<std::unique_ptr<Module>> LowerSubgraph(DeviceState& device, const PendingSubgraph& slice,
                                                      std::string_view name);

// The execution of a slice: the program, and where its results will be, root by root.
struct LaunchResult {
  std::shared_ptr<CompiledGraph> program;
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> results;
};
// Runs the slice's program, compiling it if it is not known. Under the device's mutex, as what follows.
absl::StatusOr<LaunchResult> Launch(DeviceState& device, PendingSubgraph slice, const SubgraphOptions& options,
                                    SyncReason cause);
// Runs a known program on buffers of the caller's.
absl::StatusOr<std::vector<std::shared_ptr<runtime::DeviceBuffer>>> Replay(
    DeviceState& device, const std::shared_ptr<CompiledGraph>& program,
    std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs, SyncReason cause);
// Gives a tensor its computed value.
void Materialize(TensorData* data, std::shared_ptr<runtime::DeviceBuffer> buffer);
// The live tensors that are yet to be computed, oldest first.
std::vector<TensorData*> PendingTensors(DeviceState& device);

// A full step of the device.
absl::Status SyncLiveTensors(DeviceState& device, SyncReason cause, bool wait);
// Computes these tensors of the device for good, in one program that reuses no buffer; the rest stays pending.
absl::Status SyncTensors(DeviceState& device, absl::Span<const Tensor> tensors, bool wait);
// Starts what FetchTensor waits for.
absl::Status ComputeTensor(const Tensor& t);
// The value, the tensor being computed for good.
absl::StatusOr<Literal> FetchTensor(const Tensor& t);
// The value, the graph being kept.
absl::StatusOr<Literal> FetchWithoutMaterializing(const Tensor& t);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_EXECUTOR_H_
