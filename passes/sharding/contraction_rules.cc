// SPDX-License-Identifier: Apache-2.0
// Sharding rules of dots and convolutions.
#include <algorithm>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "passes/sharding/contraction_dims.h"
#include "passes/sharding/rule_builder.h"

namespace hlokit::sharding {
namespace {

bool InDims(absl::Span<const int64_t> dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// Gives the dimensions of a scale the factors of the operand that it scales; a dimension of blocks is whole.
void ScaleLike(RuleBuilder& b, int64_t scale, int64_t dim, int64_t size, int32_t factor) {
  if (scale < b.operand_count() && dim < b.operand(scale).rank() && b.operand(scale).dim(dim) == size) {
    b.Operand(scale, dim, factor);
  }
}

}  // namespace

void MakeDotRule(RuleBuilder& b) {
  const DotDims dims = DotDims::Of(b.instruction());
  const Shape lhs = b.operand(0), rhs = b.operand(1);
  const bool scaled = b.instruction().opcode() == Opcode::kScaledDot;
  if (b.instruction().has(Attr::kSparsityConfig) || !lhs.IsArray() || !rhs.IsArray()) return;
  int64_t out = 0;
  for (size_t i = 0; i < dims.lhs_batch.size() && i < dims.rhs_batch.size(); ++i) {
    const int64_t size = lhs.dim(dims.lhs_batch[i]);
    const int32_t factor = b.Add(size);
    b.Operand(0, dims.lhs_batch[i], factor);
    b.Operand(1, dims.rhs_batch[i], factor);
    b.Result(0, out++, factor);
    if (!scaled) continue;
    ScaleLike(b, 2, dims.lhs_batch[i], size, factor);
    ScaleLike(b, 3, dims.rhs_batch[i], size, factor);
  }
  for (size_t i = 0; i < dims.lhs_contracting.size() && i < dims.rhs_contracting.size(); ++i) {
    const int64_t size = std::max(lhs.dim(dims.lhs_contracting[i]), rhs.dim(dims.rhs_contracting[i]));
    const int32_t factor = b.Add(size, FactorKind::kReduced);
    b.Operand(0, dims.lhs_contracting[i], factor);
    b.Operand(1, dims.rhs_contracting[i], factor);
    if (!scaled) continue;
    ScaleLike(b, 2, dims.lhs_contracting[i], size, factor);
    ScaleLike(b, 3, dims.rhs_contracting[i], size, factor);
  }
  for (int64_t side = 0; side < 2; ++side) {
    const Shape shape = side == 0 ? lhs : rhs;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (InDims(side == 0 ? dims.lhs_batch : dims.rhs_batch, d)) continue;
      if (InDims(side == 0 ? dims.lhs_contracting : dims.rhs_contracting, d)) continue;
      const int32_t factor = b.Add(shape.dim(d));
      b.Operand(side, d, factor);
      b.Result(0, out++, factor);
      if (scaled) ScaleLike(b, 2 + side, d, shape.dim(d), factor);
    }
  }
}

// The dimensions that are divided into groups are whole: a part of one would have parts of groups; those of a batch
// only say how much of it counts. With the groups in a dimension of the right operand, the result has the free
// dimensions of both sides as a dot. The sizes of the groups may differ along batch dimensions and those of the same
// kind before the ragged one, which they have before their own.
void MakeRaggedDotRule(RuleBuilder& b) {
  const DotDims dims = DotDims::Of(b.instruction());
  const absl::Span<const int64_t> ragged = b.instruction().list_attr(Attr::kLhsRaggedDims);
  const absl::Span<const int64_t> groups = b.instruction().list_attr(Attr::kRhsGroupDims);
  const Shape lhs = b.operand(0), rhs = b.operand(1);
  if (ragged.empty()) return;
  const bool contracting = InDims(dims.lhs_contracting, ragged[0]);
  const bool in_batch = InDims(dims.lhs_batch, ragged[0]), free_ragged = !contracting && !in_batch;
  // With several sizes for one sum its dimensions stay whole.
  const bool sums_differ = contracting && b.operand(2).rank() > static_cast<int64_t>(dims.lhs_batch.size()) + 1;
  // Otherwise the result has a dimension of groups before all others.
  int64_t out = contracting ? 1 : 0;
  const auto kind = [&](int64_t lhs_dim, FactorKind otherwise) {
    return InDims(ragged, lhs_dim) && !in_batch ? FactorKind::kWhole : otherwise;
  };
  std::vector<int32_t> before;  // the factors that sizes of groups may depend on
  bool preceding = true;        // the ragged dimension
  for (size_t i = 0; i < dims.lhs_batch.size() && i < dims.rhs_batch.size(); ++i) {
    const int32_t factor = b.Add(lhs.dim(dims.lhs_batch[i]), kind(dims.lhs_batch[i], FactorKind::kParallel));
    b.Operand(0, dims.lhs_batch[i], factor);
    b.Operand(1, dims.rhs_batch[i], factor);
    b.Result(0, out++, factor);
    preceding = preceding && dims.lhs_batch[i] != ragged[0];
    if (preceding) before.push_back(factor);
  }
  for (size_t i = 0; i < dims.lhs_contracting.size() && i < dims.rhs_contracting.size(); ++i) {
    const FactorKind sum = sums_differ ? FactorKind::kWhole : FactorKind::kReduced;
    const int32_t factor = b.Add(lhs.dim(dims.lhs_contracting[i]), kind(dims.lhs_contracting[i], sum));
    b.Operand(0, dims.lhs_contracting[i], factor);
    b.Operand(1, dims.rhs_contracting[i], factor);
  }
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (InDims(dims.lhs_batch, d) || InDims(dims.lhs_contracting, d)) continue;
    const int32_t factor = b.Add(lhs.dim(d), kind(d, FactorKind::kParallel));
    b.Operand(0, d, factor);
    b.Result(0, out++, factor);
    if (free_ragged && d < ragged[0]) before.push_back(factor);
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (InDims(dims.rhs_batch, d) || InDims(dims.rhs_contracting, d) || (free_ragged && InDims(groups, d))) continue;
    const int32_t factor = b.Add(rhs.dim(d));
    b.Operand(1, d, factor);
    b.Result(0, out++, factor);
  }
  if (b.operand(2).rank() == 1) return;
  for (size_t k = 0; k < before.size(); ++k) b.Operand(2, static_cast<int64_t>(k), before[k]);
}

