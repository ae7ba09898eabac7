// SPDX-License-Identifier: Apache-2.0
#include "tracer/autograd/node.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

thread_local bool grad_enabled = true;
std::atomic<uint64_t> next_sequence{1};

Edge EdgeOf(const Tensor& t) {
  Edge edge;
  if (!t.defined()) return edge;
  TensorImpl* impl = t.impl();
  if (impl->grad_fn) {
    edge.node = impl->grad_fn;
    edge.output = impl->output_number;
  } else if (impl->requires_grad) {
    if (!impl->accumulator) impl->accumulator = Ref<RefCounted>(new AccumulateGrad(impl));
    edge.accumulator = Ref<AccumulateGrad>(static_cast<AccumulateGrad*>(impl->accumulator.get()));
  }
  return edge;
}

// Calls fn(tensor) for each tensor argument, including members of lists and undefined ones.
template <typename Fn>
void ForEachTensor(const Op op, Args& args, Fn fn) {
  const Schema& schema = SchemaOf(op);
  for (size_t i = 0; i < args.size(); ++i) {
    if (schema.args[i].type == ArgType::kTensor) {
      if (Tensor* t = args[i].get<Tensor>()) {
        fn(*t);
      } else {
        Tensor none;
        fn(none);
      }
    } else if (schema.args[i].type == ArgType::kTensorList) {
      if (Tensors* list = args[i].get<Tensors>()) {
        for (Tensor& t : *list) fn(t);
      }
    }
  }
}

// Returns `gradient` summed to the shape and converted to the type of its tensor.
Tensor Fit(Tensor gradient, Shape shape) {
  if (!gradient.defined()) return gradient;
  if (gradient.sizes() != shape.dims()) gradient = SumToSize(gradient, shape.dims());
  if (gradient.defined() && gradient.dtype() != shape.element_type()) gradient = To(gradient, shape.element_type());
  return gradient;
}

// Returns the value in a separate tensor if other tensors refer to this one, so that in-place accumulation does not
// change them. Also marks it as newest unless it was `made` for its leaf.
Tensor Unshared(Tensor gradient, bool made) {
  TensorImpl* impl = gradient.impl();
  const bool alone = impl->refs() == 1 && impl->data->refs() == 1 && impl->view == nullptr;
  if (alone && made) return gradient;
  DeviceState& device = *gradient.device();
  DeviceLock lock(device.mutex());
  if (alone && !impl->grad_fn && impl->data->buffer == nullptr) {
    device.MarkNewest(impl->data.get());
    return gradient;
  }
  return device.NewTensor(device.ValueOf(impl->data.get()));
}

// Returns the device of the first defined tensor, or null.
DeviceState* DeviceOf(const Outputs& tensors) {
  for (const Tensor& t : tensors) {
    if (t.defined()) return t.device();
  }
  return nullptr;
}

}  // namespace

bool GradEnabled() { return grad_enabled; }
AutoGradMode::AutoGradMode(bool enabled) : previous_(grad_enabled) { grad_enabled = enabled; }
AutoGradMode::~AutoGradMode() { grad_enabled = previous_; }

bool ComputeRequiresGrad(const Tensor& t) { return t.defined() && (t.impl()->grad_fn || t.impl()->requires_grad); }

void SetHistory(Op op, Args&& args, const Outputs& outputs) {
  bool needed = false;
  ForEachTensor(op, args, [&](const Tensor& t) { needed |= ComputeRequiresGrad(t); });
  if (!needed) return;
  Ref<Node> function = MakeRef<Node>();
  function->op = op;
  function->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  function->location = call_site.location;
  ForEachTensor(op, args, [&](Tensor& t) {
    SavedVariable& slot = function->slots.emplace_back();
    if (!t.defined()) return;
    slot.shape = t.shape();
    slot.data = t.impl()->data;
    slot.version = slot.data->version;
    if (ScalarTypeCategory(t.dtype()) >= 2) slot.edge = EdgeOf(t);
    t = Tensor();
  });
  function->args = std::move(args);
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Tensor& out = outputs[k];
    if (!out.defined()) {
      function->outputs.push_back({});
      continue;
    }
    function->outputs.push_back({out.shape(), out.impl()->data, out.impl()->data->version});
    if (ScalarTypeCategory(out.dtype()) < 2) continue;
    out.impl()->grad_fn = function;
    out.impl()->output_number = static_cast<uint32_t>(k);
  }
}

// ---- BackwardContext ----

void derivative::None(BackwardContext&) {}

Tensor Conjugate(const Tensor& t) { return t.defined() && IsComplex(t.dtype()) ? InvokeOp(Op::conj_physical, t) : t; }

bool HasRealMatrices(BackwardContext& c) {
  if (!IsComplex(c.shape(0).element_type())) return true;
  c.Fail(absl::UnimplementedError("the derivative for complex matrices"));
  return false;
}

