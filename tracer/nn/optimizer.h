// SPDX-License-Identifier: Apache-2.0
// Optimizers like torch's single-tensor ones: the same ops in the same order on each parameter.
#ifndef HLOKIT_TRACER_NN_OPTIMIZER_H_
#define HLOKIT_TRACER_NN_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/nn/safetensors.h"

namespace hlokit::lazy::nn {

class Optimizer {
 public:
  explicit Optimizer(Tensors parameters) : parameters_(std::move(parameters)) {}
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient.
  void Step();
  // Clears gradients.
  void ZeroGrad();
  // Sets the momentum that schedules cycle: SGD's momentum, Adam's beta1.
  virtual void set_momentum(double value) = 0;
  // Returns the optimizer's state for a checkpoint: "NUMBER.momentum_buffer" and the like, with parameter numbers.
  // Empty before the first step. LoadState accepts the state of an optimizer of the same kind.
  virtual std::vector<NamedTensor> State() const = 0;
  virtual absl::Status LoadState(absl::Span<const NamedValue> values) = 0;

  const Tensors& parameters() const { return parameters_; }

  double lr = 0.001;

 protected:
  virtual void Update(size_t i, const Tensor& parameter, Tensor gradient) = 0;
  size_t count() const { return parameters_.size(); }

 private:
  Tensors parameters_;
};

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

class Sgd : public Optimizer {
 public:
  Sgd(Tensors parameters, const SgdOptions& options);
  void set_momentum(double value) override { options_.momentum = value; }
  std::vector<NamedTensor> State() const override;
  absl::Status LoadState(absl::Span<const NamedValue> values) override;

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
  SgdOptions options_;
  Tensors buffers_;
};

struct AdamOptions {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW
  // The number of steps is on the device, so that a captured step is replayed.
  bool capturable = false;
};

class Adam : public Optimizer {
 public:
  Adam(Tensors parameters, const AdamOptions& options);
  void set_momentum(double value) override { options_.beta1 = value; }
  std::vector<NamedTensor> State() const override;
  absl::Status LoadState(absl::Span<const NamedValue> values) override;

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
  AdamOptions options_;
  struct AdamState {
    int64_t step = 0;
    Tensor device_step;  // if capturable, instead
    Tensor mean, square;
  };
  std::vector<AdamState> states_;
};

// Scales all gradients so that their total norm is at most `max_norm`; returns the norm before. `norm_type` may be
// infinite. Undefined if there are no gradients.
Tensor ClipGradNorm(const Tensors& parameters, double max_norm, double norm_type = 2);
// Clamps every element of every gradient to [-clip_value, clip_value].
void ClipGradValue(const Tensors& parameters, double clip_value);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_OPTIMIZER_H_