ConvolutionSpatialKind SpatialKindOf(Instruction convolution, int64_t spatial_dim) {
  const ConvolutionDims dims = ConvolutionDims::Of(convolution);
  const WindowView window = WindowView::Of(convolution);
  if (spatial_dim >= window.rank()) return ConvolutionSpatialKind::kWindow;
  const WindowDim w = window[spatial_dim];
  const auto d = static_cast<size_t>(spatial_dim);
  const int64_t input = convolution.operand(0).shape().dim(dims.input_spatial[d]);
  const int64_t kernel = convolution.operand(1).shape().dim(dims.kernel_spatial[d]);
  const int64_t output = convolution.shape().dim(dims.output_spatial[d]);
  const bool plain = w.stride == 1 && w.base_dilation == 1 && w.window_dilation == 1;
  const bool unpadded = w.padding_low == 0 && w.padding_high == 0;
  if (input > 1 && kernel == input && output == input && w.stride == input - 1 && w.base_dilation == input &&
      w.window_dilation == 1 && unpadded && !w.reversal) {
    return ConvolutionSpatialKind::kBatch;
  }
  if (plain && unpadded && kernel == input && output == 1 && !w.reversal) return ConvolutionSpatialKind::kContracted;
  if (plain && input == 1 && output == kernel && w.reversal && w.padding_low == kernel - 1 &&
      w.padding_high == kernel - 1) {
    return ConvolutionSpatialKind::kKernelOnly;
  }
  if (plain && unpadded && kernel == 1 && input == output) return ConvolutionSpatialKind::kInputOnly;
  return ConvolutionSpatialKind::kWindow;
}

