// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {
namespace {

// Splits "12.exp_avg" into a number and a name; false if it has another form.
bool SplitName(std::string_view text, size_t* number, std::string_view* name) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot >= 10) return false;
  *name = text.substr(dot + 1);
  *number = 0;
  for (char c : text.substr(0, dot)) {
    if (c < '0' || c > '9') return false;
    *number = *number * 10 + static_cast<size_t>(c - '0');
  }
  return true;
}

// Prefetches the parameter and gradient of an iteration after `i`: they were last used a step ago and are not in the
// cache.
void FetchAhead(const Tensors& parameters, size_t i) {
  constexpr size_t kImpl = 9, kValue = 6, kBuffer = 3;
  if (i + kImpl < parameters.size()) __builtin_prefetch(parameters[i + kImpl].impl(), 1);
  if (i + kValue < parameters.size()) {
    const TensorImpl* impl = parameters[i + kValue].impl();
    __builtin_prefetch(impl->data.get(), 1);
    if (impl->grad.defined()) __builtin_prefetch(impl->grad.impl(), 1);
  }
  if (i + kBuffer < parameters.size()) {
    const TensorImpl* impl = parameters[i + kBuffer].impl();
    __builtin_prefetch(impl->data->buffer.get(), 1);
    if (impl->grad.defined()) __builtin_prefetch(impl->grad.impl()->data.get(), 1);
  }
}

Tensor Upload(const Tensor& like, Literal value) {
  const DeviceGuard guard(like.device());
  return like.device()->tracer()->FromLiteral(std::move(value));
}

}  // namespace

void Optimizer::Step(const std::source_location& location) {
  const ScopedSourceLocation site(location);
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    FetchAhead(parameters_, i);
    Tensor gradient = parameters_[i].grad();
    if (!gradient.defined()) continue;
    const DeviceLock lock(gradient.device()->mutex());  // held for all calls and releases of the update
    Update(i, parameters_[i], std::move(gradient));
  }
}

void Optimizer::ZeroGrad() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    FetchAhead(parameters_, i);
    parameters_[i].set_grad(Tensor());
  }
}

void Optimizer::set_lr(double value) {
  for (size_t group = 0; group < group_count(); ++group) set_lr(group, value);
}

void Optimizer::AddGroup(const Tensors& parameters) {
  const size_t group = groups_.empty() ? 0 : groups_.back() + 1;
  parameters_.insert(parameters_.end(), parameters.begin(), parameters.end());
  groups_.resize(parameters_.size(), group);
  states_.resize(parameters_.size());
}

const Tensor& Optimizer::CountOnDevice(size_t i) {
  ParameterState& s = states_[i];
  const DeviceGuard guard(parameters_[i].device());
  if (!s.device_step.defined()) {
    const Shape number = parameters_[i].device()->ScalarShape(ElementType::kF32);
    s.device_step = Upload(parameters_[i], FilledLiteral(number, static_cast<double>(s.step - 1)));
  }
  WriteInPlace(s.device_step, s.device_step + Scalar(1));
  return s.device_step;
}

Tensor Optimizer::BiasCorrection(const Tensor& step, double beta) {
  return -InvokeOp(Op::expm1, step * Scalar(std::log(beta)));
}

std::pair<Tensor, Tensor> Optimizer::UpdateMoments(size_t i, const Tensor& p, const Tensor& g, double beta1,
                                                   double beta2) {
  ParameterState& s = states_[i];
  Tensor &mean = s.tensors[0], &square = s.tensors[1];
  if (!mean.defined()) {
    mean = ZerosLike(p);
    square = ZerosLike(p);
  }
  ++s.step;
  WriteInPlace(mean, Add(mean * Scalar(beta1), g, 1 - beta1));
  WriteInPlace(square, InvokeOp(Op::addcmul, square * Scalar(beta2), g, g, 1 - beta2));
  return {mean, square};
}

IntList Optimizer::StateSizes(size_t, const Tensor& parameter) const {
  return IntList(parameter.sizes().begin(), parameter.sizes().end());
}

std::vector<NamedTensor> Optimizer::State() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < states_.size(); ++i) {
    const ParameterState& s = states_[i];
    if (std::none_of(s.tensors.begin(), s.tensors.end(), [](const Tensor& t) { return t.defined(); })) continue;
    if (counts_steps_) {
      const Shape number = parameters_[i].device()->ScalarShape(ElementType::kF32);
      state.push_back(
          {StrCat(i, ".step"), s.device_step.defined()
                                   ? s.device_step
                                   : Upload(parameters_[i], FilledLiteral(number, static_cast<double>(s.step)))});
    }
    for (size_t k = 0; k < names_.size(); ++k) {
      if (s.tensors[k].defined()) state.push_back({StrCat(i, ".", names_[k]), s.tensors[k]});
    }
  }
  return state;
}

