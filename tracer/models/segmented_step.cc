// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/segmented_step.h"

#include <algorithm>

#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::models {
namespace {

// Returns the value without its autograd history, as a result that a graph computes: an input of the graph, which would
// not be a result, is copied.
Tensor ComputedValue(const Tensor& t) {
  const Tensor value = t.Detach();
  return value.impl()->data->buffer != nullptr ? InvokeOp(Op::clone, value) : value;
}

bool Contains(const Tensors& tensors, const Tensor& t) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.impl() == t.impl(); });
}

}  // namespace

SegmentedModel::SegmentedModel(const Model& model, Tensors parameters, size_t segments) : model_(model) {
  const size_t stages = model.stage_count();
  for (size_t k = 0; k < segments; ++k) {
    segments_.push_back({k * stages / segments, (k + 1) * stages / segments, {}, {}});
  }
  for (Tensor& parameter : parameters) gradients_.push_back({std::move(parameter), Tensor()});
}

Tensors SegmentedModel::Forward(size_t number, const Tensors& inputs) {
  Segment& segment = segments_[number];
  segment.outputs.clear();  // the graph of the step before
  if (number == 0) segment.inputs = inputs;
  segment.outputs = model_.RunStages(segment.begin, segment.end, segment.inputs, /*training=*/true);
  if (number + 1 == segments_.size()) return std::exchange(segment.outputs, {});
  const NoGradGuard no_grad;
  Tensors& leaves = segments_[number + 1].inputs;
  leaves.resize(segment.outputs.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& output = segment.outputs[i];
    if (!output.defined()) break;  // an error, which the tracer keeps
    if (Contains(segment.inputs, output)) {
      leaves[i] = output;  // passes through
    } else if (leaves[i].defined()) {
      WriteInPlace(leaves[i], ComputedValue(output));
    } else {
      leaves[i] = InvokeOp(Op::clone, output.Detach());
      if (!ComputeRequiresGrad(output)) continue;
      leaves[i].set_requires_grad(true);
      gradients_.push_back({leaves[i], Tensor()});
    }
  }
  return segment.outputs;
}

absl::Status SegmentedModel::Backward(size_t number, const Tensor& loss) {
  const bool last = number + 1 == segments_.size();
  Tensors roots, gradients;
  if (last) {
    for (Gradient& gradient : gradients_) gradient.leaf.set_grad(Tensor());
    roots.push_back(loss);
    gradients.emplace_back();
  } else {
    const Tensors& outputs = segments_[number].outputs;
    const Tensors& leaves = segments_[number + 1].inputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      // The gradient of a tensor that passes through is on its leaf already.
      if (outputs[i].impl() == leaves[i].impl() || !leaves[i].grad().defined()) continue;
      roots.push_back(outputs[i]);
      gradients.push_back(leaves[i].grad());
    }
    if (roots.empty()) return absl::OkStatus();
  }
  BackwardOptions options;
  options.retain_graph = true;
  if (absl::Status s = RunBackward(roots, gradients, {}, options).status(); !s.ok()) return s;
  const NoGradGuard no_grad;
  for (Gradient& gradient : gradients_) {
    const Tensor now = gradient.leaf.grad();
    if (!now.defined() || (gradient.stored.defined() && now.impl() == gradient.stored.impl())) continue;
    if (gradient.stored.defined()) {
      WriteInPlace(gradient.stored, ComputedValue(now));
    } else {
      gradient.stored = now;
    }
    gradient.leaf.set_grad(gradient.stored);
  }
  return absl::OkStatus();
}

void CapturedSequence::Add(std::string name, std::function<absl::Status()> run) {
  GraphCaptureOptions options;
  options.name = std::move(name);
  options.views_are_current = !functions_.empty();
  options.guarded_scalars = guarded_scalars_;
  functions_.push_back(std::make_unique<CapturedFunction>(
      &tracer_,
      [this, run = std::move(run)](const Tensors&) {
        status_ = run();
        return Tensors();
      },
      std::move(options)));
}

// A graph keeps the tensors of the function before it, so all are forgotten before these are made anew.
absl::Status CapturedSequence::Run(const Tensors& inputs) {
  bool replay = std::all_of(functions_.begin(), functions_.end(), [](const auto& f) { return f->replayable(); });
  for (size_t i = 0; i < functions_.size(); ++i) {
    for (size_t k = i; !replay && k < functions_.size(); ++k) functions_[k]->Forget();
    CapturedFunction& function = *functions_[i];
    const int64_t replays = function.replays();
    absl::Status done = function(i == 0 ? inputs : Tensors()).status();
    if (done.ok()) done = status_;
    if (!done.ok()) return done;
    replay = function.replays() > replays;
  }
  return absl::OkStatus();
}

std::string CapturedSequence::Report() const {
  std::string report;
  for (const std::unique_ptr<CapturedFunction>& function : functions_) report += function->Report();
  return report;
}

}  // namespace hlokit::lazy::models
