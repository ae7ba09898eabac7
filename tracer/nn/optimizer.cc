#include "tracer/nn/optimizer.h"

#include <cmath>
#include <utility>

#include "tracer/autograd/function.h"
#include "tracer/functions.h"

namespace hlokit::lazy::nn {

void Optimizer::Step() {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (Tensor gradient = parameters_[i].grad(); gradient.defined()) Update(i, parameters_[i], std::move(gradient));
  }
}

void Optimizer::ZeroGrad() {
  for (const Tensor& p : parameters_) p.set_grad(Tensor());
}

Sgd::Sgd(Tensors parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters)), options_(options), buffers_(count()) {
  lr = options.lr;
}

void Sgd::Update(size_t i, const Tensor& p, Tensor g) {
  if (options_.weight_decay != 0) g = Add(g, p, options_.weight_decay);
  if (options_.momentum != 0) {
    Tensor& buffer = buffers_[i];
    if (!buffer.defined()) {
      buffer = Run(Op::clone, g);
    } else {
      WriteInPlace(buffer, Add(buffer * Scalar(options_.momentum), g, 1 - options_.dampening));
    }
    g = options_.nesterov ? Add(g, buffer, options_.momentum) : buffer;
  }
  WriteInPlace(p, Add(p, g, -lr));
}

Adam::Adam(Tensors parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters)), options_(options), states_(count()) {
  lr = options.lr;
}

void Adam::Update(size_t i, const Tensor& p, Tensor g) {
  State& s = states_[i];
  if (!s.mean.defined()) {
    s.mean = ZerosLike(p);
    s.square = ZerosLike(p);
  }
  ++s.step;
  if (options_.weight_decay != 0) {
    if (options_.decoupled) {
      WriteInPlace(p, p * Scalar(1 - lr * options_.weight_decay));
    } else {
      g = Add(g, p, options_.weight_decay);
    }
  }
  WriteInPlace(s.mean, Add(s.mean * Scalar(options_.beta1), g, 1 - options_.beta1));
  WriteInPlace(s.square, Run(Op::addcmul, s.square * Scalar(options_.beta2), g, g, 1 - options_.beta2));
  const double step = static_cast<double>(s.step);
  const double correction1 = 1 - std::pow(options_.beta1, step);
  const double correction2 = 1 - std::pow(options_.beta2, step);
  const Tensor deviation = Sqrt(s.square) / Scalar(std::sqrt(correction2)) + Scalar(options_.eps);
  WriteInPlace(p, Run(Op::addcdiv, p, s.mean, deviation, -lr / correction1));
}

Tensor ClipGradNorm(const Tensors& parameters, double max_norm) {
  const NoGradGuard no_grad;
  Tensors norms;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) norms.push_back(Run(Op::linalg_vector_norm, p.grad(), 2.0));
  }
  if (norms.empty()) return Tensor();
  const Tensor total = Run(Op::linalg_vector_norm, Run(Op::stack, norms), 2.0);
  const Tensor factor = Run(Op::clamp_max, Reciprocal(total + Scalar(1e-6)) * Scalar(max_norm), 1.0);
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) WriteInPlace(p.grad(), p.grad() * factor);
  }
  return total;
}

}  // namespace hlokit::lazy::nn
