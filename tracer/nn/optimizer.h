// Optimizers, as torch's single-tensor ones: the same ops in the same order on each parameter.
#ifndef HLOKIT_TRACER_NN_OPTIMIZER_H_
#define HLOKIT_TRACER_NN_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "tracer/tensor.h"
#include "tracer/value.h"

namespace hlokit::lazy::nn {

class Optimizer {
 public:
  explicit Optimizer(Tensors parameters) : parameters_(std::move(parameters)) {}
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient.
  void Step();
  // Forgets gradients.
  void ZeroGrad();

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
};

class Adam : public Optimizer {
 public:
  Adam(Tensors parameters, const AdamOptions& options);

 private:
  void Update(size_t i, const Tensor& parameter, Tensor gradient) override;
  AdamOptions options_;
  struct State {
    int64_t step = 0;
    Tensor mean, square;
  };
  std::vector<State> states_;
};

// Scales all gradients so that their norm together is at most `max_norm`; gives the norm before.
Tensor ClipGradNorm(const Tensors& parameters, double max_norm);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_OPTIMIZER_H_