absl::Status Optimizer::LoadState(absl::Span<const interp::NamedValue> values) {
  for (const interp::NamedValue& value : values) {
    size_t i = 0;
    std::string_view name;
    const bool split = SplitName(value.name, &i, &name) && i < parameters_.size();
    const bool count = split && counts_steps_ && name == "step";
    const size_t k = static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (!split || (!count && k == names_.size())) {
      return absl::InvalidArgumentError(StrCat("the optimizer has no state named ", value.name));
    }
    const Shape shape = value.value.shape();
    if (count ? shape.element_count() != 1
              : shape.dims() != Dims(StateSizes(k, parameters_[i])) || shape.element_type() != parameters_[i].dtype()) {
      return absl::InvalidArgumentError(
          StrCat("the optimizer's ", value.name, " has another shape than its parameter"));
    }
    if (count) {
      states_[i].step = LoadScalar(shape.element_type(), value.value.data()).ToInt();
      states_[i].device_step = Tensor();
    } else {
      states_[i].tensors[k] = Upload(parameters_[i], value.value);
    }
  }
  return absl::OkStatus();
}

Sgd::Sgd(const std::vector<ParameterGroup<SgdOptions>>& groups)
    : GroupedOptimizer(groups, {"momentum_buffer"}, false) {}

void Sgd::set_momentum(double value) {
  for (SgdOptions& o : all_options()) o.momentum = value;
}

void Sgd::Update(size_t i, const Tensor& p, Tensor g) {
  const SgdOptions& o = options(i);
  if (o.weight_decay != 0) g = Add(g, p, o.weight_decay);
  if (o.momentum != 0) {
    Tensor& buffer = state(i).tensors[0];
    if (!buffer.defined()) {
      buffer = InvokeOp(Op::clone, g);
    } else {
      WriteInPlace(buffer, Add(buffer * Scalar(o.momentum), g, 1 - o.dampening));
    }
    g = o.nesterov ? Add(g, buffer, o.momentum) : buffer;
  }
  WriteInPlace(p, Add(p, g, -o.lr));
}

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups)
    : GroupedOptimizer(groups, {"exp_avg", "exp_avg_sq"}, true) {}

void Adam::set_momentum(double value) {
  for (AdamOptions& o : all_options()) o.beta1 = value;
}

void Adam::Update(size_t i, const Tensor& p, Tensor g) {
  const AdamOptions& o = options(i);
  ParameterState& s = state(i);
  if (o.weight_decay != 0) {
    if (o.decoupled) {
      WriteInPlace(p, p * Scalar(1 - o.lr * o.weight_decay));
    } else {
      g = Add(g, p, o.weight_decay);
    }
  }
  const auto [mean, square] = UpdateMoments(i, p, g, o.beta1, o.beta2);
  if (o.capturable) {
    // torch's order of ops.
    const Tensor& step = CountOnDevice(i);
    const Tensor size = Reciprocal(BiasCorrection(step, o.beta1)) * Scalar(-o.lr);
    const Tensor scale = size * Sqrt(BiasCorrection(step, o.beta2));
    const Tensor deviation = Sqrt(square) / scale + Reciprocal(size) * Scalar(o.eps);
    WriteInPlace(p, InvokeOp(Op::addcdiv, p, mean, deviation, 1));
    return;
  }
  const double step = static_cast<double>(s.step);
  const double correction1 = 1 - std::pow(o.beta1, step);
  const double correction2 = 1 - std::pow(o.beta2, step);
  const Tensor deviation = Sqrt(square) / Scalar(std::sqrt(correction2)) + Scalar(o.eps);
  WriteInPlace(p, InvokeOp(Op::addcdiv, p, mean, deviation, -o.lr / correction1));
}

Tensor ClipGradNorm(const Tensors& parameters, double max_norm, double norm_type,
                    const std::source_location& location) {
  const ScopedSourceLocation site(location);
  const NoGradGuard no_grad;
  Tensors norms;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) norms.push_back(InvokeOp(Op::linalg_vector_norm, p.grad(), norm_type));
  }
  if (norms.empty()) return Tensor();
  const Tensor total = InvokeOp(Op::linalg_vector_norm, InvokeOp(Op::stack, norms), norm_type);
  const Tensor factor = InvokeOp(Op::clamp_max, Reciprocal(total + Scalar(1e-6)) * Scalar(max_norm), 1.0);
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) WriteInPlace(p.grad(), p.grad() * factor);
  }
  return total;
}

void ClipGradValue(const Tensors& parameters, double clip_value, const std::source_location& location) {
  const ScopedSourceLocation site(location);
  const NoGradGuard no_grad;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) WriteInPlace(p.grad(), InvokeOp(Op::clamp, p.grad(), -clip_value, clip_value));
  }
}

}  // namespace hlokit::lazy::nn
