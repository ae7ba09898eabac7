// The tracing side of one device: the pending graph, what is interned for it, live values, cached scalars, the seed.
#ifndef HLOKIT_TRACER_DEVICE_STATE_H_
#define HLOKIT_TRACER_DEVICE_STATE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "interp/runtime/client.h"
#include "ir/context.h"
#include "ir/intern_index.h"
#include "tracer/graph.h"
#include "tracer/graph_cache.h"
#include "tracer/tensor_impl.h"

namespace hlokit::lazy {

class Tracer;

struct Frame {
  std::string function;
  std::string file;
  int line = 0;
};

class DeviceState {
 public:
  DeviceState(Tracer* tracer, runtime::Device* device);
  ~DeviceState();

  Tracer* tracer() const { return tracer_; }
  runtime::Device* device() const { return device_; }
  // "CPU:0".
  std::string name() const;

  // What follows is under mutex().
  std::recursive_mutex& mutex() { return mutex_; }
  Graph& graph() { return graph_; }
  Context& context() { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  ShapeTable& shapes() { return context_->shapes; }

  // Appends a node; its shape comes from the cache or from a trial lowering. kNoNode after an error, which the tracer
  // has.
  NodeId AddNode(Op op, ListId attrs, absl::Span<const IrRef> operands);
  Shape ShapeOf(IrRef ref);
  NodeId AddDeviceData(std::shared_ptr<runtime::Buffer> buffer, Shape shape);
  // A number as an operand: a constant, or a cached parameter.
  IrRef ScalarNode(Scalar value, ElementType type);
  IrRef ConstantNode(Scalar value, ElementType type);
  // The operand that stands for a tensor's value.
  IrRef ValueOf(TensorData* data);
  Tensor NewTensor(IrRef ref);
  Tensor NewTensor(std::shared_ptr<runtime::Buffer> buffer, Shape shape);

  // The seed of the next random op, chained to the last one's.
  IrRef NextSeed();
  void SetSeed(int64_t seed);
  void NextStepSeed();

  // What orders collectives of a step; a step forgets it.
  Tensor CollectiveToken();
  void SetCollectiveToken(Tensor token) { collective_token_ = std::move(token); }

  void Register(TensorData* data);
  void Unregister(TensorData* data);
  std::vector<TensorData*> LiveTensors();
  int64_t live_count() const { return live_count_; }
  // Empties the graph if no live value refers to it.
  void TrimGraph();

  GraphCache& cache() { return cache_; }
  std::vector<Frame>& frames() { return frames_; }

 private:
  struct ShapeEntry {
    uint32_t begin;
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
  absl::StatusOr<Shape> InferNode(Op op, ListId attrs, absl::Span<const IrRef> operands);

  Tracer* tracer_;
  runtime::Device* device_;
  std::recursive_mutex mutex_;
  std::shared_ptr<Context> context_;
  Graph graph_;
  std::vector<Frame> frames_;

  // Shapes of nodes by op, attributes and operand shapes.
  std::vector<uint32_t> shape_words_;
  std::vector<ShapeEntry> shape_entries_;
  InternIndex shape_index_;
  std::vector<uint32_t> key_;

  // Parameters for numbers, the 128 used last.
  using ScalarList = std::list<std::pair<ScalarKey, std::shared_ptr<runtime::Buffer>>>;
  ScalarList scalars_;
  absl::flat_hash_map<ScalarKey, ScalarList::iterator> scalar_index_;
  absl::flat_hash_map<const runtime::Buffer*, NodeId> scalar_nodes_;  // of the current epoch

  int64_t seed_ = 101;
  Tensor seed_tensor_;
  Tensor collective_token_;
  IrRef running_seed_;
  uint32_t running_seed_epoch_ = 0;

  TensorData* oldest_ = nullptr;
  TensorData* newest_ = nullptr;
  int64_t live_count_ = 0;
  uint64_t next_id_ = 1;
  GraphCache cache_;
};

// Scopes ("A.1/B.2") and source lines of what this thread records, kept when the tracer has debug set.
class ScopedTrace {
 public:
  explicit ScopedTrace(std::string_view name);
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;
};
class ScopedFrame {
 public:
  ScopedFrame(std::string_view function, std::string_view file, int line);
  ~ScopedFrame();
  ScopedFrame(const ScopedFrame&) = delete;
  ScopedFrame& operator=(const ScopedFrame&) = delete;
};
// "A.1/B.2", or empty.
const std::string& CurrentScope();
// Null outside of any frame.
const Frame* CurrentFrame();
// Forgets scopes that are open, as a step does; an error names the first.
absl::Status ResetScopes();

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DEVICE_STATE_H_
