// SPDX-License-Identifier: Apache-2.0
// Derivatives that are ops of their own in torch, of ops that are composed of others here: those of the composition.
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns the gradients of `function` by its arguments, given that of its result; zeros where it does not depend on
// one.
Tensors GradientsOf(OpKernelContext& c, const Tensor& gradient, const Tensors& arguments,
                    const std::function<Tensor(const Tensors&)>& function) {
  Tensors leaves, found(arguments.size());
  Tensor result;
  {
    const AutoGradMode recorded(true);
    for (const Tensor& t : arguments) leaves.push_back(t.Detach().set_requires_grad(true));
    result = function(leaves);
  }
  if (!result.defined()) return found;
  if (ComputeRequiresGrad(result)) {
    absl::StatusOr<Tensors> gradients = RunBackward({result}, {gradient}, leaves);
    if (!gradients.ok()) {
      c.Fail(std::string(gradients.status().message()));
      return found;
    }
    found = *std::move(gradients);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = lazy::ZerosLike(arguments[i]);
  }
  return found;
}

}  // namespace

// grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
void GridSamplerBackward(OpKernelContext& c) {
  const Args& args = c.args();
  Tensors found = GradientsOf(c, c.tensor(0), {c.tensor(1), c.tensor(2)}, [&](const Tensors& of) {
    return InvokeOp(Op::grid_sampler, of[0], of[1], args[3], args[4], args[5]);
  });
  const Dims mask = c.ints(6);
  for (size_t i = 0; i < 2; ++i) {
    if (mask.size() == 2 && mask[i] == 0) found[i] = Tensor();
  }
  c.Return(found[0], found[1]);
}

// grad, x1, x2, p, cdist -> the gradient of x1
void CdistBackward(OpKernelContext& c) {
  const Args& args = c.args();
  const Tensor& other = c.tensor(2);
  c.Return(GradientsOf(c, c.tensor(0), {c.tensor(1)}, [&](const Tensors& of) {
    return InvokeOp(Op::cdist_forward, of[0], other, args[3], IValue());
  })[0]);
}

// grad, self, p, pdist
void PdistBackward(OpKernelContext& c) {
  const Args& args = c.args();
  c.Return(GradientsOf(c, c.tensor(0), {c.tensor(1)},
                       [&](const Tensors& of) { return InvokeOp(Op::pdist_forward, of[0], args[2]); })[0]);
}

// grad, output, data, reduce, lengths, offsets, axis, initial
void SegmentReduceBackward(OpKernelContext& c) {
  const Args& args = c.args();
  c.Return(GradientsOf(c, c.tensor(0), {c.tensor(2)}, [&](const Tensors& of) {
    return InvokeOp(Op::segment_reduce, of[0], args[3], args[4], IValue(), args[5], args[6], true, args[7]);
  })[0]);
}

// grad_output, self, target, p, margin, weight, reduction
void MultiMarginLossBackward(OpKernelContext& c) {
  const Args& args = c.args();
  c.Return(GradientsOf(c, c.tensor(0), {c.tensor(1)}, [&](const Tensors& of) {
    return InvokeOp(Op::multi_margin_loss, of[0], args[2], args[3], args[4], args[5], args[6]);
  })[0]);
}

// grad_output, self, target, reduction, is_target
void MultilabelMarginLossBackward(OpKernelContext& c) {
  const Args& args = c.args();
  c.Return(GradientsOf(c, c.tensor(0), {c.tensor(1)}, [&](const Tensors& of) {
    return InvokeOp(Op::multilabel_margin_loss, of[0], args[2], args[3]);
  })[0]);
}

// grad_output, self, padding
void ReplicationPadBackward(OpKernelContext& c) {
  const Args& args = c.args();
  const Op forward = c.op() == Op::replication_pad1d_backward   ? Op::replication_pad1d
                     : c.op() == Op::replication_pad2d_backward ? Op::replication_pad2d
                                                                : Op::replication_pad3d;
  c.Return(GradientsOf(c, c.tensor(0), {c.tensor(1)},
                       [&](const Tensors& of) { return InvokeOp(forward, of[0], args[2]); })[0]);
}

// log_probs, targets, input_lengths, target_lengths, blank, zero_infinity -> a loss for each example, and a table of
// torch's own that its derivative has from it; the one here does not need it
void CtcLossForward(OpKernelContext& c) {
  const Args& args = c.args();
  const Tensor& log_probs = c.tensor(0);
  c.Return(InvokeOp(Op::ctc_loss_IntList, log_probs, args[1], args[2], args[3], args[4], 0, args[5]),
           lazy::Zeros({0}, log_probs.dtype()));
}
// grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
void CtcLossBackward(OpKernelContext& c) {
  const Args& args = c.args();
  const Tensor gradient = GradientsOf(c, c.tensor(0), {c.tensor(1)}, [&](const Tensors& of) {
    return InvokeOp(Op::ctc_loss_IntList, of[0], args[2], args[3], args[4], args[7], 0, args[8]);
  })[0];
  if (!gradient.defined() || c.bool_arg(8)) return c.Return(gradient);
  // That of an infinite loss is NaN at the frames of the example.
  const Dims lengths = c.ints(3);
  const auto batch = static_cast<int64_t>(lengths.size());
  const bool batched = gradient.dim() == 3;
  const Tensor ends =
      ConstantTensor(c, {batch}, std::vector<double>(lengths.begin(), lengths.end()), ElementType::kS64);
  const Tensor used = lazy::Lt(lazy::Unsqueeze(lazy::Arange(gradient.size(0)), 1), lazy::Unsqueeze(ends, 0));
  const Tensor infinite = lazy::Eq(lazy::Reshape(c.tensor(5), {1, batch}), std::numeric_limits<double>::infinity());
  const Tensor mask = lazy::And(used, infinite);
  c.Return(lazy::MaskedFill(gradient, batched ? lazy::Unsqueeze(mask, 2) : mask, std::nan("")));
}

}  // namespace hlokit::lazy::kernel
