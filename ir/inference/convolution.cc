// SPDX-License-Identifier: Apache-2.0
// The rule of convolution.
#include "ir/inference/rules.h"
#include "ir/ops/sparsity_config.h"

namespace hlokit::inference {
namespace {

struct Convolution {
  Shape lhs;
  Shape rhs;
  ConvolutionDims dims;
  WindowView window;
  int64_t feature_groups = 1;
  int64_t batch_groups = 1;
  // kernel_kept features of a sparse kernel represent kernel_block features.
  int64_t kernel_kept = 1;
  int64_t kernel_block = 1;
};

// `total` may be unbounded.
bool Divides(int64_t divisor, int64_t total) { return total == kUnboundedSize || total % divisor == 0; }
int64_t Quotient(int64_t total, int64_t divisor) { return total == kUnboundedSize ? total : total / divisor; }

// Sets the number of features kept per block of a kernel; 1 of 1 if it is dense. (XLA's verifier requires 1; its
// evaluator supports more.)
absl::Status KernelBlock(const InferenceContext& in, Convolution* c) {
  const absl::StatusOr<SparsityConfig> config = SparsityConfig::Parse(in.attrs.string_attr(Attr::kSparsityConfig));
  if (!config.ok()) return config.status();
  if (!config->rhs) return absl::OkStatus();
  c->kernel_kept = config->rhs->num_non_zero;
  c->kernel_block = config->rhs->block_size;
  return absl::OkStatus();
}

absl::Status ReadConvolution(const InferenceContext& in, Convolution* c) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  c->lhs = in.operand(0);
  // A sparse kernel is a pair of values and their indices.
  c->rhs = in.operand(1);
  if (c->rhs.IsTuple() && c->rhs.tuple_size() == 2) c->rhs = c->rhs.element(0);
  HLOKIT_RETURN_IF_ERROR(ExpectArray(c->rhs, "operand 1 (the kernel)"));
  c->dims = ConvolutionDims::Of(in.attrs);
  if (!c->dims.ok()) return Error("`dim_labels` is missing");
  if (!c->dims.IsPermutation())
    return Error("expected each dimension of input, kernel and output once in `dim_labels`");
  c->window = WindowView::Of(in.attrs);
  if (!c->window.ok() || c->window.rank() != c->dims.spatial_rank()) {
    return Error("the window has ", c->window.rank(), " dimensions, but `dim_labels` has ", c->dims.spatial_rank(),
                 " spatial ones");
  }
  if (c->lhs.rank() != c->dims.rank() || c->rhs.rank() != c->dims.rank()) {
    return Error("operands must have the ", c->dims.rank(), " dimensions of `dim_labels`, found ", Text(c->lhs),
                 " and ", Text(c->rhs));
  }
  c->feature_groups = in.attrs.int_attr(Attr::kFeatureGroupCount, 1);
  c->batch_groups = in.attrs.int_attr(Attr::kBatchGroupCount, 1);
  if (c->feature_groups <= 0) return Error("`feature_group_count` is ", c->feature_groups, ", not positive");
  if (c->batch_groups <= 0) return Error("`batch_group_count` is ", c->batch_groups, ", not positive");
  if (c->feature_groups > 1 && c->batch_groups > 1) {
    return Error("`feature_group_count` and `batch_group_count` cannot both be more than 1");
  }
  return KernelBlock(in, c);
}

absl::Status CheckGroups(const Convolution& c) {
  const int64_t output_features = c.rhs.dim(c.dims.kernel_output_feature);
  for (int64_t groups : {c.batch_groups, c.feature_groups}) {
    if (Divides(groups, output_features)) continue;
    return Error("the kernel (", Text(c.rhs), ") has ", output_features,
                 " output features, which is not divisible by the ", Counted(groups, "group"));
  }
  const int64_t batch = c.lhs.dim(c.dims.input_batch);
  if (!Divides(c.batch_groups, batch)) {
    return Error("the input (", Text(c.lhs), ") has a batch of ", batch, ", which is not divisible by the ",
                 Counted(c.batch_groups, "group"));
  }
  return absl::OkStatus();
}

// Checks the input features of each group against those of the kernel.
absl::Status CheckInputFeatures(const Convolution& c) {
  const int64_t features = c.lhs.dim(c.dims.input_feature);
  int64_t of_kernel = c.rhs.dim(c.dims.kernel_input_feature);
  if (of_kernel != kUnboundedSize) {
    if (of_kernel % c.kernel_kept != 0) {
      return Error("the kernel (", Text(c.rhs), ") has ", of_kernel, " input features, which is not divisible by the ",
                   c.kernel_kept, " non-zeros of each sparsity block");
    }
    if (!Multiply(of_kernel / c.kernel_kept, c.kernel_block, &of_kernel)) {
      return Error("the number of features of the kernel overflows");
    }
  }
  if (Divides(c.feature_groups, features) && SizesFit(Quotient(features, c.feature_groups), of_kernel)) {
    return absl::OkStatus();
  }
  return Error("the input (", Text(c.lhs), ") has ", DimensionSizeToString(features), " features in ",
               Counted(c.feature_groups, "group"), ", but the kernel (", Text(c.rhs), ") has ",
               DimensionSizeToString(of_kernel), " input features");
}

absl::Status CheckWindowIsKernel(const Convolution& c) {
  for (int64_t i = 0; i < c.window.rank(); ++i) {
    const int64_t size = c.rhs.dim(c.dims.kernel_spatial[i]);
    if (SizesFit(size, c.window[i].size)) continue;
    return Error("the window has size ", c.window[i].size, " in spatial dimension ", i, ", but the kernel (",
                 Text(c.rhs), ") has ", size);
  }
  return absl::OkStatus();
}

// Dynamic dimensions of the output come from the batch of the input and from spatial dimensions of input and kernel.
absl::Status MarkDynamic(const Convolution& c, absl::Span<uint8_t> dynamic) {
  if (c.rhs.is_dynamic(c.dims.kernel_output_feature)) {
    return Error("the output features of the kernel (", Text(c.rhs), ") cannot be dynamic");
  }
  if (c.lhs.is_dynamic(c.dims.input_batch)) dynamic[c.dims.output_batch] = 1;
  for (int64_t i = 0; i < c.dims.spatial_rank(); ++i) {
    if (c.lhs.is_dynamic(c.dims.input_spatial[i]) || c.rhs.is_dynamic(c.dims.kernel_spatial[i])) {
      dynamic[c.dims.output_spatial[i]] = 1;
    }
  }
  return absl::OkStatus();
}

}  // namespace

