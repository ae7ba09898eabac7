// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/divided_graph.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "interp/program/engine_table.h"
#include "ir/core/hashing.h"
#include "runtime/client/client.h"
#include "runtime/client/first_error.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"
#include "tracer/step/partitioning.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

using BufferPtr = std::shared_ptr<runtime::DeviceBuffer>;

// Larger integers are worth a compilation.
constexpr int64_t kMaxInterpretedElements = 1 << 16;

enum class Part : uint8_t { kLeaf, kBefore, kRest, kAfter };

// Which part of a graph a node is of.
class Division {
 public:
  Division(DeviceState& device, const PendingSubgraph& slice) : device_(device), order_(slice.order) {
    parts_.resize(device.graph().size(), Part::kRest);
    for (const NodeId id : order_) parts_[id] = PartBefore(id);
    MarkAfter();
    for (const NodeId id : order_) {
      counts_[static_cast<size_t>(parts_[id])] += 1;
    }
  }

  Part part(NodeId id) const { return parts_[id]; }
  size_t count(Part part) const { return counts_[static_cast<size_t>(part)]; }
  bool has_integers() const { return count(Part::kBefore) + count(Part::kAfter) > 0; }

  // Returns a hash of the rest, in which other nodes are their shapes.
  uint64_t HashOfRest() const {
    std::vector<uint32_t> words;
    uint32_t next = 0;
    absl::flat_hash_map<NodeId, uint32_t> numbers;
    const Graph& graph = device_.graph();
    for (const NodeId id : order_) {
      if (parts_[id] != Part::kRest) continue;
      const NodeRecord& node = graph.node(id);
      words.insert(words.end(), {static_cast<uint32_t>(node.op), node.attrs.value, node.shape.value});
      for (const NodeOutput& operand : graph.operands(id)) {
        const auto known = numbers.find(operand.node);
        words.push_back(known != numbers.end() ? known->second : ~graph.node(operand.node).shape.value);
        words.push_back(operand.output);
      }
      numbers[id] = next++;
    }
    return HashBytes(words.data(), words.size() * sizeof(uint32_t));
  }

 private:
  // Whether a value is a few integers.
  bool IsSmall(NodeOutput value) const {
    const Shape shape = device_.ShapeOf(value);
    return !shape.IsTuple() && !IsFloat(shape.element_type()) && !IsComplex(shape.element_type()) &&
           shape.element_count() <= kMaxInterpretedElements;
  }
  bool HasSmallOperands(NodeId id) const {
    const absl::Span<const NodeOutput> operands = device_.graph().operands(id);
    return std::all_of(operands.begin(), operands.end(), [&](NodeOutput operand) { return IsSmall(operand); });
  }
  bool IsOneSmall(NodeId id) const {
    return !device_.context().shape(device_.graph().node(id).shape).IsTuple() && IsSmall({id, 0}) &&
           HasSmallOperands(id);
  }

  bool HasOperandsOfOneResult(NodeId id) const {
    const absl::Span<const NodeOutput> operands = device_.graph().operands(id);
    return std::all_of(operands.begin(), operands.end(), [&](NodeOutput operand) {
      return !device_.context().shape(device_.graph().node(operand.node).shape).IsTuple();
    });
  }

  Part PartBefore(NodeId id) const {
    const Op op = device_.graph().node(id).op;
    if (op == Op::device_data || op == Op::constant) return Part::kLeaf;
    if (!IsOneSmall(id)) return Part::kRest;
    const absl::Span<const NodeOutput> operands = device_.graph().operands(id);
    const bool known = std::all_of(operands.begin(), operands.end(), [&](NodeOutput operand) {
      return parts_[operand.node] == Part::kLeaf || parts_[operand.node] == Part::kBefore;
    });
    return known ? Part::kBefore : Part::kRest;
  }

