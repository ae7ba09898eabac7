// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {
namespace {

// Calls `load` with the parameter number, the kind ("exp_avg") and the value of each entry.
absl::Status LoadEntries(const Tensors& parameters, absl::Span<const NamedValue> values,
                         absl::Span<const std::string_view> kinds,
                         const std::function<void(size_t, std::string_view, const Literal&)>& load) {
  for (const NamedValue& value : values) {
    const size_t dot = std::min(value.name.find('.'), value.name.size());
    const std::string_view kind = std::string_view(value.name).substr(std::min(dot + 1, value.name.size()));
    size_t number = 0;
    bool fits = dot > 0 && dot < 10;
    for (size_t i = 0; fits && i < dot; ++i) {
      fits = value.name[i] >= '0' && value.name[i] <= '9';
      number = number * 10 + static_cast<size_t>(value.name[i] - '0');
    }
    if (!fits || number >= parameters.size() || std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      return absl::InvalidArgumentError(StrCat("the optimizer has no state named ", value.name));
    }
    const Shape shape = value.value.shape();
    const bool count = kind == "step";
    if (count ? shape.element_count() != 1
              : shape.dims() != parameters[number].sizes() || shape.element_type() != parameters[number].dtype()) {
      return absl::InvalidArgumentError(
          StrCat("the optimizer's ", value.name, " has another shape than its parameter"));
    }
    load(number, kind, value.value);
  }
  return absl::OkStatus();
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

void Optimizer::Step() {
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

Sgd::Sgd(Tensors parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters)), options_(options), buffers_(count()) {
  lr = options.lr;
}

void Sgd::Update(size_t i, const Tensor& p, Tensor g) {
  if (options_.weight_decay != 0) g = Add(g, p, options_.weight_decay);
  if (options_.momentum != 0) {
    Tensor& buffer = buffers_[i];
    if (!buffer.defined()) {
      buffer = InvokeOp(Op::clone, g);
    } else {
      WriteInPlace(buffer, Add(buffer * Scalar(options_.momentum), g, 1 - options_.dampening));
    }
    g = options_.nesterov ? Add(g, buffer, options_.momentum) : buffer;
  }
  WriteInPlace(p, Add(p, g, -lr));
}

std::vector<NamedTensor> Sgd::State() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].defined()) state.push_back({StrCat(i, ".momentum_buffer"), buffers_[i]});
  }
  return state;
}

absl::Status Sgd::LoadState(absl::Span<const NamedValue> values) {
  return LoadEntries(parameters(), values, {"momentum_buffer"},
                     [&](size_t i, std::string_view, const Literal& v) { buffers_[i] = Upload(parameters()[i], v); });
}

Adam::Adam(Tensors parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters)), options_(options), states_(count()) {
  lr = options.lr;
}

void Adam::Update(size_t i, const Tensor& p, Tensor g) {
  AdamState& s = states_[i];
  if (!s.mean.defined()) {
    s.mean = ZerosLike(p);
    s.square = ZerosLike(p);
  }
  if (options_.capturable && !s.device_step.defined()) {
    const Shape number = p.device()->ScalarShape(ElementType::kF32);
    s.device_step = Upload(p, FilledLiteral(number, static_cast<double>(s.step)));
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
  WriteInPlace(s.square, InvokeOp(Op::addcmul, s.square * Scalar(options_.beta2), g, g, 1 - options_.beta2));
  if (options_.capturable) {
    const DeviceGuard guard(p.device());
    // torch's order of ops, but 1 - beta^step without cancellation.
    WriteInPlace(s.device_step, s.device_step + Scalar(1));
    const auto correction = [&](double beta) { return -InvokeOp(Op::expm1, s.device_step * Scalar(std::log(beta))); };
    const Tensor size = Reciprocal(correction(options_.beta1)) * Scalar(-lr);
    const Tensor scale = size * Sqrt(correction(options_.beta2));
    const Tensor deviation = Sqrt(s.square) / scale + Reciprocal(size) * Scalar(options_.eps);
    WriteInPlace(p, InvokeOp(Op::addcdiv, p, s.mean, deviation, 1));
    return;
  }
  const double step = static_cast<double>(s.step);
  const double correction1 = 1 - std::pow(options_.beta1, step);
  const double correction2 = 1 - std::pow(options_.beta2, step);
  const Tensor deviation = Sqrt(s.square) / Scalar(std::sqrt(correction2)) + Scalar(options_.eps);
  WriteInPlace(p, InvokeOp(Op::addcdiv, p, s.mean, deviation, -lr / correction1));
}

std::vector<NamedTensor> Adam::State() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < states_.size(); ++i) {
    const AdamState& s = states_[i];
    if (!s.mean.defined()) continue;
    const Shape number = s.mean.device()->ScalarShape(ElementType::kF32);
    state.push_back({StrCat(i, ".step"), s.device_step.defined()
                                             ? s.device_step
                                             : Upload(s.mean, FilledLiteral(number, static_cast<double>(s.step)))});
    state.push_back({StrCat(i, ".exp_avg"), s.mean});
    state.push_back({StrCat(i, ".exp_avg_sq"), s.square});
  }
  return state;
}

absl::Status Adam::LoadState(absl::Span<const NamedValue> values) {
  return LoadEntries(parameters(), values, {"step", "exp_avg", "exp_avg_sq"},
                     [&](size_t i, std::string_view kind, const Literal& v) {
                       AdamState& s = states_[i];
                       if (kind == "step") {
                         s.step = LoadScalar(v.shape().element_type(), v.data()).ToInt();
                         s.device_step = Tensor();
                       } else {
                         (kind == "exp_avg" ? s.mean : s.square) = Upload(parameters()[i], v);
                       }
                     });
}

Tensor ClipGradNorm(const Tensors& parameters, double max_norm, double norm_type) {
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

void ClipGradValue(const Tensors& parameters, double clip_value) {
  const NoGradGuard no_grad;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) WriteInPlace(p.grad(), InvokeOp(Op::clamp, p.grad(), -clip_value, clip_value));
  }
}

}  // namespace hlokit::lazy::nn