// `convolution_kind` is only a hint; the shapes are those of a plain convolution.
absl::Status InferConvolution(const InferenceContext& in, InferredShape* out) {
  Convolution c;
  HLOKIT_RETURN_IF_ERROR(ReadConvolution(in, &c));
  HLOKIT_RETURN_IF_ERROR(CheckGroups(c));
  HLOKIT_RETURN_IF_ERROR(CheckInputFeatures(c));
  HLOKIT_RETURN_IF_ERROR(CheckWindowIsKernel(c));
  absl::InlinedVector<int64_t, 4> base;
  for (int64_t d : c.dims.input_spatial) base.push_back(c.lhs.dim(d));
  InferredShape spatial;
  HLOKIT_RETURN_IF_ERROR(AddWindowedDims(base, {}, c.window, &spatial));

  // As for a dot, the accumulation type of the result may differ.
  const bool declared = in.declared().valid() && in.declared().IsArray();
  out->SetArray(declared ? in.declared().element_type() : HigherPrecision(c.lhs.element_type(), c.rhs.element_type()));
  for (int64_t i = 0; i < c.dims.rank(); ++i) out->AddDim(0);
  const absl::Span<int64_t> dims = out->dims();
  dims[c.dims.output_batch] = Quotient(c.lhs.dim(c.dims.input_batch), c.batch_groups);
  dims[c.dims.output_feature] = c.rhs.dim(c.dims.kernel_output_feature);
  for (int64_t i = 0; i < c.window.rank(); ++i) dims[c.dims.output_spatial[i]] = spatial.dims()[i];
  return MarkDynamic(c, out->dynamic());
}

}  // namespace hlokit::inference