  // Integers that depend on the rest, and on which none of it depends.
  void MarkAfter() {
    std::vector<bool> used(device_.graph().size());
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      if (parts_[*id] == Part::kRest && !used[*id] && IsOneSmall(*id) && HasOperandsOfOneResult(*id)) {
        parts_[*id] = Part::kAfter;
      }
      if (parts_[*id] != Part::kRest) continue;
      for (const NodeOutput& operand : device_.graph().operands(*id)) used[operand.node] = true;
    }
  }

  DeviceState& device_;
  const std::vector<NodeId>& order_;
  std::vector<Part> parts_;  // by node
  size_t counts_[4] = {};
};

// Hashes of the rests of graphs, by device, for as long as it has its context.
class KnownRests {
 public:
  // Returns whether the device has it, and adds it.
  bool FindOrAdd(DeviceState& device, uint64_t hash) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(devices_, [](const auto& entry) { return entry.first.expired(); });
    for (auto& [context, hashes] : devices_) {
      if (context.lock() == device.shared_context()) return !hashes.insert(hash).second;
    }
    devices_.push_back({device.shared_context(), {hash}});
    return false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::weak_ptr<Context>, absl::flat_hash_set<uint64_t>>> devices_;
};

KnownRests& Known() {
  static KnownRests& known = *new KnownRests;
  return known;
}