bool IsConvolutionADot(Instruction convolution) {
  const ConvolutionDims dims = ConvolutionDims::Of(convolution);
  for (int64_t i = 0; i < dims.spatial_rank(); ++i) {
    if (SpatialKindOf(convolution, i) == ConvolutionSpatialKind::kWindow) return false;
  }
  return true;
}

void MakeConvolutionRule(RuleBuilder& b) {
  const Instruction conv = b.instruction();
  const ConvolutionDims dims = ConvolutionDims::Of(conv);
  // A sparse operand is compressed along some dimension, and may be a tuple.
  if (!dims.ok() || conv.has(Attr::kSparsityConfig) || !b.operand(0).IsArray() || !b.operand(1).IsArray()) return;
  const Shape input = b.operand(0), kernel = b.operand(1), output = b.result();
  const int64_t feature_groups = conv.int_attr(Attr::kFeatureGroupCount, 1);
  const int64_t batch_groups = conv.int_attr(Attr::kBatchGroupCount, 1);
  // Groups are major in the input's features or batch, and in the features of the result.
  if (batch_groups > 1) {
    const int32_t group = b.Add(batch_groups);
    b.Operand(0, dims.input_batch, group);
    b.Operand(1, dims.kernel_output_feature, group);
    b.Result(0, dims.output_feature, group);
  }
  const int32_t batch = b.Add(output.dim(dims.output_batch));
  b.Operand(0, dims.input_batch, batch);
  b.Result(0, dims.output_batch, batch);
  if (feature_groups > 1) {
    const int32_t group = b.Add(feature_groups);
    b.Operand(0, dims.input_feature, group);
    b.Operand(1, dims.kernel_output_feature, group);
    b.Result(0, dims.output_feature, group);
  }
  const int64_t groups = std::max(feature_groups, batch_groups);
  if (feature_groups != input.dim(dims.input_feature) || feature_groups == 1) {
    const int32_t in = b.Add(kernel.dim(dims.kernel_input_feature), FactorKind::kReduced);
    b.Operand(0, dims.input_feature, in);
    b.Operand(1, dims.kernel_input_feature, in);
  }
  const int64_t out_features = output.dim(dims.output_feature) / std::max<int64_t>(groups, 1);
  if (out_features != 1 || groups == 1) {
    const int32_t out = b.Add(out_features);
    b.Operand(1, dims.kernel_output_feature, out);
    b.Result(0, dims.output_feature, out);
  }
  for (int64_t i = 0; i < dims.spatial_rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t size = output.dim(dims.output_spatial[d]);
    switch (SpatialKindOf(conv, i)) {
      case ConvolutionSpatialKind::kBatch: {
        const int32_t factor = b.Add(size);
        b.Operand(0, dims.input_spatial[d], factor);
        b.Operand(1, dims.kernel_spatial[d], factor);
        b.Result(0, dims.output_spatial[d], factor);
        break;
      }
      case ConvolutionSpatialKind::kInputOnly: {
        const int32_t factor = b.Add(size);
        b.Operand(0, dims.input_spatial[d], factor);
        b.Result(0, dims.output_spatial[d], factor);
        break;
      }
      case ConvolutionSpatialKind::kKernelOnly: {
        const int32_t factor = b.Add(size);
        b.Operand(1, dims.kernel_spatial[d], factor);
        b.Result(0, dims.output_spatial[d], factor);
        break;
      }
      case ConvolutionSpatialKind::kContracted: {
        const int32_t factor = b.Add(input.dim(dims.input_spatial[d]), FactorKind::kReduced);
        b.Operand(0, dims.input_spatial[d], factor);
        b.Operand(1, dims.kernel_spatial[d], factor);
        break;
      }
      case ConvolutionSpatialKind::kWindow: {
        const int32_t factor = b.Add(size, FactorKind::kWindow);
        b.Operand(0, dims.input_spatial[d], factor);
        b.Result(0, dims.output_spatial[d], factor);
        break;
      }
    }
  }
}

}  // namespace hlokit::sharding
