// SPDX-License-Identifier: Apache-2.0
// Optimizers like torch's single-tensor ones: the same ops in the same order on each parameter. Parameters are in
// groups, each with options of its own.
#ifndef HLOKIT_TRACER_NN_OPTIMIZER_H_
#define HLOKIT_TRACER_NN_OPTIMIZER_H_

#include <array>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/arrays/safetensors.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient.
  void Step(const std::source_location& location = std::source_location::current());
  // Clears gradients.
  void ZeroGrad();
  // Learning rates of groups.
  virtual size_t group_count() const = 0;
  virtual double lr(size_t group = 0) const = 0;
  virtual void set_lr(size_t group, double value) = 0;
  void set_lr(double value);  // of all groups
  // Sets the momentum that schedules cycle, of all groups: SGD's and RMSprop's momentum, the beta1 of Adam and LAMB.
  // The others have none.
  virtual void set_momentum(double value) = 0;
  // Returns the optimizer's state for a checkpoint: "NUMBER.momentum_buffer" and the like, with parameter numbers over
  // all groups. Empty before the first step. LoadState accepts the state of an optimizer of the same kind.
  std::vector<NamedTensor> State() const;
  absl::Status LoadState(absl::Span<const interp::NamedValue> values);

  // Returns the parameters of all groups.
  const Tensors& parameters() const { return parameters_; }

 protected:
  // What an optimizer keeps for a parameter: a count of steps, and tensors, named in the order of `names`.
  struct ParameterState {
    int64_t step = 0;
    Tensor device_step;  // if the count is on the device, instead
    std::array<Tensor, 3> tensors;
  };

  // names: of the tensors of a state, at most 3. counts_steps: checkpoints have the count.
  Optimizer(std::vector<std::string_view> names, bool counts_steps)
      : names_(std::move(names)), counts_steps_(counts_steps) {}
  void AddGroup(const Tensors& parameters);
  virtual void Update(size_t i, const Tensor& parameter, Tensor gradient) = 0;
  // Returns the sizes of tensor `k` of a parameter's state.
  virtual IntList StateSizes(size_t k, const Tensor& parameter) const;
  ParameterState& state(size_t i) { return states_[i]; }
  // Adds a step to the count on the device, which replaces that of the host, so that a captured step is replayed.
  // Requires: the host has counted this step. Returns the count, f32.
  const Tensor& CountOnDevice(size_t i);
  // Returns 1 - beta^step, without cancellation.
  static Tensor BiasCorrection(const Tensor& step, double beta);
  // Updates the averages of the gradients and of their squares, state tensors 0 and 1, and the host's count of steps.
  // Returns both averages.
  std::pair<Tensor, Tensor> UpdateMoments(size_t i, const Tensor& parameter, const Tensor& gradient, double beta1,
                                          double beta2);
  size_t group_of(size_t i) const { return groups_[i]; }

 private:
  Tensors parameters_;
  std::vector<size_t> groups_;  // by parameter
  std::vector<ParameterState> states_;
  std::vector<std::string_view> names_;
  bool counts_steps_;
};

// Parameters that are updated with the same options.
template <typename Options>
struct ParameterGroup {
  Tensors parameters;
  Options options;
};

template <typename Options>
class GroupedOptimizer : public Optimizer {
 public:
  size_t group_count() const override { return options_.size(); }
  using Optimizer::set_lr;
  double lr(size_t group = 0) const override { return options_[group].lr; }
  void set_lr(size_t group, double value) override { options_[group].lr = value; }

 protected:
  GroupedOptimizer(const std::vector<ParameterGroup<Options>>& groups, std::vector<std::string_view> names,
                   bool counts_steps)
      : Optimizer(std::move(names), counts_steps) {
    for (const ParameterGroup<Options>& group : groups) {
      AddGroup(group.parameters);
      options_.push_back(group.options);
    }
  }
  // Returns the options of a parameter.
  const Options& options(size_t i) const { return options_[group_of(i)]; }
  std::vector<Options>& all_options() { return options_; }

 private:
  std::vector<Options> options_;
};

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

class Sgd : public GroupedOptimizer<SgdOptions> {
 public:
  explicit Sgd(const std::vector<ParameterGroup<SgdOptions>>& groups);
  Sgd(Tensors parameters, const SgdOptions& options) : Sgd({{std::move(parameters), options}}) {}
  void set_momentum(double value) override;

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
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

class Adam : public GroupedOptimizer<AdamOptions> {
 public:
  explicit Adam(const std::vector<ParameterGroup<AdamOptions>>& groups);
  Adam(Tensors parameters, const AdamOptions& options) : Adam({{std::move(parameters), options}}) {}
  void set_momentum(double value) override;

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
};

// Scales all gradients so that their total norm is at most `max_norm`; returns the norm before. `norm_type` may be
// infinite. Undefined if there are no gradients.
Tensor ClipGradNorm(const Tensors& parameters, double max_norm, double norm_type = 2,
                    const std::source_location& location = std::source_location::current());
// Clamps every element of every gradient to [-clip_value, clip_value].
void ClipGradValue(const Tensors& parameters, double clip_value,
                   const std::source_location& location = std::source_location::current());

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_OPTIMIZER_H_
