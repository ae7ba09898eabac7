// SPDX-License-Identifier: Apache-2.0
// Resizing: overloads by sizes or scale factors, on the ops by sizes.
#include <cmath>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

// input, output_size?, [align_corners,] scale_factors? -> `by_size`, which resizes the last `spatial` dimensions
void UpsampleBy(OpKernelContext& c, Op by_size, int64_t spatial) {
  const Tensor& x = c.tensor(0);
  const size_t factors_arg = c.args().size() - 1;
  if (x.dim() != spatial + 2) {
    return c.Fail(StrCat("It is expected input_size equals to ", spatial + 2, ", but got size ", x.dim()));
  }
  if (c.has(1) == c.has(factors_arg)) return c.Fail("Must specify exactly one of output_size and scale_factors");
  Args args = {c.args()[0], c.args()[1]};
  if (factors_arg == 3) args.emplace_back(c.args()[2]);
  if (c.has(factors_arg)) {
    const std::vector<double>& factors = *c.args()[factors_arg].get<std::vector<double>>();
    if (static_cast<int64_t>(factors.size()) != spatial) {
      return c.Fail(StrCat("expected ", spatial, " scale_factors, but got ", factors.size()));
    }
    IntList sizes;
    for (int64_t i = 0; i < spatial; ++i) {
      const double size = static_cast<double>(x.size(2 + i)) * factors[static_cast<size_t>(i)];
      if (!(std::abs(size) <= static_cast<double>(kMaxExtent))) return c.Fail("scale_factors are out of range");
      sizes.push_back(static_cast<int64_t>(size));
    }
    args[1] = sizes;
    for (double factor : factors) args.emplace_back(factor);
  }
  c.Return(Dispatch(by_size, std::move(args)));
}

}  // namespace

void UpsampleNearest1dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_nearest1d, 1); }
void UpsampleNearest2dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_nearest2d, 2); }
void UpsampleNearest3dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_nearest3d, 3); }
void UpsampleNearestExact1dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_nearest_exact1d, 1); }
void UpsampleNearestExact2dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_nearest_exact2d, 2); }
void UpsampleNearestExact3dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_nearest_exact3d, 3); }
void UpsampleLinear1dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_linear1d, 1); }
void UpsampleBilinear2dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_bilinear2d, 2); }
void UpsampleTrilinear3dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_trilinear3d, 3); }
void UpsampleBicubic2dVec(OpKernelContext& c) { UpsampleBy(c, Op::upsample_bicubic2d, 2); }

}  // namespace hlokit::lazy::kernel