BackwardContext::BackwardContext(const Node* function, const Outputs* gradients)
    : function_(*function), gradients_(*gradients), saved_(function->slots.size()), results_(function->slots.size()) {
  const Schema& schema = SchemaOf(function_.op);
  uint32_t slot = 0;
  for (size_t i = 0; i < function_.args.size(); ++i) {
    slots_.push_back(slot);
    if (schema.args[i].type == ArgType::kTensor) ++slot;
    if (const Tensors* list = function_.args[i].get<Tensors>()) slot += static_cast<uint32_t>(list->size());
  }
}

const Tensor& BackwardContext::Saved(size_t k) {
  const SavedVariable& slot = function_.slots[k];
  Tensor& tensor = saved_[k];
  if (tensor.defined() || !slot.data) return tensor;
  if (slot.data->version != slot.version) {
    Fail(absl::FailedPreconditionError(
        StrCat("one of the variables needed for gradient computation has been modified by an inplace operation: "
               "the argument of ",
               SymbolOf(function_.op), " is at version ", slot.data->version, "; expected version ", slot.version,
               " instead")));
  }
  tensor = Tensor(new TensorImpl(slot.data));
  TensorImpl* impl = tensor.impl();
  impl->grad_fn = slot.edge.node;
  impl->output_number = slot.edge.output;
  if (slot.edge.accumulator) {
    impl->requires_grad = true;
    impl->accumulator = Ref<RefCounted>(slot.edge.accumulator.get());
  }
  tensor = Conjugate(tensor);
  return tensor;
}

const Tensor& BackwardContext::in(size_t i) {
  static const Tensor undefined;
  return function_.args[i].get<Tensor>() == nullptr ? undefined : Saved(slots_[i]);
}

Tensors BackwardContext::list(size_t i) {
  Tensors list(list_size(i));
  for (size_t k = 0; k < list.size(); ++k) list[k] = Saved(slots_[i] + k);
  return list;
}

Tensor BackwardContext::out(size_t k) {
  const OutputInfo& info = function_.outputs[k];
  if (!info.data) return Tensor();
  if (info.data->version != info.version) {
    Fail(absl::FailedPreconditionError(
        StrCat("one of the variables needed for gradient computation has been modified by an inplace operation: "
               "output ",
               k, " of ", SymbolOf(function_.op), " is at version ", info.data->version, "; expected version ",
               info.version, " instead")));
  }
  Tensor result(new TensorImpl(info.data));
  if (GradEnabled()) {  // the gradient will be differentiated again
    result.impl()->grad_fn = Ref<Node>(const_cast<Node*>(&function_));
    result.impl()->output_number = static_cast<uint32_t>(k);
  }
  return Conjugate(result);
}

Tensor BackwardContext::grad_output_or_zeros(size_t k) {
  if (gradients_[k].defined()) return gradients_[k];
  const Shape s = function_.outputs[k].shape;
  return Zeros(s.dims(), s.element_type());
}

// ---- the engine ----

namespace {

// Runs the graph from the roots to the leaves, each node once all its gradients are there: the youngest of the nodes
// that have some has all of them, as users of a value are younger than what computes it.
class BackwardEngine {
 public:
  // `inputs`: whose gradients are wanted; empty: those of the leaves are accumulated in them.
  BackwardEngine(const Tensors& inputs, bool retain_graph)
      : inputs_(inputs), retain_graph_(retain_graph), ready_(&IsOlder), wanted_(inputs.size()) {
    pending_.reserve(64);
  }

  // Adds the gradient of root `number`; undefined: 1.
  absl::Status AddRoot(size_t number, const Tensor& root, Tensor gradient);
  // Runs the nodes that have gradients.
  absl::Status Run();
  Tensors TakeWanted() { return std::move(wanted_); }

 private:
  struct Pending {
    Ref<Node> function;
    Outputs gradients;
  };
  static bool IsOlder(const Node* a, const Node* b) { return a->sequence < b->sequence; }

  // `made`: Fit created the gradient for this edge.
  void Deliver(const Edge& edge, Tensor gradient, bool made);
  void DeliverToLeaf(TensorImpl* leaf, Tensor gradient, bool made);
  absl::Status RunNode(Pending work);

