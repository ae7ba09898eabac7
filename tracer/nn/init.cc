// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/init.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/literal.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/nn/distributions.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::nn::init {
namespace {

struct Generator {
  uint64_t seed = 0, streams = 0;
};
thread_local Generator generator;

std::vector<int64_t> DimsOf(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }

Tensor Failed(const Tensor& tensor, std::string message) {
  tensor.device()->tracer()->SetError(absl::InvalidArgumentError(std::move(message)));
  return Tensor();
}

// Sets the value of the tensor to one that is made when it is read. `fill` sets an f32 or f64 array from zeros.
Tensor Assign(const Tensor& tensor, std::function<void(Literal*)> fill) {
  if (!tensor.defined()) return Tensor();
  if (!IsFloat(tensor.dtype())) return Failed(tensor, "values of this type are not initialized");
  DeviceState& device = *tensor.device();
  const DeviceGuard guard(&device);
  const Shape shape = device.ArrayShape(tensor.dtype(), tensor.sizes());
  const bool wide = tensor.dtype() == ElementType::kF64;
  const Shape filled = wide ? shape : device.ArrayShape(ElementType::kF32, tensor.sizes());
  const Tensor fresh = device.tracer()->FromGenerator(shape, [shape, filled, fill = std::move(fill)](Literal* out) {
    if (shape == filled) return fill(out);
    Literal value = Literal::Zeros(filled);
    fill(&value);
    *out = Converted(value, shape);
  });
  const NoGradGuard no_grad;
  if (tensor.impl()->view != nullptr) {
    WriteInPlace(tensor, fresh);
    return tensor;
  }
  const DeviceLock lock(device.mutex());
  TensorData* const data = tensor.impl()->data.get();
  Materialize(data, fresh.impl()->data->buffer);
  ++data->version;
  return tensor;
}

template <typename Store>
void ForElements(Literal* out, Store store) {
  if (out->shape().element_type() == ElementType::kF64) {
    store(out->values<double>());
  } else {
    store(out->values<float>());
  }
}

Tensor Drawn(const Tensor& tensor, const Distribution& distribution) {
  const Generator own = {generator.seed, generator.streams};
  if (distribution.kind != Distribution::Kind::kConstant) ++generator.streams;
  return Assign(tensor, [own, distribution](Literal* out) {
    ForElements(out, [&](auto values) { Fill(distribution, own.seed, own.streams, values); });
  });
}

Tensor WithFans(const Tensor& tensor, const std::function<Distribution(double fan_in, double fan_out)>& distribution) {
  if (!tensor.defined()) return Tensor();
  if (tensor.dim() < 2) {
    return Failed(tensor, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  }
  if (tensor.numel() == 0) return tensor;
  const auto [fan_in, fan_out] = FansOf(DimsOf(tensor));
  return Drawn(tensor, distribution(fan_in, fan_out));
}

Tensor Kaiming(const Tensor& tensor, double a, FanMode mode, std::string_view nonlinearity, bool uniform) {
  const absl::StatusOr<double> gain = calculate_gain(nonlinearity, a);
  if (!tensor.defined()) return Tensor();
  if (!gain.ok()) return Failed(tensor, std::string(gain.status().message()));
  return WithFans(tensor, [&](double fan_in, double fan_out) {
    const double std = *gain / std::sqrt(mode == FanMode::kFanIn ? fan_in : fan_out);
    const double bound = std::sqrt(3.0) * std;
    return uniform ? Distribution::Uniform(-bound, bound) : Distribution::Normal(0, std);
  });
}

// Orthonormalizes the columns of a matrix of rows >= columns, in row-major order, with signs such that the triangular
// factor has a positive diagonal: modified Gram-Schmidt, twice, since once loses orthogonality.
void Orthonormalize(std::vector<double>& q, size_t rows, size_t columns) {
  for (size_t j = 0; j < columns; ++j) {
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t k = 0; k < j; ++k) {
        double dot = 0;
        for (size_t i = 0; i < rows; ++i) dot += q[i * columns + k] * q[i * columns + j];
        for (size_t i = 0; i < rows; ++i) q[i * columns + j] -= dot * q[i * columns + k];
      }
    }
    double squares = 0;
    for (size_t i = 0; i < rows; ++i) squares += q[i * columns + j] * q[i * columns + j];
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (size_t i = 0; i < rows; ++i) q[i * columns + j] *= scale;
  }
}

}  // namespace

void manual_seed(uint64_t seed) { generator = {seed, 0}; }

absl::StatusOr<double> calculate_gain(std::string_view nonlinearity, double param) {
  constexpr std::string_view kLinear[] = {"linear",           "conv1d",           "conv2d",           "conv3d",
                                          "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"};
  if (std::find(std::begin(kLinear), std::end(kLinear), nonlinearity) != std::end(kLinear)) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + param * param));
  if (nonlinearity == "selu") return 3.0 / 4;
  return absl::InvalidArgumentError(StrCat("Unsupported nonlinearity ", nonlinearity));
}

std::pair<double, double> FansOf(absl::Span<const int64_t> dims) {
  double field = 1;
  for (size_t i = 2; i < dims.size(); ++i) field *= static_cast<double>(dims[i]);
  return {static_cast<double>(dims[1]) * field, static_cast<double>(dims[0]) * field};
}

Tensor uniform_(const Tensor& tensor, double a, double b) { return Drawn(tensor, Distribution::Uniform(a, b)); }

Tensor normal_(const Tensor& tensor, double mean, double std) { return Drawn(tensor, Distribution::Normal(mean, std)); }

