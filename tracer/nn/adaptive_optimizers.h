// SPDX-License-Identifier: Apache-2.0
// Optimizers with a rate for each element: RMSprop and Adagrad as in torch.optim, Adafactor as in torch 2.5, LAMB. All
// of their numbers stay on the device.
#ifndef HLOKIT_TRACER_NN_ADAPTIVE_OPTIMIZERS_H_
#define HLOKIT_TRACER_NN_ADAPTIVE_OPTIMIZERS_H_

#include <optional>
#include <utility>
#include <vector>

#include "tracer/nn/optimizer.h"

namespace hlokit::lazy::nn {

struct RmsPropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

class RmsProp : public GroupedOptimizer<RmsPropOptions> {
 public:
  explicit RmsProp(const std::vector<ParameterGroup<RmsPropOptions>>& groups);
  RmsProp(Tensors parameters, const RmsPropOptions& options) : RmsProp({{std::move(parameters), options}}) {}
  void set_momentum(double value) override;

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
};

struct AdagradOptions {
  double lr = 0.01;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
};

class Adagrad : public GroupedOptimizer<AdagradOptions> {
 public:
  explicit Adagrad(const std::vector<ParameterGroup<AdagradOptions>>& groups);
  Adagrad(Tensors parameters, const AdagradOptions& options) : Adagrad({{std::move(parameters), options}}) {}
  void set_momentum(double) override {}

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
};

// Shazeer and Stern 2018: the second moments of a matrix are the product of those of its rows and of its columns.
struct AdafactorOptions {
  double lr = 0.01;
  double beta2_decay = -0.8;
  std::optional<double> eps1 =
      std::nullopt;    // the smallest deviation; none: the distance of 1 from the next number of the type
  double eps2 = 1e-3;  // the smallest scale of a parameter
  double d = 1;        // the largest root mean square of an update
  double weight_decay = 0;
  bool capturable = false;  // as in AdamOptions
};

class Adafactor : public GroupedOptimizer<AdafactorOptions> {
 public:
  explicit Adafactor(const std::vector<ParameterGroup<AdafactorOptions>>& groups);
  Adafactor(Tensors parameters, const AdafactorOptions& options) : Adafactor({{std::move(parameters), options}}) {}
  void set_momentum(double) override {}

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
  IntList StateSizes(size_t k, const Tensor& parameter) const override;
};

// You et al. 2019: Adam's update, scaled by the ratio of the norms of parameter and update.
struct LambOptions {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
  bool capturable = false;  // as in AdamOptions
};

class Lamb : public GroupedOptimizer<LambOptions> {
 public:
  explicit Lamb(const std::vector<ParameterGroup<LambOptions>>& groups);
  Lamb(Tensors parameters, const LambOptions& options) : Lamb({{std::move(parameters), options}}) {}
  void set_momentum(double value) override;

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_ADAPTIVE_OPTIMIZERS_H_