  const Tensors& inputs_;
  const bool retain_graph_;
  absl::flat_hash_map<Node*, Pending> pending_;
  std::priority_queue<Node*, std::vector<Node*>, bool (*)(const Node*, const Node*)> ready_;
  Tensors wanted_;
};

void BackwardEngine::Deliver(const Edge& edge, Tensor gradient, bool made) {
  if (!gradient.defined()) return;
  if (!edge.node) {
    if (edge.accumulator && edge.accumulator->leaf != nullptr) {
      DeliverToLeaf(edge.accumulator->leaf, std::move(gradient), made);
    }
    return;
  }
  Pending& p = pending_[edge.node.get()];
  if (!p.function) {
    p.function = edge.node;
    p.gradients.resize(edge.node->outputs.size());
    ready_.push(edge.node.get());
  }
  Tensor& slot = p.gradients[edge.output];
  slot = slot.defined() ? Add(slot, gradient) : std::move(gradient);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].impl()->grad_fn == edge.node && inputs_[i].impl()->output_number == edge.output) wanted_[i] = slot;
  }
}

void BackwardEngine::DeliverToLeaf(TensorImpl* leaf, Tensor gradient, bool made) {
  if (inputs_.empty()) {
    leaf->grad = leaf->grad.defined() ? Add(leaf->grad, gradient) : Unshared(std::move(gradient), made);
    return;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].impl() == leaf) wanted_[i] = wanted_[i].defined() ? Add(wanted_[i], gradient) : gradient;
  }
}

absl::Status BackwardEngine::AddRoot(size_t number, const Tensor& root, Tensor gradient) {
  if (!root.defined()) return absl::InvalidArgumentError("an undefined tensor has no gradient");
  if (!ComputeRequiresGrad(root)) {
    return absl::FailedPreconditionError(
        StrCat("element ", number, " of tensors does not require grad and does not have a grad_fn"));
  }
  if (!gradient.defined()) {
    if (root.numel() != 1) {
      return absl::FailedPreconditionError("grad can be implicitly created only for scalar outputs");
    }
    gradient = OnesLike(root);
  } else if (gradient.device() != root.device()) {
    return absl::InvalidArgumentError(StrCat("grad_output[", number, "] is on device ", gradient.device()->name(),
                                             " and output[", number, "] on ", root.device()->name()));
  } else if (gradient.sizes() != root.sizes()) {
    return absl::InvalidArgumentError(StrCat("Mismatch in shape: grad_output[", number, "] has a shape of ",
                                             SizeToString(gradient.sizes()), " and output[", number,
                                             "] has a shape of ", SizeToString(root.sizes()), "."));
  }
  Deliver(EdgeOf(root), Fit(gradient, root.shape()), false);
  return absl::OkStatus();
}

absl::Status BackwardEngine::Run() {
  while (!ready_.empty()) {
    Node* const key = ready_.top();
    ready_.pop();
    const auto at = pending_.find(key);
    // A node belongs to one device: its mutex is locked once for the whole derivative.
    std::unique_lock<ReentrantMutex> lock;
    if (DeviceState* const device = DeviceOf(at->second.gradients)) {
      lock = std::unique_lock<ReentrantMutex>(device->mutex());
    }
    Pending work = std::move(at->second);
    pending_.erase(at);
    if (absl::Status status = RunNode(std::move(work)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BackwardEngine::RunNode(Pending work) {
  Node& function = *work.function;
  if (function.released) {
    return absl::FailedPreconditionError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.");
  }
  const Derivative derivative = InfoOf(function.op).derivative;
  if (derivative == nullptr) {
    return absl::UnimplementedError(StrCat("derivative for ", SymbolOf(function.op), " is not implemented"));
  }
  const ReplacedSourceLocation differentiated(function.location);
  BackwardContext call(&function, &work.gradients);
  derivative(call);
  if (!call.status().ok()) return call.status();
  for (size_t k = 0; k < function.slots.size(); ++k) {
    const SavedVariable& slot = function.slots[k];
    if (!slot.edge.valid()) continue;
    Tensor result = call.TakeResult(k);
    const TensorImpl* const before = result.defined() ? result.impl() : nullptr;
    Tensor gradient = Fit(std::move(result), slot.shape);
    const bool made = gradient.defined() && gradient.impl() != before;
    Deliver(slot.edge, std::move(gradient), made);
  }
  if (!retain_graph_) {
    function.args.clear();
    for (SavedVariable& slot : function.slots) slot.data = Ref<TensorData>();
    for (OutputInfo& info : function.outputs) info.data = Ref<TensorData>();
    function.released = true;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensors> RunBackward(const Tensors& roots, const Tensors& gradients, const Tensors& inputs,
                                    const BackwardOptions& options, const std::source_location& location) {
  const ScopedSourceLocation site(location);
  const AutoGradMode mode(options.create_graph);
  BackwardEngine engine(inputs, options.retain_graph || options.create_graph);
  for (size_t i = 0; i < roots.size(); ++i) {
    absl::Status status = engine.AddRoot(i, roots[i], i < gradients.size() ? gradients[i] : Tensor());
    if (!status.ok()) return status;
  }
  if (absl::Status status = engine.Run(); !status.ok()) return status;
  return engine.TakeWanted();
}

}  // namespace hlokit::lazy
