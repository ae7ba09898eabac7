// SPDX-License-Identifier: Apache-2.0
// Layers: parameters declared at construction, applied as functions. What a layer records is attributed to the line
// that applies it.
#ifndef HLOKIT_TRACER_NN_LAYERS_H_
#define HLOKIT_TRACER_NN_LAYERS_H_

#include <cstdint>

#include "tracer/dispatch/functions.h"
#include "tracer/graph/scope.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

struct Linear {
  Tensor weight, bias;

  Linear() = default;
  Linear(const ModuleScope& s, int64_t in, int64_t out, bool with_bias = true)
      : weight(s.Parameter("weight", {out, in}, ParameterKind::kWeight)) {
    if (with_bias) bias = s.Parameter("bias", {out}, ParameterKind::kBias);
  }
  Tensor operator()(const LocatedTensor& x) const { return lazy::Linear(x, weight, bias); }
};

struct Conv2d {
  Tensor weight, bias;
  int64_t stride = 1, padding = 0, groups = 1;

  Conv2d() = default;
  Conv2d(const ModuleScope& s, int64_t in, int64_t out, int64_t kernel, int64_t stride_ = 1, int64_t padding_ = 0,
         int64_t groups_ = 1, bool with_bias = true)
      : weight(s.Parameter("weight", {out, in / groups_, kernel, kernel}, ParameterKind::kWeight)),
        stride(stride_),
        padding(padding_),
        groups(groups_) {
    if (with_bias) bias = s.Parameter("bias", {out}, ParameterKind::kBias);
  }
  Tensor operator()(const LocatedTensor& x) const {
    return InvokeOp(Op::convolution, x, weight, bias, IntList{stride, stride}, IntList{padding, padding}, IntList{1, 1},
                    false, IntList{0, 0}, groups);
  }
};

struct BatchNorm2d {
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

  BatchNorm2d() = default;
  BatchNorm2d(const ModuleScope& s, int64_t features, bool last_of_block = false)
      : weight(s.Parameter("weight", {features},
                           last_of_block ? ParameterKind::kResidualNormWeight : ParameterKind::kNormWeight)),
        bias(s.Parameter("bias", {features}, ParameterKind::kBias)),
        running_mean(s.Buffer("running_mean", {features}, 0)),
        running_var(s.Buffer("running_var", {features}, 1)),
        num_batches_tracked(s.IntegerBuffer("num_batches_tracked")) {}
  Tensor operator()(const LocatedTensor& x, bool training) const {
    const ScopedSourceLocation site(x.location);
    if (training) WriteInPlace(num_batches_tracked, num_batches_tracked + Scalar(1));
    return InvokeOpMultiOutput(Op::native_batch_norm, x.tensor, weight, bias, running_mean, running_var, training, 0.1,
                               1e-5)[0];
  }
};

struct GroupNorm {
  Tensor weight, bias;
  int64_t groups = 1;
  double eps = 1e-5;

  GroupNorm() = default;
  GroupNorm(const ModuleScope& s, int64_t num_groups, int64_t channels, double epsilon = 1e-5, bool affine = true)
      : groups(num_groups), eps(epsilon) {
    if (!affine) return;
    weight = s.Parameter("weight", {channels}, ParameterKind::kNormWeight);
    bias = s.Parameter("bias", {channels}, ParameterKind::kBias);
  }
  Tensor operator()(const LocatedTensor& x) const { return InvokeOp(Op::group_norm, x, groups, weight, bias, eps); }
};

struct LayerNorm {
  Tensor weight, bias;
  double eps = 1e-5;
  int64_t size = 0;

  LayerNorm() = default;
  LayerNorm(const ModuleScope& s, int64_t features, double epsilon = 1e-5)
      : weight(s.Parameter("weight", {features}, ParameterKind::kNormWeight)),
        bias(s.Parameter("bias", {features}, ParameterKind::kBias)),
        eps(epsilon),
        size(features) {}
  Tensor operator()(const LocatedTensor& x) const {
    return InvokeOpMultiOutput({Op::native_layer_norm, x.location}, x.tensor, IntList{size}, weight, bias, eps)[0];
  }
};

struct RmsNorm {
  Tensor weight;
  double eps = 1e-5;

  RmsNorm() = default;
  RmsNorm(const ModuleScope& s, int64_t features, double epsilon = 1e-5)
      : weight(s.Parameter("weight", {features}, ParameterKind::kNormWeight)), eps(epsilon) {}
  Tensor operator()(const LocatedTensor& x) const {
    const ScopedSourceLocation site(x.location);
    return x * Rsqrt(Mean(Pow(x, 2), {-1}, true) + Scalar(eps)) * weight;
  }
};

struct Embedding {
  Tensor weight;

  Embedding() = default;
  Embedding(const ModuleScope& s, int64_t count, int64_t width)
      : weight(s.Parameter("weight", {count, width}, ParameterKind::kWeight)) {}
  Tensor operator()(const LocatedTensor& ids) const {
    return InvokeOp({Op::embedding, ids.location}, weight, ids.tensor);
  }
};

struct Dropout {
  double p = 0.5;

  explicit Dropout(double probability = 0.5) : p(probability) {}
  Tensor operator()(const LocatedTensor& x, bool training) const { return InvokeOp(Op::dropout, x, p, training); }
};

inline Tensor MaxPool(const LocatedTensor& x, int64_t kernel, int64_t stride, int64_t padding = 0, bool ceil = false) {
  return InvokeOpMultiOutput({Op::max_pool2d_with_indices, x.location}, x.tensor, IntList{kernel, kernel},
                             IntList{stride, stride}, IntList{padding, padding}, IntList{1, 1}, ceil)[0];
}
inline Tensor AdaptiveAvgPool(const LocatedTensor& x, int64_t size) {
  return InvokeOp(Op::adaptive_avg_pool2d, x, IntList{size, size});
}
inline Tensor Relu6(const LocatedTensor& x) { return InvokeOp(Op::relu6, x); }

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_LAYERS_H_
