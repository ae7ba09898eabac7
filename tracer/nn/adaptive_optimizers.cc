// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/adaptive_optimizers.h"

#include <algorithm>
#include <cmath>

#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"

namespace hlokit::lazy::nn {
namespace {

// Returns the square root of the mean square of all elements.
Tensor RootMeanSquare(const Tensor& t) {
  const double count = static_cast<double>(std::max<int64_t>(t.numel(), 1));
  return InvokeOp(Op::linalg_vector_norm, t) * Scalar(1 / std::sqrt(count));
}

// Returns the mean square along a dimension, kept.
Tensor MeanSquare(const Tensor& t, int64_t dim) {
  const double count = static_cast<double>(std::max<int64_t>(t.size(dim), 1));
  return Sum(t * t, {dim}, true) * Scalar(1 / count);
}

// Moves an average towards a value. `weight`: of the value, a number or a tensor of rank 0.
void MoveTowards(const Tensor& average, const Tensor& value, const Tensor& weight) {
  WriteInPlace(average, average + (value - average) * weight);
}
void MoveTowards(const Tensor& average, const Tensor& value, double weight) {
  WriteInPlace(average, Add(average, value - average, weight));
}

}  // namespace

// ---- RMSprop ----

RmsProp::RmsProp(const std::vector<ParameterGroup<RmsPropOptions>>& groups)
    : GroupedOptimizer(groups, {"square_avg", "momentum_buffer", "grad_avg"}, true) {}

void RmsProp::set_momentum(double value) {
  for (RmsPropOptions& o : all_options()) o.momentum = value;
}

void RmsProp::Update(size_t i, const Tensor& p, Tensor g) {
  const RmsPropOptions& o = options(i);
  ParameterState& s = state(i);
  Tensor &square = s.tensors[0], &buffer = s.tensors[1], &mean = s.tensors[2];
  if (!square.defined()) square = ZerosLike(p);
  if (o.momentum > 0 && !buffer.defined()) buffer = ZerosLike(p);
  if (o.centered && !mean.defined()) mean = ZerosLike(p);
  ++s.step;
  if (o.weight_decay != 0) g = Add(g, p, o.weight_decay);
  WriteInPlace(square, InvokeOp(Op::addcmul, square * Scalar(o.alpha), g, g, 1 - o.alpha));
  Tensor variance = square;
  if (o.centered) {
    WriteInPlace(mean, Add(mean * Scalar(o.alpha), g, 1 - o.alpha));
    variance = InvokeOp(Op::addcmul, square, mean, mean, -1);
  }
  const Tensor deviation = Sqrt(variance) + Scalar(o.eps);
  if (o.momentum > 0) {
    WriteInPlace(buffer, InvokeOp(Op::addcdiv, buffer * Scalar(o.momentum), g, deviation));
    WriteInPlace(p, Add(p, buffer, -o.lr));
  } else {
    WriteInPlace(p, InvokeOp(Op::addcdiv, p, g, deviation, -o.lr));
  }
}

// ---- Adagrad ----

Adagrad::Adagrad(const std::vector<ParameterGroup<AdagradOptions>>& groups) : GroupedOptimizer(groups, {"sum"}, true) {}

void Adagrad::Update(size_t i, const Tensor& p, Tensor g) {
  const AdagradOptions& o = options(i);
  ParameterState& s = state(i);
  Tensor& sum = s.tensors[0];
  if (!sum.defined()) sum = FullLike(p, o.initial_accumulator_value);
  ++s.step;
  if (o.weight_decay != 0) g = Add(g, p, o.weight_decay);
  const double lr = o.lr / (1 + static_cast<double>(s.step - 1) * o.lr_decay);
  WriteInPlace(sum, InvokeOp(Op::addcmul, sum, g, g));
  WriteInPlace(p, InvokeOp(Op::addcdiv, p, g, Sqrt(sum) + Scalar(o.eps), -lr));
}

// ---- Adafactor ----

Adafactor::Adafactor(const std::vector<ParameterGroup<AdafactorOptions>>& groups)
    : GroupedOptimizer(groups, {"row_var", "col_var", "variance"}, true) {}

IntList Adafactor::StateSizes(size_t k, const Tensor& parameter) const {
  IntList sizes = Optimizer::StateSizes(k, parameter);
  if (k < 2 && sizes.size() > 1) sizes[sizes.size() - (k == 0 ? 1 : 2)] = 1;
  return sizes;
}

void Adafactor::Update(size_t i, const Tensor& p, Tensor g) {
  const AdafactorOptions& o = options(i);
  ParameterState& s = state(i);
  const size_t first = p.dim() > 1 ? 0 : 2, last = p.dim() > 1 ? 1 : 2;
  for (size_t k = first; k <= last; ++k) {
    if (!s.tensors[k].defined()) s.tensors[k] = InvokeOp(Op::new_zeros, p, StateSizes(k, p));
  }
  ++s.step;
  const double eps1 = o.eps1.value_or(EpsilonOf(p.dtype()));
  Tensor scale = InvokeOp(Op::clamp, RootMeanSquare(p), o.eps2);
  if (o.weight_decay != 0) WriteInPlace(p, p * Scalar(1 - o.lr * o.weight_decay));
  Tensor variance;
  // `weight`: of the new second moments.
  const auto estimate = [&](const auto& weight) {
    if (p.dim() > 1) {
      MoveTowards(s.tensors[0], MeanSquare(g, -1), weight);
      MoveTowards(s.tensors[1], MeanSquare(g, -2), weight);
      const Tensor mean = InvokeOp(Op::clamp, Mean(s.tensors[0], {-2}, true), eps1);
      variance = s.tensors[0] * s.tensors[1] / mean;
    } else {
      MoveTowards(s.tensors[2], g * g, weight);
      variance = s.tensors[2];
    }
  };
  if (o.capturable) {
    const Tensor& step = CountOnDevice(i);
    scale = scale * InvokeOp(Op::clamp_max, Rsqrt(step), o.lr);
    estimate(InvokeOp(Op::pow_Tensor_Scalar, step, o.beta2_decay));
  } else {
    const double step = static_cast<double>(s.step);
    scale = scale * Scalar(std::min(o.lr, 1 / std::sqrt(step)));
    estimate(std::pow(step, o.beta2_decay));
  }
  const Tensor update = Rsqrt(InvokeOp(Op::clamp, variance, eps1 * eps1)) * g;
  const Tensor excess = InvokeOp(Op::clamp, RootMeanSquare(update) * Scalar(1 / o.d), 1);
  WriteInPlace(p, p - update * (scale / excess));
}

// ---- LAMB ----

Lamb::Lamb(const std::vector<ParameterGroup<LambOptions>>& groups)
    : GroupedOptimizer(groups, {"exp_avg", "exp_avg_sq"}, true) {}

void Lamb::set_momentum(double value) {
  for (LambOptions& o : all_options()) o.beta1 = value;
}

void Lamb::Update(size_t i, const Tensor& p, Tensor g) {
  const LambOptions& o = options(i);
  ParameterState& s = state(i);
  const auto [mean, square] = UpdateMoments(i, p, g, o.beta1, o.beta2);
  Tensor unbiased, variance;
  if (o.capturable) {
    const Tensor& step = CountOnDevice(i);
    unbiased = mean / BiasCorrection(step, o.beta1);
    variance = square / BiasCorrection(step, o.beta2);
  } else {
    const double step = static_cast<double>(s.step);
    unbiased = mean * Scalar(1 / (1 - std::pow(o.beta1, step)));
    variance = square * Scalar(1 / (1 - std::pow(o.beta2, step)));
  }
  Tensor update = unbiased / (Sqrt(variance) + Scalar(o.eps));
  if (o.weight_decay != 0) update = Add(update, p, o.weight_decay);
  const Tensor norm = InvokeOp(Op::linalg_vector_norm, p), step_norm = InvokeOp(Op::linalg_vector_norm, update);
  // 1 where a norm is 0: a parameter of zeros could not leave them.
  const Tensor ratio = Where(And(Gt(norm, 0), Gt(step_norm, 0)), norm / step_norm, 1);
  WriteInPlace(p, Add(p, update * ratio, -o.lr));
}

}  // namespace hlokit::lazy::nn
