// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/parameter_registry.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/core/saturating.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {
namespace {

DeviceState& DeviceOf(Tracer& tracer) { return CurrentDevice() != nullptr ? *CurrentDevice() : *tracer.device(); }

std::string_view ModuleOf(std::string_view parameter) {
  return parameter.substr(0, std::min(parameter.rfind('.'), parameter.size()));
}

}  // namespace

Initializer PatternInitializer(InitPattern formula, double gain) {
  return [formula, gain](const ParameterSpec& spec, Literal* out) {
    const absl::Span<const int64_t> dims = out->shape().dims();
    double scale = 0.01, offset = 0;
    if (dims.size() >= 2) {
      double fan_in = 1;
      for (size_t i = 1; i < dims.size(); ++i) fan_in *= static_cast<double>(dims[i]);
      scale = std::sqrt(gain / fan_in);
    } else if (spec.kind == ParameterKind::kNormWeight || spec.kind == ParameterKind::kResidualNormWeight) {
      offset = spec.kind == ParameterKind::kNormWeight ? 1 : 0.2;
      scale = 0.1 * offset;
    }
    const absl::Span<float> values = out->values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(
          offset + scale * PatternValue(formula, static_cast<uint32_t>(spec.number), static_cast<uint32_t>(i)));
    }
  };
}

Tensor ParameterRegistry::AddParameter(std::string name, Dims dims, ParameterKind kind) {
  DeviceState& device = DeviceOf(*tracer_);
  const Shape initial = device.ArrayShape(ElementType::kF32, dims), shape = device.ArrayShape(type_, dims);
  if (dims.size() >= 2) {
    last_fan_in_ = 1;
    for (int64_t size : dims.subspan(1)) last_fan_in_ = SaturatingMultiply(last_fan_in_, size);
  } else if (parameters_.empty() || ModuleOf(parameters_.back().name) != ModuleOf(name)) {
    last_fan_in_ = 0;  // a bias has that of the weight before it
  }
  const ParameterSpec spec = {name, kind, parameters_.size(), last_fan_in_};
  Tensor t = tracer_->FromGenerator(shape, [initial, shape, spec, initialize = initializer_](Literal* out) {
    if (shape == initial) return initialize(spec, out);
    Literal value = Literal::Zeros(initial);
    initialize(spec, &value);
    *out = Converted(value, shape);
  });
  t.set_requires_grad(true);
  parameters_.push_back({name, t});
  state_.push_back({std::move(name), t});
  return t;
}

Tensor ParameterRegistry::AddFilled(std::string name, Shape shape, double value) {
  Tensor t = tracer_->FromGenerator(shape, [shape, value](Literal* out) { *out = FilledLiteral(shape, value); });
  buffers_.push_back({name, t});
  state_.push_back({std::move(name), t});
  return t;
}

int64_t ParameterRegistry::ByteSize() const {
  int64_t bytes = 0;
  for (const NamedTensor& t : state_) bytes = SaturatingAdd(bytes, hlokit::ByteSize(t.tensor.shape()));
  return bytes;
}

Tensor ParameterRegistry::AddBuffer(std::string name, Dims dims, double value) {
  const ElementType type = type_ == ElementType::kF64 ? type_ : ElementType::kF32;
  return AddFilled(std::move(name), DeviceOf(*tracer_).ArrayShape(type, dims), value);
}

Tensor ParameterRegistry::AddIntegerBuffer(std::string name) {
  return AddFilled(std::move(name), DeviceOf(*tracer_).ScalarShape(ElementType::kS64), 0);
}

}  // namespace hlokit::lazy::nn
