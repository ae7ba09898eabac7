// SPDX-License-Identifier: Apache-2.0
#include "tracer/capture/recorded_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/types/literal.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

using BufferPtr = std::shared_ptr<runtime::DeviceBuffer>;

// Copies a part of the graph of a device.
class RecordedGraph::Recording {
 public:
  Recording(DeviceState& device, RecordedGraph* graph) : device_(device), graph_(*graph) {}

  absl::Status Run(const Tensors& results, absl::Span<const Argument> arguments, const BufferPtr& seed) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      known_[arguments[i].buffer.get()] = {Leaf::Kind::kArgument, static_cast<uint32_t>(i)};
      graph_.arguments_.push_back({arguments[i].type, arguments[i].dims, {}});
    }
    known_[seed.get()] = {Leaf::Kind::kSeed, 0};
    std::vector<NodeOutput> roots;
    for (const Tensor& result : results) roots.push_back(device_.ValueOf(result.impl()->data.get()));
    roots.push_back(device_.ValueOf(device_.RunningSeed().impl()->data.get()));
    const std::vector<NodeId> order = device_.graph().PostOrder(roots);
    place_.resize(device_.graph().size());
    for (const NodeId id : order) {
      if (!IsLeaf(id)) continue;
      if (absl::Status s = AddLeaf(id); !s.ok()) return s;
    }
    for (const NodeId id : order) {
      if (!IsLeaf(id)) AddNode(id);
    }
    for (const NodeOutput& root : roots) graph_.results_.push_back({place_[root.node], root.output});
    const ValueRef last = graph_.results_.back();
    graph_.results_.pop_back();
    const bool same = last.value < graph_.leaves_.size() && graph_.leaves_[last.value].kind == Leaf::Kind::kSeed;
    if (!same) graph_.seed_after_ = last;
    return absl::OkStatus();
  }

 private:
  bool IsLeaf(NodeId id) const {
    const Op op = device_.graph().node(id).op;
    return op == Op::device_data || op == Op::constant;
  }

  absl::Status AddLeaf(NodeId id) {
    const NodeRecord& node = device_.graph().node(id);
    place_[id] = static_cast<uint32_t>(graph_.leaves_.size());
    if (node.op == Op::constant) {
      const EncodedArgs args = DecodeArgs(device_.context().list(node.attrs));
      graph_.leaves_.push_back({Leaf::Kind::kConstant, static_cast<uint32_t>(graph_.constants_.size())});
      graph_.constants_.push_back({device_.context().shape(node.shape).element_type(), args[0].scalar()});
      return absl::OkStatus();
    }
    const BufferPtr& buffer = device_.graph().leaf(id);
    if (const auto known = known_.find(buffer.get()); known != known_.end()) {
      graph_.leaves_.push_back(known->second);
      return absl::OkStatus();
    }
    if (buffer == device_.CollectiveToken().impl()->data->buffer) {
      return absl::UnimplementedError("the graph has collectives");
    }
    if (!buffer->IsReady()) return absl::InvalidArgumentError("the graph reads a value that is none of its inputs");
    const Literal& literal = buffer->literal();
    const absl::Span<const int64_t> dims = literal.shape().dims();
    Number number{literal.shape().element_type(), {dims.begin(), dims.end()}, {}};
    number.bytes.assign(literal.data(), literal.data() + literal.size_bytes());
    graph_.leaves_.push_back({Leaf::Kind::kNumber, static_cast<uint32_t>(graph_.numbers_.size())});
    graph_.numbers_.push_back(std::move(number));
    return absl::OkStatus();
  }

  void AddNode(NodeId id) {
    const Graph& graph = device_.graph();
    const NodeRecord& node = graph.node(id);
    RecordedNode copy{
        node.op, AttrsOf(node.attrs), static_cast<uint32_t>(graph_.operands_.size()), node.operand_count, 0, 0};
    for (const NodeOutput& operand : graph.operands(id)) {
      graph_.operands_.push_back({place_[operand.node], operand.output});
    }
    if (node.scope != 0) copy.scope = ScopeOf(node.scope);
    if (node.frame != 0) copy.frame = FrameOf(node.frame);
    place_[id] = static_cast<uint32_t>(graph_.leaves_.size() + graph_.nodes_.size());
    graph_.nodes_.push_back(copy);
  }

  uint32_t AttrsOf(ListId list) {
    const auto [found, is_new] = attrs_.try_emplace(list.value, static_cast<uint32_t>(graph_.attrs_.size()));
    if (is_new) {
      const absl::Span<const int64_t> words = device_.context().list(list);
      graph_.attrs_.emplace_back(words.begin(), words.end());
    }
    return found->second;
  }
  uint32_t ScopeOf(uint32_t scope) {
    const auto [found, is_new] = scopes_.try_emplace(scope, static_cast<uint32_t>(graph_.scopes_.size()) + 1);
    if (is_new) graph_.scopes_.emplace_back(device_.context().str(StringId(scope)));
    return found->second;
  }
  uint32_t FrameOf(uint32_t frame) {
    const auto [found, is_new] = frames_.try_emplace(frame, static_cast<uint32_t>(graph_.frames_.size()) + 1);
    if (is_new) graph_.frames_.push_back(device_.frames()[frame - 1]);
    return found->second;
  }

  DeviceState& device_;
  RecordedGraph& graph_;
  absl::flat_hash_map<const runtime::DeviceBuffer*, Leaf> known_;
  std::vector<uint32_t> place_;  // by node: its number among leaves and nodes
  absl::flat_hash_map<uint32_t, uint32_t> attrs_, scopes_, frames_;
};

