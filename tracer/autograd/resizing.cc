// SPDX-License-Identifier: Apache-2.0
// Derivatives of resizing. Each op is linear: it and its backward op are the derivatives of each other.
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/schema.h"

namespace hlokit::lazy::derivative {
namespace {

struct UpsamplePair {
  Op forward, backward;
};
constexpr UpsamplePair kUpsamplePairs[] = {
    {Op::upsample_nearest1d, Op::upsample_nearest1d_backward},
    {Op::upsample_nearest2d, Op::upsample_nearest2d_backward},
    {Op::upsample_nearest3d, Op::upsample_nearest3d_backward},
    {Op::upsample_nearest_exact1d, Op::upsample_nearest_exact1d_backward},
    {Op::upsample_nearest_exact2d, Op::upsample_nearest_exact2d_backward},
    {Op::upsample_nearest_exact3d, Op::upsample_nearest_exact3d_backward},
    {Op::upsample_linear1d, Op::upsample_linear1d_backward},
    {Op::upsample_bilinear2d, Op::upsample_bilinear2d_backward},
    {Op::upsample_trilinear3d, Op::upsample_trilinear3d_backward},
    {Op::upsample_bicubic2d, Op::upsample_bicubic2d_backward},
};

// Adds align_corners, if the op has it, and scale factors: the arguments from `first` on.
void AddOptions(BackwardContext& c, size_t first, Args* args) {
  const Schema& schema = SchemaOf(c.op());
  for (size_t i = first; i < schema.args.size(); ++i) {
    if (schema.args[i].type == ArgType::kBool) {
      args->emplace_back(c.bool_arg(i));
    } else {
      args->emplace_back(c.has(i) ? IValue(c.float_arg(i)) : IValue());
    }
  }
}

}  // namespace

// self, output_size, options..
void Upsample(BackwardContext& c) {
  for (const UpsamplePair& pair : kUpsamplePairs) {
    if (pair.forward != c.op()) continue;
    Args args = {c.grad_output(), c.ints(1), Sizes(c.shape(0))};
    AddOptions(c, 2, &args);
    c.set(0, Dispatch(pair.backward, std::move(args))[0]);
  }
}
// grad_output, output_size, input_size, options..
void UpsampleBackward(BackwardContext& c) {
  for (const UpsamplePair& pair : kUpsamplePairs) {
    if (pair.backward != c.op()) continue;
    Args args = {c.grad_output(), c.ints(1)};
    AddOptions(c, 3, &args);
    c.set(0, Dispatch(pair.forward, std::move(args))[0]);
  }
}

}  // namespace hlokit::lazy::derivative
