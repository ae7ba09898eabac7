// SPDX-License-Identifier: Apache-2.0
// A forward pass that is divided into segments at graph breaks, and its derivative, as AOTAutograd compiles the frames
// of a function that Dynamo could not capture whole: each segment has a forward and a backward graph, between which the
// program runs.
//
// A segment reads its inputs as leaves and keeps its autograd graph. What the segment before computes is copied to
// these leaves, and gradients to tensors that stay, so that a replay of any graph finds its inputs in the same tensors.
#ifndef HLOKIT_TRACER_MODELS_SEGMENTED_STEP_H_
#define HLOKIT_TRACER_MODELS_SEGMENTED_STEP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tracer/capture/capture.h"
#include "tracer/models/model.h"

namespace hlokit::lazy::models {

class SegmentedModel {
 public:
  // Divides the stages of the model evenly. Requires: 1 <= segments <= stage_count.
  SegmentedModel(const Model& model, Tensors parameters, size_t segments);

  size_t size() const { return segments_.size(); }
  // Runs a segment in training; the first takes `inputs`, further ones the results of the segment before. Returns its
  // results: of the last segment, the logits.
  Tensors Forward(size_t segment, const Tensors& inputs);
  // Sets the gradients of the segment's parameters and inputs, those that several segments have to their sum. The last
  // segment is first, and is differentiated from `loss`.
  absl::Status Backward(size_t segment, const Tensor& loss);

 private:
  struct Segment {
    size_t begin = 0, end = 0;  // stages
    Tensors inputs;             // leaves, or tensors of the batch
    Tensors outputs;            // with the autograd graph of the segment
  };
  // A leaf, and the tensor that holds its gradient after every step.
  struct Gradient {
    Tensor leaf, stored;
  };

  const Model& model_;
  std::vector<Segment> segments_;
  std::vector<Gradient> gradients_;  // of the parameters, then of inputs of segments
};

// Captured functions that run one after another and leave tensors for the next one: in a step all are replayed, or all
// are traced.
class CapturedSequence {
 public:
  // guarded_scalars: of GraphCaptureOptions.
  CapturedSequence(Tracer* tracer, std::function<std::vector<double>()> guarded_scalars)
      : tracer_(*tracer), guarded_scalars_(std::move(guarded_scalars)) {}

  void Add(std::string name, std::function<absl::Status()> run);
  bool empty() const { return functions_.empty(); }
  // Calls the functions in order. `inputs`: tensors that the first one may find replaced by others.
  absl::Status Run(const Tensors& inputs);
  // Returns the reports of the functions.
  std::string Report() const;

 private:
  Tracer& tracer_;
  const std::function<std::vector<double>()> guarded_scalars_;
  std::vector<std::unique_ptr<CapturedFunction>> functions_;
  absl::Status status_;  // of the last function that was traced
};

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_SEGMENTED_STEP_H_
