// SPDX-License-Identifier: Apache-2.0
// One training step of a model: forward, backward and update, traced or captured.
#ifndef HLOKIT_TRACER_MODELS_TRAINING_STEP_H_
#define HLOKIT_TRACER_MODELS_TRAINING_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/models/batch_feed.h"
#include "tracer/models/model.h"
#include "tracer/models/segmented_step.h"
#include "tracer/nn/checkpoint.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/nn/optimizer.h"

namespace hlokit::lazy::models {

// How a step is captured instead of traced anew.
enum class Capture {
  kNone,
  kFull,             // one graph
  kForwardBackward,  // forward, backward and update are graphs of their own, as AOTAutograd makes them; forward and
                     // backward are divided by graph breaks
};

struct TrainingOptions {
  int64_t steps = 1;
  std::string optimizer = "sgd";  // of OptimizerNames
  double lr = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
  double eps = 0;                       // 0: the default of the optimizer
  std::string lr_schedule;              // in the form of ParseLrSchedule; empty: constant
  double clip_norm = 0;                 // norm of all gradients together; 0: not clipped
  double clip_value = 0;                // per element of a gradient; 0: not clipped
  int64_t warmup = 0;                   // updates in which the rate rises to that of the schedule
  int64_t accumulate = 1;               // batches of an update, whose gradients are averaged
  double label_smoothing = 0;           // share of the labels that is spread over all classes
  std::optional<ElementType> autocast;  // type of autocast in the forward pass
  Capture capture = Capture::kNone;
  int64_t graph_breaks = 0;  // with kForwardBackward, between stages of the model
  FeedOptions feed;          // if it advances, each step has its own batches; otherwise all have the same
  bool metrics = true;       // false: no value is fetched, and metrics are 0
  // Files of the whole state of the training, to start from and to write at the end; empty: none.
  std::string load_checkpoint, save_checkpoint;
};

// Returns the names that TrainingOptions::optimizer may have.
std::vector<std::string> OptimizerNames();
std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainingOptions& options, const nn::ParameterRegistry& registry);

// A model on one device.
struct Replica {
  DeviceState* device = nullptr;
  const Model* model = nullptr;
  const nn::ParameterRegistry* registry = nullptr;
  int64_t first_example = 0;  // of its first batch
};

// Forward, backward and update of one replica on its batches.
class TrainingStep {
 public:
  // `replicas`: number of those that train together.
  static absl::StatusOr<std::unique_ptr<TrainingStep>> Create(Tracer* tracer, const Replica& replica,
                                                              const TrainingOptions& options, int64_t replicas);

  // Records a step, without its marker; or runs a captured one.
  absl::Status Record();
  // Records the graph of a step as a whole, however it is captured.
  absl::Status RecordWhole();
  // Marks the step.
  absl::Status EndStep();
  // Returns what was captured: calls, replays and reasons for traces. Empty without capture.
  std::string CaptureReport() const;

  // The batches of the next step, unless a feed gives each its own.
  const std::vector<Batch>& batches() const { return batches_; }

  nn::TrainingState state() { return {replica_.device, replica_.registry, optimizer_.get(), &scheduler_}; }

  // Logits of the first batch, loss and gradients of the last recorded step.
  const Tensor& logits() const { return logits_; }
  const Tensor& loss() const { return loss_; }
  const Tensors& gradients() const { return gradients_; }

 private:
  TrainingStep(Tracer* tracer, const Replica& replica, const TrainingOptions& options, nn::LrSchedule schedule);

  Tracer& tracer_;
  const Replica replica_;
  const TrainingOptions options_;
  bool reduce_ = false;
  FeedRange range_;                  // of the batches of all steps
  std::unique_ptr<BatchFeed> feed_;  // null: batches_ are those of every step
  std::vector<Batch> batches_;
  const std::unique_ptr<nn::Optimizer> optimizer_;
  absl::Status TakeBatches();
  absl::Status Forward(const Batch& batch);
  absl::Status Backward();
  void Update();
  absl::Status RunWhole();
  absl::Status RunCaptured();
  void CaptureParts();
  absl::Status ForwardSegment(size_t segment);
  absl::Status BackwardSegment(size_t segment);

  nn::LrScheduler scheduler_;
  CapturedSequence captured_;
  std::unique_ptr<SegmentedModel> segments_;  // with kForwardBackward
  Tensor batch_loss_;                         // of the last forward
  Tensor logits_, loss_;
  Tensors gradients_;
};

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_TRAINING_STEP_H_
