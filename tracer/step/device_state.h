// SPDX-License-Identifier: Apache-2.0
// Tracing state of one device: the pending graph, interned data, live values, cached scalars, the seed.
#ifndef HLOKIT_TRACER_STEP_DEVICE_STATE_H_
#define HLOKIT_TRACER_STEP_DEVICE_STATE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/core/intern_index.h"
#include "ir/graph/context.h"
#include "runtime/client/client.h"
#include "tracer/graph/graph.h"
#include "tracer/graph/graph_fwd.h"
#include "tracer/graph/reentrant_mutex.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/dynamic_shape_detector.h"
#include "tracer/step/execution_log.h"
#include "tracer/step/graph_cache.h"

namespace hlokit::lazy {

class DeviceState {
 public:
  DeviceState(Tracer* tracer, runtime::Device* device);
  ~DeviceState();

  Tracer* tracer() const { return tracer_; }
  runtime::Device* device() const { return device_; }
  // Returns "CPU:0".
  std::string name() const;
  // Returns the shape of an array to upload. Thread-safe.
  Shape ArrayShape(ElementType type, absl::Span<const int64_t> dims);
  Shape ScalarShape(ElementType type) { return ArrayShape(type, {}); }

  // Returns the mutex, which the members below require.
  ReentrantMutex& mutex() { return mutex_; }
  Graph& graph() { return graph_; }
  Context& context() { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  ShapeTable& shapes() { return context_->shapes; }

  // Appends a node; its shape comes from the cache or from a trial lowering. Returns kNoNode after an error, which the
  // tracer has.
  NodeId AddNode(Op op, ListId attrs, absl::Span<const NodeOutput> operands);
  Shape ShapeOf(NodeOutput ref);
  // `sharding`: the arguments of a node of sharded data.
  NodeId AddDeviceData(std::shared_ptr<runtime::DeviceBuffer> buffer, Shape shape, ListId sharding = ListId());
  // Returns a number as an operand: a constant, or a cached parameter.
  NodeOutput ScalarNode(Scalar value, ElementType type);
  NodeOutput ConstantNode(Scalar value, ElementType type);
  // Returns the operand for a tensor's value.
  NodeOutput ValueOf(TensorData* data);
  Tensor NewTensor(NodeOutput ref) { return NewTensor(ref, ShapeOf(ref)); }
  Tensor NewTensor(NodeOutput ref, Shape shape);
  Tensor NewTensor(std::shared_ptr<runtime::DeviceBuffer> buffer, Shape shape);

  // Returns the seed of the next random op, derived from the last one.
  NodeOutput NextSeed();
  // Returns the value of the step's seed, uploaded on first use.
  const std::shared_ptr<runtime::DeviceBuffer>& SeedBuffer();
  // Returns the value of the step's seed if this step had a random op, else null.
  std::shared_ptr<runtime::DeviceBuffer> UsedSeedBuffer() const;
  void SetSeed(int64_t seed);
  // The seed of the next random op as a value, and a value to be used as it: draws are repeated by setting the seed
  // that they began with.
  Tensor RunningSeed();
  void SetRunningSeed(const Tensor& seed);
  // Returns the seed that the next step starts from.
  int64_t seed() const { return seed_; }
  void NextStepSeed();

  // Returns the token that orders the collectives of a step; reset at each step.
  Tensor CollectiveToken();
  void SetCollectiveToken(Tensor token) { collective_token_ = std::move(token); }

  void Register(TensorData* data);
  void Unregister(TensorData* data);
  // Moves a value to the end of the live list, in creation order.
  void MarkNewest(TensorData* data);
  // Returns the dead buffers since the last call, to be freed on the device's thread.
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> TakeDeadBuffers();
  std::vector<TensorData*> LiveTensors();
  // Counts of tensors, which any thread may read without the mutex.
  int64_t live_count() const { return live_count_.load(std::memory_order_relaxed); }
  int64_t created_count() const { return created_count_.load(std::memory_order_relaxed); }
  uint64_t next_id() const { return next_id_; }  // of the next tensor
  // Clears the graph if no live value refers to it.
  void ClearGraphIfUnused();

  GraphCache& cache() { return cache_; }
  std::vector<SourceFrame>& frames() { return frames_; }
  // Returns scratch space for the key of a graph lookup.
  std::vector<uint32_t>& key_words() { return key_words_; }
  // Steps marked so far.
  int64_t steps = 0;
  // Name of the compiled region or captured function being traced; may be empty.
  std::string graph_name;
  // While set, any execution is an error.
  bool forbid_execution = false;
  // Receives execution records; may be null.
  std::vector<ExecutionRecord>* listener = nullptr;
  // Observes every node; may be null.
  DynamicShapeDetector* dynamic_shape_detector = nullptr;

 private:
  struct ShapeEntry {
    uint32_t begin;  // of its key in shape_words_
    uint32_t size;
    ShapeId shape;
  };
  struct ScalarKey {
    ElementType type;
    uint64_t bits;
    friend bool operator==(const ScalarKey&, const ScalarKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const ScalarKey& k) {
      return H::combine(std::move(h), static_cast<int>(k.type), k.bits);
    }
  };
  void WarnOfPendingNodes();
  // Makes running_seed_ one of the current graph.
  void BeginSeed();
  // Returns an error if no further node may be recorded.
  absl::Status CheckLimits() const;
  // Sets the scope and the source line of a node that is recorded now, with options that ask for these.
  void SetSource(NodeRecord* node);
  // Returns the number of the current frame, from 1; 0: none.
  uint32_t CurrentFrameIndex();
  // Compacts live_.
  void Compact();
  absl::StatusOr<Shape> InferNode(Op op, ListId attrs, absl::Span<const NodeOutput> operands);

  Tracer* tracer_;
  runtime::Device* device_;
  ReentrantMutex mutex_;
  std::shared_ptr<Context> context_;
  const ListId no_attrs_;  // of a node without arguments
  Graph graph_;
  std::vector<SourceFrame> frames_;
  // Frames of C++ lines, by file (its address) and line.
  absl::flat_hash_map<std::pair<const char*, uint32_t>, uint32_t> location_frames_;

  // Shapes of nodes, by op, attributes, and the node shape and output number of each operand.
  std::vector<uint64_t> shape_words_;
  std::vector<ShapeEntry> shape_entries_;
  InternIndex shape_index_;
  std::vector<uint64_t> key_;  // scratch space for the node being added

  // Parameters for numbers: the 128 most recently used.
  struct CachedScalar {
    ScalarKey key;
    std::shared_ptr<runtime::DeviceBuffer> buffer;
    Shape shape;
  };
  using ScalarList = std::list<CachedScalar>;
  ScalarList scalars_;
  absl::flat_hash_map<ScalarKey, ScalarList::iterator> scalar_index_;
  // Most recent numbers in scalars_, and most recent constants: an optimizer uses the same few for every parameter.
  struct RecentScalar {
    Scalar::Kind kind;
    ElementType type = ElementType::kTuple;  // none
    uint64_t bits = 0;
    ScalarList::iterator place;
  };
  std::array<RecentScalar, 8> recent_scalars_;
  size_t next_scalar_ = 0;
  struct RecentConstant {
    Scalar::Kind kind;
    ElementType type = ElementType::kTuple;  // none
    uint64_t bits = 0;
    ListId attrs{};
    ShapeId shape{};
  };
  std::array<RecentConstant, 4> recent_constants_;
  size_t next_constant_ = 0;

  std::vector<uint32_t> key_words_;
  size_t warn_at_nodes_;  // pending nodes at the next warning
  const size_t max_nodes_;

  int64_t seed_ = 101;
  Tensor seed_tensor_;
  Tensor collective_token_;
  NodeOutput running_seed_;
  uint32_t running_seed_epoch_ = 0;

  // Oldest first, with null for dead values.
  std::vector<TensorData*> live_;
  std::atomic<int64_t> live_count_{0};  // written with the mutex
  std::atomic<int64_t> created_count_{0};
  uint64_t next_id_ = 1;
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> dropped_;
  size_t dropped_bytes_ = 0;
  GraphCache cache_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_DEVICE_STATE_H_