Tensor trunc_normal_(const Tensor& tensor, double mean, double std, double a, double b) {
  return Drawn(tensor, Distribution::TruncatedNormal(mean, std, a, b));
}

Tensor constant_(const Tensor& tensor, double value) { return Drawn(tensor, Distribution::Constant(value)); }

Tensor ones_(const Tensor& tensor) { return constant_(tensor, 1); }

Tensor zeros_(const Tensor& tensor) { return constant_(tensor, 0); }

Tensor eye_(const Tensor& tensor) {
  if (tensor.defined() && tensor.dim() != 2) return Failed(tensor, "Only tensors with 2 dimensions are supported");
  return Assign(tensor, [](Literal* out) {
    const auto columns = static_cast<size_t>(out->shape().dims()[1]);
    ForElements(out, [&](auto values) {
      for (size_t i = 0; i < columns && i * (columns + 1) < values.size(); ++i) values[i * (columns + 1)] = 1;
    });
  });
}

Tensor dirac_(const Tensor& tensor, int64_t groups) {
  if (!tensor.defined()) return Tensor();
  if (tensor.dim() < 3 || tensor.dim() > 5) {
    return Failed(tensor, "Only tensors with 3, 4, or 5 dimensions are supported");
  }
  if (groups < 1 || tensor.size(0) % groups != 0) return Failed(tensor, "dim 0 must be divisible by groups");
  return Assign(tensor, [groups](Literal* out) {
    const absl::Span<const int64_t> dims = out->shape().dims();
    // The middle of the kernel, and its size.
    int64_t middle = 0, kernel = 1;
    for (size_t d = 2; d < dims.size(); ++d) {
      middle = middle * dims[d] + dims[d] / 2;
      kernel *= dims[d];
    }
    if (kernel == 0) return;
    const int64_t outputs = dims[0] / groups;
    ForElements(out, [&](auto values) {
      for (int64_t g = 0; g < groups; ++g) {
        for (int64_t c = 0; c < std::min(outputs, dims[1]); ++c) {
          values[static_cast<size_t>(((g * outputs + c) * dims[1] + c) * kernel + middle)] = 1;
        }
      }
    });
  });
}

Tensor xavier_uniform_(const Tensor& tensor, double gain) {
  return WithFans(tensor, [&](double fan_in, double fan_out) {
    const double bound = std::sqrt(3.0) * gain * std::sqrt(2 / (fan_in + fan_out));
    return Distribution::Uniform(-bound, bound);
  });
}

Tensor xavier_normal_(const Tensor& tensor, double gain) {
  return WithFans(tensor, [&](double fan_in, double fan_out) {
    return Distribution::Normal(0, gain * std::sqrt(2 / (fan_in + fan_out)));
  });
}

Tensor kaiming_uniform_(const Tensor& tensor, double a, FanMode mode, std::string_view nonlinearity) {
  return Kaiming(tensor, a, mode, nonlinearity, true);
}

Tensor kaiming_normal_(const Tensor& tensor, double a, FanMode mode, std::string_view nonlinearity) {
  return Kaiming(tensor, a, mode, nonlinearity, false);
}

Tensor orthogonal_(const Tensor& tensor, double gain) {
  if (!tensor.defined()) return Tensor();
  if (tensor.dim() < 2) return Failed(tensor, "Only tensors with 2 or more dimensions are supported");
  const Generator own = {generator.seed, generator.streams++};
  return Assign(tensor, [own, gain](Literal* out) {
    const auto rows = static_cast<size_t>(out->shape().dims()[0]);
    const size_t count = static_cast<size_t>(out->element_count());
    if (count == 0) return;
    const size_t columns = count / rows;
    const bool tall = rows >= columns;
    std::vector<double> q(count);
    Fill(Distribution::Normal(0, 1), own.seed, own.streams, absl::MakeSpan(q));
    Orthonormalize(q, tall ? rows : columns, tall ? columns : rows);
    ForElements(out, [&](auto values) {
      using T = typename decltype(values)::value_type;
      for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < columns; ++j) {
          values[i * columns + j] = static_cast<T>(gain * (tall ? q[i * columns + j] : q[j * rows + i]));
        }
      }
    });
  });
}

Tensor sparse_(const Tensor& tensor, double sparsity, double std) {
  if (!tensor.defined()) return Tensor();
  if (tensor.dim() != 2) return Failed(tensor, "Only tensors with 2 dimensions are supported");
  const Generator own = {generator.seed, generator.streams++};
  return Assign(tensor, [own, sparsity, std](Literal* out) {
    const auto rows = static_cast<size_t>(out->shape().dims()[0]),
               columns = static_cast<size_t>(out->shape().dims()[1]);
    const double zeros = std::ceil(sparsity * static_cast<double>(rows));
    const auto count = static_cast<size_t>(std::clamp(zeros, 0.0, static_cast<double>(rows)));
    RandomNumbers random(own.seed, own.streams);
    const Distribution normal = Distribution::Normal(0, std);
    std::vector<size_t> order(rows);
    ForElements(out, [&](auto values) {
      using T = typename decltype(values)::value_type;
      for (T& value : values) value = static_cast<T>(normal.Draw(random));
      for (size_t j = 0; j < columns; ++j) {
        // The first rows of a random order.
        std::iota(order.begin(), order.end(), 0);
        for (size_t i = 0; i < count; ++i) {
          const auto k = i + static_cast<size_t>(random.Uniform() * static_cast<double>(rows - i));
          std::swap(order[i], order[std::min(k, rows - 1)]);
          values[order[i] * columns + j] = 0;
        }
      }
    });
  });
}

}  // namespace hlokit::lazy::nn::init