absl::StatusOr<std::unique_ptr<RecordedGraph>> RecordedGraph::Make(DeviceState& device, const Tensors& results,
                                                                   absl::Span<const Argument> arguments,
                                                                   const BufferPtr& seed) {
  for (const Tensor& result : results) RefreshView(result);
  DeviceLock lock(device.mutex());
  std::unique_ptr<RecordedGraph> graph(new RecordedGraph);
  if (absl::Status s = Recording(device, graph.get()).Run(results, arguments, seed); !s.ok()) return s;
  return graph;
}

std::shared_ptr<const RecordedGraph::Interned> RecordedGraph::InternedIn(DeviceState& device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (interned_ != nullptr && interned_->context.lock() == device.shared_context()) return interned_;
  auto interned = std::make_shared<Interned>();
  Context& context = device.context();
  interned->context = device.shared_context();
  for (const std::vector<int64_t>& words : attrs_) interned->attrs.push_back(context.lists.Intern(words));
  for (const std::string& scope : scopes_) interned->scopes.push_back(context.strings.Intern(scope).value);
  interned_ = interned;
  return interned;
}

absl::Status RecordedGraph::CheckArguments(DeviceState& device, const Tensors& arguments) const {
  if (arguments.size() != arguments_.size()) {
    return absl::InvalidArgumentError(
        StrCat("the graph takes ", arguments_.size(), " arguments, not ", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor& argument = arguments[i];
    if (argument.device() != &device) {
      return absl::InvalidArgumentError(StrCat("argument ", i, " is on another device or in another session"));
    }
    const absl::Span<const int64_t> dims = argument.shape().dims();
    const Number& expected = arguments_[i];
    if (argument.shape().element_type() != expected.type ||
        !std::equal(dims.begin(), dims.end(), expected.dims.begin(), expected.dims.end())) {
      return absl::InvalidArgumentError(
          StrCat("argument ", i, " is ", ToString(argument.shape()), ", which is not what the graph was recorded for"));
    }
  }
  return absl::OkStatus();
}

NodeOutput RecordedGraph::LeafNode(DeviceState& device, const Leaf& leaf, const Tensors& arguments) const {
  switch (leaf.kind) {
    case Leaf::Kind::kArgument:
      return device.ValueOf(arguments[leaf.index].impl()->data.get());
    case Leaf::Kind::kSeed:
      return device.ValueOf(device.RunningSeed().impl()->data.get());
    case Leaf::Kind::kConstant:
      return device.ConstantNode(constants_[leaf.index].value, constants_[leaf.index].type);
    case Leaf::Kind::kNumber: {
      const Number& number = numbers_[leaf.index];
      if (number.dims.empty() && !IsComplex(number.type)) {
        return device.ScalarNode(LoadScalar(number.type, number.bytes.data()), number.type);
      }
      const Shape shape = device.ArrayShape(number.type, number.dims);
      Literal literal = Literal::Zeros(shape);
      std::copy(number.bytes.begin(), number.bytes.end(), literal.data());
      runtime::Client& client = device.tracer()->client();
      return {device.AddDeviceData(
                  client.TransferToDevice(device.device(), std::move(literal), device.shared_context()), shape),
              0};
    }
  }
  return {};
}

absl::StatusOr<Tensors> RecordedGraph::Append(DeviceState& device, const Tensors& arguments) const {
  for (const Tensor& argument : arguments) RefreshView(argument);
  DeviceLock lock(device.mutex());
  if (absl::Status s = CheckArguments(device, arguments); !s.ok()) return s;
  const TracerOptions& options = device.tracer()->options();
  const bool has_sources = options.debug || options.explain_recompiles;
  const std::shared_ptr<const Interned> interned = InternedIn(device);
  std::vector<uint32_t> frames(has_sources ? frames_.size() : 0);
  for (size_t i = 0; i < frames.size(); ++i) {
    device.frames().push_back(frames_[i]);
    frames[i] = static_cast<uint32_t>(device.frames().size());
  }
  std::vector<NodeOutput> values;
  for (const Leaf& leaf : leaves_) values.push_back(LeafNode(device, leaf, arguments));
  std::vector<NodeOutput> operands;
  for (const RecordedNode& node : nodes_) {
    operands.clear();
    for (uint32_t i = 0; i < node.operand_count; ++i) {
      const ValueRef operand = operands_[node.operand_begin + i];
      // An argument may be one of several outputs of a node.
      const NodeOutput value = values[operand.value];
      operands.push_back(operand.value < leaves_.size() ? value : NodeOutput{value.node, operand.output});
    }
    const NodeId id = device.AddNode(node.op, interned->attrs[node.attrs], operands);
    if (id == kNoNode) return absl::InternalError("a node of a recorded graph could not be appended");
    if (has_sources) {
      NodeRecord& record = device.graph().node(id);
      record.scope = node.scope == 0 ? 0 : interned->scopes[node.scope - 1];
      if (node.frame != 0) record.frame = frames[node.frame - 1];
    }
    values.push_back({id, 0});
  }
  const auto output = [&](ValueRef ref) {
    return ref.value < leaves_.size() ? values[ref.value] : NodeOutput{values[ref.value].node, ref.output};
  };
  Tensors results;
  for (const ValueRef& result : results_) results.push_back(device.NewTensor(output(result)));
  if (seed_after_) device.SetRunningSeed(device.NewTensor(output(*seed_after_)));
  return results;
}

}  // namespace hlokit::lazy