// Computes the tensors without compiling.
absl::Status Interpret(DeviceState& device, absl::Span<TensorData* const> tensors) {
  if (tensors.empty()) return absl::OkStatus();
  const PendingSubgraph slice = CollectSubgraph(device, tensors, {});
  absl::StatusOr<std::unique_ptr<Module>> module = LowerSubgraph(device, slice, "Interpreted");
  if (!module.ok()) return module.status();
  runtime::Client& client = device.tracer()->client();
  DiagnosticSink sink;
  const std::unique_ptr<interp::Engine> engine =
      interp::RowOf(interp::EngineKind::kReference).prepare(**module, client.options().evaluator, &sink);
  if (engine == nullptr) return runtime::FirstError(sink, "cannot interpret the graph");
  std::vector<Literal> values;
  for (const BufferPtr& input : slice.inputs) {
    absl::StatusOr<Literal> value = runtime::Client::ReadBuffer(runtime::BufferUse(input));
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  std::vector<const Literal*> arguments;
  for (const Literal& value : values) arguments.push_back(&value);
  const std::optional<std::vector<Literal>> results = engine->RunPointers(arguments, &sink, nullptr);
  if (!results) return runtime::FirstError(sink, "the graph cannot be interpreted");
  for (size_t i = 0; i < tensors.size(); ++i) {
    Literal value = Literal::Zeros(tensors[i]->shape);
    std::copy_n((*results)[i].data(), value.size_bytes(), value.data());
    Materialize(tensors[i], client.TransferToDevice(device.device(), std::move(value), device.shared_context()));
  }
  device.tracer()->metrics().Add("InterpretedGraph");
  return absl::OkStatus();
}

// Runs the parts of a graph one after the other.
class DividedRun {
 public:
  DividedRun(DeviceState& device, const PendingSubgraph& slice, const Division& division,
             std::vector<TensorData*> pending)
      : device_(device), slice_(slice), division_(division), pending_(std::move(pending)) {}

  absl::Status Run(SyncReason cause) {
    if (absl::Status s = Interpret(device_, TensorsOf(Part::kBefore)); !s.ok()) return s;
    ReplaceNodes();
    const std::vector<TensorData*> rest = TensorsOf(Part::kRest);
    if (!rest.empty()) {
      const SubgraphOptions options{true, device_.tracer()->options().donate && !IsReadLater(rest)};
      absl::StatusOr<LaunchResult> launched = Launch(device_, CollectSubgraph(device_, rest, options), options, cause);
      if (!launched.ok()) return launched.status();
      for (size_t i = 0; i < rest.size(); ++i) Materialize(rest[i], std::move(launched->results[i]));
    }
    ReplaceNodes();
    return Interpret(device_, TensorsOf(Part::kAfter));
  }

 private:
  // Returns the pending tensors of a part, and tensors for its values that later parts use.
  std::vector<TensorData*> TensorsOf(Part part) {
    std::vector<TensorData*> tensors;
    for (TensorData* const data : pending_) {
      if (data->ir.valid() && PartOf(data->ir.node) == part) tensors.push_back(data);
    }
    boundary_.clear();
    for (const NodeId id : slice_.order) {
      if (division_.part(id) <= part) continue;
      for (const NodeOutput& operand : device_.graph().operands(id)) {
        if (division_.part(operand.node) != part) continue;
        const auto found =
            std::find_if(boundary_.begin(), boundary_.end(), [&](const Value& v) { return v.output == operand; });
        if (found != boundary_.end()) continue;
        boundary_.push_back({operand, device_.NewTensor(operand)});
        tensors.push_back(boundary_.back().tensor.impl()->data.get());
      }
    }
    return tensors;
  }
  // Of a leaf the rest: a pending tensor that is one.
  Part PartOf(NodeId id) const { return division_.part(id) == Part::kLeaf ? Part::kRest : division_.part(id); }

  // Whether the last part reads a value that one of these tensors replaces, and whose memory it could take.
  bool IsReadLater(absl::Span<TensorData* const> tensors) const {
    const Graph& graph = device_.graph();
    return std::any_of(slice_.order.begin(), slice_.order.end(), [&](NodeId id) {
      if (division_.part(id) != Part::kAfter) return false;
      const absl::Span<const NodeOutput> operands = graph.operands(id);
      return std::any_of(operands.begin(), operands.end(), [&](NodeOutput operand) {
        if (graph.node(operand.node).op != Op::device_data) return false;
        const BufferPtr& buffer = graph.leaf(operand.node);
        return std::any_of(tensors.begin(), tensors.end(),
                           [&](const TensorData* data) { return data->overwritten == buffer; });
      });
    });
  }

  // Makes device data of the nodes whose values are those of boundary_.
  void ReplaceNodes() {
    for (const Value& value : boundary_) {
      const NodeOutput leaf = device_.ValueOf(value.tensor.impl()->data.get());
      device_.graph().node(value.output.node) = device_.graph().node(leaf.node);
    }
    boundary_.clear();
  }

  struct Value {
    NodeOutput output;
    Tensor tensor;
  };
  DeviceState& device_;
  const PendingSubgraph& slice_;
  const Division& division_;
  const std::vector<TensorData*> pending_;
  std::vector<Value> boundary_;
};

// Whether the program's values are in this process, and its executions may be others than those of its graphs.
bool MayDivide(DeviceState& device) {
  const TracerOptions& options = device.tracer()->options();
  return device.tracer()->device_count() == 1 && !options.client.defer_executions &&
         options.client.platform != kSpmdPlatform && !device.forbid_execution && device.graph_name.empty();
}

}  // namespace

absl::Status SyncRecorded(DeviceState& device, SyncReason cause) {
  if (MayDivide(device)) {
    const DeviceLock lock(device.mutex());
    std::vector<TensorData*> pending = PendingTensors(device);
    const SubgraphOptions options{true, device.tracer()->options().donate};
    const PendingSubgraph slice = CollectSubgraph(device, pending, options);
    if (!pending.empty() && device.cache().Find(KeyOf(device, slice, options)) == nullptr) {
      const Division division(device, slice);
      const bool divide = division.has_integers() &&
                          (division.count(Part::kRest) == 0 || Known().FindOrAdd(device, division.HashOfRest()));
      if (divide) {
        if (absl::Status s = DividedRun(device, slice, division, std::move(pending)).Run(cause); !s.ok()) return s;
      }
    }
  }
  return SyncLiveTensors(device, cause, /*wait=*/false);
}

}  // namespace hlokit::lazy
